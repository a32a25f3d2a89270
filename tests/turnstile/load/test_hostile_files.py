"""Hostile scenario files and connection logs: a sentence, or a line left out, never a traceback."""

import gzip

import pytest

from turnstile.load import connlog
from turnstile.load.connlog import LONGEST, replay
from turnstile.load.scenario_file import read
from turnstile.load.sources import Sources
from turnstile.load.spec import SpecInvalid

SOURCES = Sources("127.1.0.0/24")
ZEEK = "#separator \\x09\n#fields\tts\tid.orig_h\tduration\n"
CSV = "ip,opened_at,closed_at\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b'title = "a\0b"', "Illegal character"),
        ('title = "x"'.encode("utf-16"), "can't decode"),
        (b"[[group]]\nclients = 1\nrate = inf\n", "rate must be a number of more than 0, and not endless"),
        (b"[[group]]\nclients = 1\nhold_s = nan\n", "hold_s must be a number of at least 0"),
        (b"[[group]]\nclients = 1\nduration_s = inf\n", "duration_s must be a number of more than 0, and not endless"),
        (b"[[group]]\nclients = 1\npause_s = inf\n", "pause_s can't be endless"),
    ],
)
def test_a_scenario_that_can_not_be_run_is_a_sentence(tmp_path, text, says):
    file = tmp_path / "s.toml"
    file.write_bytes(text)
    with pytest.raises(SpecInvalid, match=says):
        read(file)


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (ZEEK + "1.0\t10.0.0.1\t" + "9" * (3 * LONGEST) + "\n2.0\t10.0.0.2\t1\n", 1),
        (ZEEK + "\0" * 9 + "\n1.0\t\0\t\0\n2.0\t10.0.0.2\t1\n", 2),
        (ZEEK + "nan\t10.0.0.1\t1\ninf\t10.0.0.1\t1\n1.0\t10.0.0.1\tnan\n2.0\t10.0.0.2\t1\n", 3),
        (CSV + "9" * 200_000 + ",1,2\n10.0.0.2,2,3\n", 1),
        (CSV + "9" * (3 * LONGEST) + ",1,2\n10.0.0.2,2,3\n", 1),
        (CSV + '"10.0.0.1,1,2\n' + "10.0.0.1,1,2\n" * 20_000 + "10.0.0.2,2,3\n", 1),
    ],
    ids=["10 MB line", "NULs", "no times", "field", "10 MB field", "quote without end"],
)
def test_lines_that_can_not_be_read_are_left_out_and_counted(tmp_path, text, left_out):
    file = tmp_path / "log"
    file.write_text(text)
    scenario = replay(file, SOURCES)
    assert f"{left_out:,} lines left out" in scenario.title
    assert scenario.groups[0].clients >= 1 and max(scenario.groups[0].recorded.at_s) < 1e6


def test_a_line_without_end_is_never_in_memory_as_a_whole():
    class Endless:
        """A file of one line. `most`: the most that was read at a time."""

        left = 50 * LONGEST
        most = 0

        def readline(self, size):
            self.most = max(self.most, size)
            size = min(size, self.left)
            self.left -= size
            return "x" * size

    file = Endless()
    assert list(connlog._lines(file)) == [connlog.TOO_LONG]
    assert (file.left, file.most) == (0, LONGEST)


def test_a_compressed_log_is_no_log(tmp_path):
    file = tmp_path / "conn.log.gz"
    file.write_bytes(gzip.compress(b"\0" * 1_000_000))
    with pytest.raises(SpecInvalid, match="neither a Zeek"):
        replay(file, SOURCES)
