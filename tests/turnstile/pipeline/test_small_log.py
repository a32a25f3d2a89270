"""Logs that are read here: same_rows_as_spark, or unplain_is_left_to_spark."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from logs import FORMATS, random_log
from storms import Storm

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connection_logs import contents, load
from turnstile.pipeline.inputs.small_log import read_small_log
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.plan import LogPeriod, plan

CANDIDATES = [
    Candidate(cap=1),
    Candidate(cap=2, rate=1),
    Candidate(broker_cap=5),
    Candidate(broker_rate=3),
]
ZEEK = "#separator \\x09\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\n#types\ta\n"
LINES = {
    "zeek": ZEEK + "".join(
        f"{ts}\tC\t{ip}\t{port}\t10.9.0.1\t{towards}\t{proto}\t{lasted}\n"
        for ts, ip, port, towards, proto, lasted in [
            ("1767607200.25", "10.0.0.1", 1, 9092, "tcp", "1.5"), ("1767607200", "10.0.0.1", 2, 9092, "TCP", "-"),
            ("1767607201.000001", "2001:DB8:0::9", 3, 9092, "tcp", "0.000001"), ("1767607201", "10.0.0.9", 3, 9092, "udp", "1"),
            ("-", "10.0.0.2", 4, 9092, "tcp", "1"), ("1767607202", "-", 4, 9092, "tcp", "1"),
            ("1767607203", "no", 4, 9092, "tcp", "1"),
            ("1767607204", "10.0.0.3", 70000, 9092, "tcp", "1"), ("1767607205", "10.0.0.3", 7, 80, "tcp", "1"),
            ("1767607205", "10.0.0.3", 7, "-", "-", "1"),
        ]
    ) + "1767607206\tC\n#close\t2026\n\n",
    "json": "".join(
        json.dumps(row) + "\n"
        for row in [
            {"ts": 1767607200.305988, "id.orig_h": "10.0.0.1", "id.orig_p": 5, "id.resp_p": 9092, "proto": "tcp", "duration": 0.5},
            {"ts": 1767607200, "id.orig_h": "10.0.0.1", "proto": "udp"}, {"ts": 1767607201.5, "proto": "tcp"},
            {"ts": 1767607201.5, "id.orig_h": "10.0.0.4", "proto": None},
        ]
    ) + '{"ts": 17',
    "csv": "opened_at,ip,closed_at,port,listener,other\n2026-01-05T10:00:00Z,10.0.0.1,2026-01-05T10:00:09.5Z,1,A,x\n"
    "2026-01-05 10:00:01Z,10.0.0.1,,2,,\n,10.0.0.2,2026-01-05T10:00:09Z,,B,\n"
    "2026-01-05T10:00:09Z,10.0.0.2,2026-01-05T10:00:01Z,,B,\n"
    "2026-01-05T10:00:09Z,,,,,\n2026-01-05T10:00:09Z,10.0.0.3,,65536,,\n",
    "csv ms": "ip,opened_at,duration_ms\n10.0.0.1,1767607200000,1.5\n10.0.0.1,1767607200001,\n10.0.0.2,,3\n",
    "csv us": "ip,opened_at,duration_s\r\n10.0.0.1,1767607200000000,1.000001\r\n\r\n10.0.0.1,1767607200,2\r\n",
    "csv quoted": '"ip","opened_at","note"\n"10.0.0.1","1767607200","a b"\n10.0.0.2,1767607201,\n',
    "haproxy": "Feb  6 h haproxy[1]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt~ b/s 0/0/5007 212 -- 0/0/0/0/3 0/0\n"
    "10.0.1.2:1 [06/Feb/2009:12:12:51] fnt b/s 0/0/+7 +212 -- 0/0\nhaproxy[1]: Proxy fnt started.\n\n"
    "10.0.1.3:99999 [06/Feb/2009:12:12:52] fnt b/s -1/-1/-1 0 -- 0/0\n",
}  # fmt: skip


def on_spark(spark: Any, path: Path, format: str, port: int | None = None) -> list[tuple[Any, ...]]:
    source = load(spark, [str(path)], format, port=port)
    rows = source.arrived.select("ip", "opened_us", "closed_us", "listener", "bad").collect()
    return sorted((tuple(row) for row in rows), key=str)


def here(path: Path, format: str, port: int | None = None) -> list[tuple[Any, ...]] | None:
    log = read_small_log([str(path)], format, port=port)
    if log is None:
        return None
    columns = (log.table[name].to_pylist() for name in ("ip", "opened_us", "closed_us", "listener", "bad"))
    return sorted(zip(*columns, strict=True), key=str)


def comparable(rows: list[tuple[Any, ...]] | None) -> list[tuple[Any, ...]] | None:
    """Of a row put aside its reason alone counts."""
    return None if rows is None else sorted([row if row[4] is None else (row[4],) for row in rows], key=str)


@pytest.mark.parametrize("port", [None, 9092])
@pytest.mark.parametrize("name", LINES)
def test_each_row_is_as_spark_reads_it(spark: Any, tmp_path: Path, name: str, port: int | None) -> None:
    format = {"json": "zeek"}.get(name, name.split()[0])
    if port is not None and format != "zeek":
        assert read_small_log([str(tmp_path)], format, port=port) is None
        return
    (tmp_path / "a.log").write_text(LINES[name], newline="")
    with gzip.open(tmp_path / "b.log.gz", "wt", newline="") as file:
        file.write(LINES[name])
    found = here(tmp_path, format, port)
    assert found is not None and len(found) >= 4
    assert comparable(found) == comparable(on_spark(spark, tmp_path, format, port))
    log = read_small_log([str(tmp_path)], format, port=port)
    assert log is not None and log.contents == contents(load(spark, [str(tmp_path)], format, port=port))


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind not in ("zeek", "vpcflow")])
def test_a_plan_made_here_is_the_one_that_spark_makes(spark: Any, tmp_path: Path, kind: str) -> None:
    format, write = FORMATS[kind]
    for number in range(3):
        write(tmp_path / f"{number}", random_log(number, count=200))
    log = read_small_log([str(tmp_path)], format)
    assert log is not None
    source = load(spark, [str(tmp_path)], format)
    first = plan(log, CANDIDATES)
    incident = LogPeriod(first.first, first.first + (first.last - first.first) / 2)
    for candidates, compared in ((CANDIDATES, incident), ([], None)):
        mine = plan(log, candidates, incident=compared).as_json()
        assert mine == plan(source, candidates, incident=compared).as_json()


def test_parquet_of_several_kinds(spark: Any, tmp_path: Path) -> None:
    tables = {
        "s": pyarrow.table({
            "ip": ["10.0.0.1", "x", None], "opened_at": [1767607200, 1767607201, 1], "closed_at": [1767607202, None, 2],
        }),
        "t": pyarrow.table({
            "ip": pyarrow.array(["10.0.0.1", "::ffff:10.0.0.1"]).dictionary_encode(),
            "opened_at": pyarrow.array([1_767_607_200_000_001, None], pyarrow.timestamp("us", "UTC")),
            "listener": pyarrow.array(["A", None]),
        }),
        "n": pyarrow.table({
            "ip": ["10.0.0.1"], "opened_at": pyarrow.array([1_767_607_200_000], pyarrow.timestamp("ms")),
        }),
    }  # fmt: skip
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pyarrow.parquet.write_table(table, tmp_path / name / "a.parquet")
        assert comparable(here(tmp_path / name, "parquet")) == comparable(on_spark(spark, tmp_path / name, "parquet"))


def test_journal_is_planned_here_as_on_spark(spark: Any, tmp_path: Path) -> None:
    Storm(3).run(80).write(tmp_path)
    found = here(tmp_path, "journal")
    assert found is not None and any(row[2] is None for row in found)
    assert comparable(found) == comparable(on_spark(spark, tmp_path, "journal"))
    log = read_small_log([str(tmp_path)], "journal")
    assert log is not None
    assert plan(log, CANDIDATES).as_json() == plan(load(spark, [str(tmp_path)], "journal"), CANDIDATES).as_json()


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "ip,opened_at\n10.0.0.1,soon\n"),
        ("csv", "ip,opened_at\n10.0.0.1,1e9\n"),
        ("csv", "ip,opened_at\n10.0.0.1,1.1234567\n"),
        ("csv", 'ip,opened_at\n"10.0.0.1,",1\n'),
        ("csv", 'ip,opened_at\n10.0.0.1,1""\n'),
        ("csv", "ip,opened_at\n10.0.0.1,1,2\n"),
        ("csv", "ip,when\n10.0.0.1,1\n"),
        ("csv", "ip,opened_at,duration_ms\n10.0.0.1,1,0.0001\n"),
        ("zeek", "hello\n"),
        ("zeek", ZEEK + ZEEK),
        ("zeek", ZEEK.replace("id.orig_h", "x") + "1\tC\t1\t1\t1\t1\ttcp\t1\n"),
        ("zeek", ZEEK + "1\tC\t10.0.0.1\tport\t1\t1\ttcp\t1\n"),
        ("zeek", "[1]\n"),
        ("haproxy", "10.0.1.2:1 [31/Feb/2009:12:12:51] fnt b/s 0/0/7 212 -- 0/0\n"),
        ("parquet", "hello"),
        ("csv", ""),
    ],
)
def test_what_is_not_plain_is_left_to_spark(tmp_path: Path, format: str, text: str) -> None:
    (tmp_path / "a").write_text(text)
    assert read_small_log([str(tmp_path)], format) is None


def test_patterns_and_places_elsewhere_are_left_to_spark(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ip,opened_at\n10.0.0.1,1\n")
    assert read_small_log([str(tmp_path / "*.csv")], "csv") is None
    assert read_small_log(["hdfs://h/a.csv"], "csv") is None
    assert read_small_log([str(tmp_path / "b.csv")], "csv") is None
    assert read_small_log([str(tmp_path / "a.csv")], "csv") is not None


def test_a_journal_without_connections_is_told_without_names_of_its_folders(tmp_path: Path) -> None:
    parts, aside = tmp_path / "journal", tmp_path / "aside"
    for each in (parts, aside):
        each.mkdir()
    Storm(0).write(parts)
    log = read_small_log([str(parts), str(aside)], "journal")
    assert log is not None
    with pytest.raises(PipelineError, match=r"^There is no connection in this journal\.$"):
        _ = log.contents
