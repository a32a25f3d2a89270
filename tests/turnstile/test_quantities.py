"""How numbers are spelled for people: the same in Python and on the live page."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, strategies

from shards.limits.utilisation import level
from turnstile import quantities

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests/support/quantities.json").read_text())
NODE = shutil.which("node")
IN_PYTHON = {
    "count": quantities.count,
    "perSecond": quantities.per_second,
    "byteRate": quantities.byte_rate,
    "percent": quantities.percent,
    "duration": quantities.duration,
    "use": lambda case: quantities.use(*case),
    "level": lambda case: level(*case).value,
    "written": quantities.written,
    "quota": lambda case: quantities.use(*case[1:], quantities.QUOTAS[case[0]]),
}
ON_THE_PAGE = """
import * as page from %s;
const CASES = %s;
const spell = (name, given) => name === "quota" ? page.use(given[1], given[2], page.QUOTAS[given[0]])
  : page[name](...(Array.isArray(given) ? given : [given]));
console.log(JSON.stringify(Object.fromEntries(Object.entries(CASES).map(([name, cases]) =>
  [name, cases.map(([given]) => [given, spell(name, given)])]))));
"""


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_spelled_as_the_table_says(name):
    assert [[given, IN_PYTHON[name](given)] for given, _ in CASES[name]] == CASES[name]


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_live_page_spells_numbers_as_the_command_does():
    module = (ROOT / "broker/admin/page/quantities.js").as_uri()
    script = ON_THE_PAGE % (json.dumps(module), json.dumps(CASES))
    run = subprocess.run([NODE, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == CASES


def test_every_quota_that_can_be_set_has_a_spelling():
    from shards.limits.quota_entities import CLIENT_KEYS

    assert {*CLIENT_KEYS} < quantities.QUOTAS.keys()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1000000", 1e6), ("1e6", 1e6), ("0.5", 0.5), ("-3", -3), ("1MB/s", 1e6), ("1 MB/s", 1e6), ("1.5M", 1.5e6), ("500kB", 5e5),
        ("500KB", 5e5), ("1KiB", 1024), ("2MiB/s", 2 << 20), ("1Gi", 1 << 30), ("100/s", 100), ("50%", 50), ("12.5 %", 12.5),
    ],
)  # fmt: skip
def test_a_written_number_is_read_with_its_unit(text: str, number: float) -> None:
    assert quantities.written(text) == number


@pytest.mark.parametrize("text", ["", "MB", "1 Mb", "1kiB", "1MB/h", "nan", "inf", "1,000", "..", "1 2"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        quantities.written(text)


@given(strategies.floats(min_value=0, max_value=1e15, allow_nan=False))
def test_what_is_displayed_is_read_back_to_three_digits(value: float) -> None:
    shown = quantities.byte_rate(value)
    assert quantities.byte_rate(quantities.written(shown)) == shown
