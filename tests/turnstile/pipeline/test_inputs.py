"""Inputs: every format becomes the same connections; what can't be used is put aside with its reason."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from storms import Storm

from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs import addresses
from turnstile.pipeline.inputs.connection_logs import Input, contents, explained, load

FIELDS = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto duration orig_bytes resp_bytes"
ZEEK = "#separator \\x09\n#unset_field\t-\n#fields\t" + FIELDS.replace(" ", "\t") + "\n"


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def rows(found: Input) -> list[tuple[Any, ...]]:
    names = ("ip", "port", "opened_at", "closed_at", "listener", "bytes")
    return sorted(tuple(row[name] for name in names) for row in found.connections.collect())


def reasons(found: Input) -> dict[str, int]:
    return contents(found).reasons


def test_zeek_tsv_with_broken_rows(spark: Any, tmp_path: Path) -> None:
    good = "1000.5\tC1\t::FFFF:10.0.0.1\t50000\t10.9.0.1\t9092\ttcp\t2.25\t10\t-\n"
    single = "1001.000001\tC2\t2001:DB8::1\t50001\t10.9.0.1\t9092\ttcp\t-\t-\t-\n"
    bad = [
        "1002\tC3\t10.0.0.1\n",
        "1002\tC3\tnowhere\t1\t10.9.0.1\t9092\ttcp\t1\t1\t1\n",
        "yesterday\tC3\t10.0.0.1\t1\t10.9.0.1\t9092\ttcp\t1\t1\t1\n",
        "1002\tC3\t10.0.0.1\t1\t10.9.0.1\t9092\tudp\t1\t1\t1\n",
        "1002\tC3\t10.0.0.1\t1\t10.9.0.1\t443\ttcp\t1\t1\t1\n",
        "1002\tC3\t10.0.0.1\t1\t10.9.0.1\t9092\ttcp\tlong\t1\t1\n",
    ]
    path = tmp_path / "conn.log"
    path.write_text(ZEEK + good + "".join(bad) + single + "#close\t2026-01-05\n")
    found = load(spark, [str(path)], "zeek", port=9092)
    assert rows(found) == [
        ("10.0.0.1", 50000, at(1000.5), at(1002.75), "PLAINTEXT", 10),
        ("2001:db8::1", 50001, at(1001.000001), at(1001.000001), "PLAINTEXT", 0),
    ]
    assert reasons(found) == {
        "3 fields instead of 10": 1, "the client address is not an IP address": 1, "no time of opening": 1, "not TCP": 1,
        "not to port 9092": 1, "the duration is not a number": 1,
    }  # fmt: skip
    assert {row["raw"] for row in found.bad.collect()} == {line.rstrip("\n") for line in bad}


def test_zeek_files_with_other_fields_and_compressed(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(ZEEK + "1\tC\t10.0.0.1\t1\t10.9.0.1\t9092\ttcp\t1\t1\t1\n")
    with gzip.open(tmp_path / "b.log.gz", "wt") as file:
        file.write("#fields\tid.orig_h\tts\tduration\n10.0.0.2\t2\t3\n")
    first = load(spark, [str(tmp_path)], "zeek")
    assert contents(first).total == 2 and first.again is not None
    found = first.again()  # as `contents` did, once it had met another layout
    assert [row[0] for row in rows(found)] == ["10.0.0.1", "10.0.0.2"]
    assert rows(found)[1][2:4] == (at(2), at(5))


def test_zeek_json_is_read_as_connections(spark: Any, tmp_path: Path) -> None:
    line = {
        "ts": 1591367999.305988,
        "id.orig_h": "10.0.0.1",
        "id.orig_p": 5,
        "id.resp_p": 9092,
        "proto": "tcp",
        "duration": 0.5,
    }
    (tmp_path / "conn.json").write_text(json.dumps(line) + "\n" + json.dumps(line)[:40] + "\n")
    found = load(spark, [str(tmp_path)], "zeek")
    assert rows(found) == [("10.0.0.1", 5, at(1591367999.305988), at(1591367999.805988), "PLAINTEXT", 0)]
    assert reasons(found) == {"not a JSON object": 1}


def test_haproxy_log_is_read_and_other_lines_counted(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "haproxy.log"
    path.write_text(
        "Feb  6 12:12:56 localhost haproxy[14387]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 "
        "-- 0/0/0/0/3 0/0\nFeb  6 12:12:57 localhost haproxy[14387]: Proxy fnt started.\n"
    )
    found = load(spark, [str(path)], "haproxy")
    opened = datetime(2009, 2, 6, 12, 12, 51, 443_000)
    assert rows(found) == [("10.0.1.2", 33313, opened, opened.replace(second=56, microsecond=450_000), "fnt", 212)]
    assert reasons(found) == {"not a line of HAProxy's TCP log": 1}


def test_vpc_flow_logs_join_the_windows_of_one_connection(spark: Any, tmp_path: Path) -> None:
    def line(source: str, port: int, start: int, end: int, *, towards: int = 9092, action: str = "ACCEPT") -> str:
        return f"2 123456789010 eni-1 {source} 10.9.0.1 {port} {towards} 6 10 100 {start} {end} {action} OK\n"

    path = tmp_path / "flow.log"
    path.write_text(
        "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start end action log-status\n"
        + line("10.0.0.1", 40000, 1000, 1060) + line("10.0.0.1", 40000, 1060, 1120) + line("10.0.0.1", 40000, 9000, 9060)
        + line("10.0.0.2", 40000, 1000, 1060, action="REJECT") + line("10.0.0.3", 9092, 1000, 1060, towards=40000)
        + "2 123456789010 eni-1 - - - - - - - 1431280876 1431280934 - NODATA\n"
    )  # fmt: skip
    found = load(spark, [str(path)], "vpcflow")
    assert rows(found) == [
        ("10.0.0.1", 40000, at(1000), at(1120), "PLAINTEXT", 200),
        ("10.0.0.1", 40000, at(9000), at(9060), "PLAINTEXT", 100),
    ]
    assert reasons(found) == {"rejected by the network": 1, "from server to client": 1, "log-status NODATA": 1}


def test_csv_and_parquet_with_a_mapping(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_text("src,start,secs\n10.0.0.1,2026-01-05T10:00:00Z,1.5\n10.0.0.1,later,1\n")
    mapping = {"ip": "src", "opened_at": "start", "duration_s": "secs"}
    found = load(spark, [str(tmp_path / "c")], "csv", columns=mapping)
    opened = datetime(2026, 1, 5, 10)
    assert [row[:4] for row in rows(found)] == [
        ("10.0.0.1", None, opened, opened.replace(second=1, microsecond=500_000))
    ]
    assert reasons(found) == {"no time of opening": 1}
    found.connections.select("ip", "opened_at", "closed_at").write.parquet(str(tmp_path / "p"))
    assert [row[:4] for row in rows(load(spark, [str(tmp_path / "p")], "parquet"))] == [row[:4] for row in rows(found)]
    with pytest.raises(PipelineError, match="no column 'source_ip' for ip; there are: src, start, secs"):
        load(spark, [str(tmp_path / "c")], "csv", columns={"ip": "source_ip"})


def test_journal_is_read_as_its_admitted_connections(spark: Any, tmp_path: Path) -> None:
    storm = Storm(3).run(80)
    found = load(spark, [str(storm.write(tmp_path))], "journal")
    admitted = [event for event in storm.events if event["kind"] == "admitted"]
    assert contents(found).total == len(admitted) > 10
    assert sorted(row[1] for row in rows(found)) == sorted(event["port"] for event in admitted)


@pytest.mark.parametrize(
    ("name", "text", "format", "sentence"),
    [
        ("a.log", "", "zeek", "There is nothing in"),
        ("a.log", "hello\nworld\n", "zeek", "is not a Zeek conn.log"),
        ("a.log", ZEEK + "hello\n", "zeek", "None of the 1 rows"),
        ("a.log", "hello\n", "haproxy", "1 of them: not a line of HAProxy's TCP log"),
        ("a.csv", "a,b\n1,2\n", "csv", "No column gives ip"),
        ("a.parquet", "PAR1 cut off", "parquet", "is not a whole Parquet file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    spark: Any, tmp_path: Path, name: str, text: str, format: str, sentence: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PipelineError, match=sentence) as raised:
        contents(load(spark, [str(tmp_path)], format))
    assert "\n" not in str(raised.value)


class _AsksTheJvm(Py4JError):  # type: ignore[misc]  # py4j has no types
    def __str__(self) -> str:
        raise Py4JNetworkError("Error while sending or receiving")


@pytest.mark.parametrize("error", [Py4JNetworkError("Error while sending or receiving"), _AsksTheJvm("")])
def test_the_end_of_the_jvm_is_no_fault_of_the_log(error: Exception) -> None:
    with pytest.raises(PipelineError, match=r"^Spark's JVM ended while the job ran"), explained(["a.log"], "csv"):
        raise error


def test_missing_and_empty_places(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="There is no "):
        load(spark, [str(tmp_path / "nowhere")], "zeek")
    with pytest.raises(PipelineError, match="There is nothing in"):
        contents(load(spark, [str(tmp_path)], "zeek"))
    with gzip.open(tmp_path / "whole.gz", "wt") as file:
        file.write(ZEEK + "1\tC\t10.0.0.1\t1\t10.9.0.1\t9092\ttcp\t1\t1\t1\n" * 5000)
    whole = (tmp_path / "whole.gz").read_bytes()
    (tmp_path / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PipelineError, match="is cut off"):
        contents(load(spark, [str(tmp_path / "cut.log.gz")], "zeek"))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("10.0.0.1", "10.0.0.1"),
        (" ::FFFF:10.0.0.1", "10.0.0.1"),
        ("::ffff:0a00:1", "10.0.0.1"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::", "::"),
        ("10.0.0.256", None),
        ("10.0.0.01", None),
        ("10.0.0", None),
        (":", None),
        ("1:2:3:4:5:6:7:8:9", None),
        ("", None),
        ("nowhere", None),
        ("10.0.0.1\0", None),
    ],
)
def test_an_address_in_any_spelling(text: str, spelled: str | None) -> None:
    found = addresses.parse(text)
    assert (addresses.name(*found) if found else None) == spelled


def test_networks_are_24s_of_ipv4_and_64s_of_ipv6() -> None:
    texts = pyarrow.array(
        ["10.0.0.1", "10.0.0.255", "::ffff:10.0.1.1", "2001:db8:0:1::1", "2001:db8:0:1:2::1", "2001:db8::", None, "x"]
    )
    high, low, is_address = addresses.numbers(texts)
    assert is_address.tolist() == [True] * 6 + [False] * 2
    found, places = addresses.Addresses.of(high[:6], low[:6])
    v4, v6 = found.networks(places)
    assert [len(v4), len(v6)] == [2, 2]
    assert sorted(found) == sorted(addresses.name(*addresses.parse(each)) for each in texts.to_pylist()[:6])


def test_a_number_of_a_time_is_read_by_its_size(spark: Any, tmp_path: Path) -> None:
    seconds = "1767607200.25"
    spelled = [seconds, "1767607200250", "1767607200250000", "1767607200250000000", "2026-01-05T10:00:00.25Z"]
    (tmp_path / "a.csv").write_text("ip,opened_at\n" + "".join(f"10.0.0.1,{each}\n" for each in spelled))
    assert {row[2] for row in rows(load(spark, [str(tmp_path)], "csv"))} == {at(1767607200.25)}


def test_a_port_is_refused_where_the_log_has_none(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ip,opened_at,towards\n10.0.0.1,1000,9092\n10.0.0.2,1000,443\n10.0.0.3,1000,\n")
    with pytest.raises(PipelineError, match="--port is of no use with --format haproxy"):
        load(spark, [str(tmp_path)], "haproxy", port=9092)
    with pytest.raises(PipelineError, match="--columns server_port="):
        load(spark, [str(tmp_path)], "csv", port=9092)
    found = load(spark, [str(tmp_path)], "csv", columns={"server_port": "towards"}, port=9092)
    assert [row[0] for row in rows(found)] == ["10.0.0.1"]
