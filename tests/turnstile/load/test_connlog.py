import gzip

import pytest

from turnstile.load.connlog import replay
from turnstile.load.sources import Sources
from turnstile.load.spec import SpecInvalid

ZEEK = """\
#separator \\x09
#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tduration
#types\ttime\tstring\taddr\tport\taddr\tport\tinterval
1700000010.5\tC2\t10.0.0.2\t5000\t10.9.9.9\t9092\t4.0
1700000000.5\tC1\t10.0.0.1\t5000\t10.9.9.9\t9092\t-
1700000020.5\tC3\t10.0.0.2\t5001\t10.9.9.9\t9092\t1.0
broken line
#close\t2023-11-14-22-13-20
"""


@pytest.fixture
def log(tmp_path):
    def write(text):
        path = tmp_path / "conn.log"
        path.write_text(text)
        return path

    return write


def test_zeek_connections_in_order_of_their_start_and_as_fast_as_asked(log):
    scenario = replay(log(ZEEK), Sources("127.1.0.0/24"), speed=10)
    recorded = scenario.groups[0].recorded
    assert list(recorded.at_s) == pytest.approx([0.0, 1.0, 2.0])
    assert list(recorded.hold_s) == pytest.approx([0.0, 0.4, 0.1])
    assert list(recorded.address) == [0, 1, 1]
    assert "1 lines left out" in scenario.title


def test_csv_with_iso_times_or_seconds(log):
    text = "opened_at,closed_at,ip\n2026-01-01T00:00:00Z,2026-01-01T00:00:02Z,a\n1767225605,,b\nnever,,c\n"
    recorded = replay(log(text), Sources("127.1.0.0/24")).groups[0].recorded
    assert list(recorded.at_s) == [0.0, 5.0]
    assert list(recorded.hold_s) == [2.0, 0.0]


def test_more_addresses_than_sources_is_said(log):
    text = "opened_at,closed_at,ip\n1,2,a\n2,3,b\n3,4,c\n"
    assert "3 addresses share 2 sources" in replay(log(text), Sources("127.1.0.0/31")).title


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n", "neither"),
        ("opened_at,closed_at,ip\n", "no connections"),
        ("#separator \\x09\n#fields\tts\tuid\n", "is it conn.log"),
    ],
)
def test_what_is_no_log_is_said(log, text, says):
    with pytest.raises(SpecInvalid, match=says):
        replay(log(text), Sources("127.1.0.0/24"))


def test_a_compressed_log_is_read_also_of_several_members(tmp_path):
    path = tmp_path / "conn.csv.gz"
    path.write_bytes(gzip.compress(b"opened_at,closed_at,ip\n1,2,a\n") + gzip.compress(b"2,3,b\n"))
    assert list(replay(path, Sources("127.1.0.0/24")).groups[0].recorded.address) == [0, 1]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SpecInvalid, match="cut off or damaged"):
        replay(path, Sources("127.1.0.0/24"))
    path.write_bytes(path.read_bytes()[:20] + b"rubbish" * 9)
    with pytest.raises(SpecInvalid, match="cut off or damaged"):
        replay(path, Sources("127.1.0.0/24"))


def test_a_bomb_of_many_lines_ends_at_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("turnstile.load.connlog.MOST", 1000)
    monkeypatch.setattr("turnstile.load.connlog.MOST_BAD", 1000)
    path = tmp_path / "conn.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"opened_at,closed_at,ip\n")
        for _ in range(2000):
            file.write(b"1,2,a\n" * 1000)
    with pytest.raises(SpecInvalid, match="more than 1,000 connections"):
        replay(path, Sources("127.1.0.0/24"))
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"opened_at,closed_at,ip\n1,2,a\n")
        for _ in range(2000):
            file.write(b"rubbish\n" * 1000)
    with pytest.raises(SpecInvalid, match="1,000 lines in a row without a connection"):
        replay(path, Sources("127.1.0.0/24"))
