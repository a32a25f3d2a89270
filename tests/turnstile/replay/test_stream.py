"""`turnstile replay`: reading lines, answering in order, exit codes."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnstile.replay.stream import ReplayError, replay, run

SCENARIO = """\
{"at":0,"do":"setup","listeners":["EXTERNAL","INTERNAL"],"inter_broker":"INTERNAL"}
{"at":0,"do":"set","name":"listener.name.external.max.connections","value":"1"}

  {"at":12,"do":"connect","id":"a\\"ä","ip":"10.0.0.1","listener":"EXTERNAL"}
{"at":13,"do":"connect","id":"b","ip":"10.0.0.1","listener":"EXTERNAL"}
{"at":14,"do":"connect","id":"c","ip":"10.0.0.1","listener":"INTERNAL"}
{"at":15,"do":"record","quota":"produce","user":"alice","client_id":"app","amount":1000}
{"at":40,"do":"close","id":"a\\"ä"}
{"at":41,"do":"connect","id":"d","ip":"10.0.0.1","listener":"EXTERNAL"}
"""

ANSWERS = """\
{"id":"a\\"\\u00e4","outcome":"admitted","at":12,"reason":null}
{"id":"b","outcome":"admitted","at":40,"reason":null}
{"id":"c","outcome":"admitted","at":14,"reason":null}
{"outcome":"accepted","throttle_ms":0}
{"id":"d","outcome":"waiting","at":null,"reason":"listener_cap"}
"""


def test_answers_come_in_input_order_and_to_the_letter() -> None:
    assert "".join(answer + "\n" for answer in replay(SCENARIO.splitlines(keepends=True))) == ANSWERS


def test_answers_come_as_soon_as_all_before_them_are_decided() -> None:
    read: list[int] = []

    def watched() -> Iterator[str]:
        for number, line in enumerate(SCENARIO.splitlines(), 1):
            read.append(number)
            yield line

    answers = replay(watched())
    next(answers)
    assert read[-1] == 4  # the first connect
    next(answers)
    assert read[-1] == 8  # the close that lets the second one in


def test_lines_may_be_bytes_and_end_as_they_like() -> None:
    as_bytes = [line.encode() + b"\r\n" for line in SCENARIO.splitlines()]
    assert list(replay(as_bytes)) == ANSWERS.splitlines()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "it is not JSON: Expecting value at column 1"),
        (b'{"at":0,', "it is not JSON"),
        (b'{"at":0,"do":"close","id":"a"} {}', "more than one JSON object"),
        (b'{"at":0,"do":"close","id":"a"},', "more than one JSON object"),
        (b"[1]", "it is not a JSON object"),
        (b"null", "it is not a JSON object"),
        (b'{"at":NaN,"do":"close"}', "NaN is not JSON"),
        (b'{"at":0,"do":"\xff"}', "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"at":' + b"9" * 5000 + b',"do":"close"}', "4300"),
    ],
)
def test_a_line_that_cannot_be_read_ends_the_run_with_its_number(line: bytes, why: str) -> None:
    before = b'{"at":0,"do":"connect","id":"x","ip":"::1"}'
    answers = replay([before, b"", line, before])
    assert json.loads(next(answers))["id"] == "x"
    with pytest.raises(ReplayError) as error:
        list(answers)
    assert error.value.line == 3
    assert why in error.value.why


def test_run_answers_a_file_and_ends_with_0(tmp_path: Path) -> None:
    path, out, err = tmp_path / "scenario.jsonl", io.StringIO(), io.StringIO()
    path.write_text(SCENARIO, encoding="utf-8")
    assert run(str(path), out, err) == 0
    assert out.getvalue() == ANSWERS
    assert err.getvalue() == ""


def test_run_names_the_bad_line_after_the_answers_before_it_and_ends_with_2(tmp_path: Path) -> None:
    path, out, err = tmp_path / "scenario.jsonl", io.StringIO(), io.StringIO()
    path.write_text('{"at":0,"do":"connect","id":"x","ip":"::1"}\noops\n')
    assert run(str(path), out, err) == 2
    assert json.loads(out.getvalue())["outcome"] == "admitted"
    assert err.getvalue() == f"{path}:2: it is not JSON: Expecting value at column 1\n"


def test_run_says_which_change_was_refused_and_goes_on() -> None:
    out, err = io.StringIO(), io.StringIO()
    assert run(['{"at":0,"do":"set","name":"max.connections","value":"0"}'], out, err) == 0
    assert err.getvalue() == (
        "scenario:1: not changed: max.connections cannot be '0': it must be at least 1 while the cluster runs.\n"
    )


def test_run_says_so_when_there_is_no_such_file(tmp_path: Path) -> None:
    err = io.StringIO()
    assert run(str(tmp_path / "none.jsonl"), io.StringIO(), err) == 2
    assert "No such file" in err.getvalue()


def test_two_of_kafkas_cases_that_are_no_scenario() -> None:
    """testFailWhenNoListeners and testFailDecrementForUnknownIp: to Kafka both are errors, not decisions."""
    with pytest.raises(ReplayError, match="listener"):
        list(replay(['{"at":0,"do":"connect","id":"x","ip":"10.0.0.1","listener":"NONE"}']))
    with pytest.raises(ReplayError, match="there is no connection"):
        list(replay(['{"at":0,"do":"close","id":"x"}']))
