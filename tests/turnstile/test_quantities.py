"""How numbers are spelled for people: the same in Python and on the live page."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

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
    "level": lambda case: quantities.level(*case).value,
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
