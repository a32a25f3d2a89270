"""kafka-python's own integration tests, from its source distribution, in an environment with the compression libraries.

The distribution lacks two files that the tests need: an empty __init__.py, and one for which kafka-python/service.py stands in.
scripts/suites/kafka-python/requirements.txt has the hashes of all that is installed.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

from scripts.peers import jars
from scripts.suites.sources import pypi_sdist
from scripts.suites.suite import BUILD, Outcome, Results, Suite, Target, built, limited

HERE = Path(__file__).resolve().parent / "kafka-python"
PACKAGE, VERSION = "kafka-python", "3.0.12"
SHA256 = "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65"
_HOME = BUILD / "kafka-python"
_PYTHON = _HOME / "venv" / "bin" / "python"
_SOURCE = _HOME / "source"
# The tests of SASL and TLS start a broker of their own, from a Kafka distribution.
FILES = tuple(f"test/integration/test_{subject}_integration.py" for subject in ("admin", "consumer", "producer"))


def prepare() -> None:
    """Raises CannotRun."""
    if _SOURCE.exists():
        return
    unpacked = pypi_sdist(PACKAGE, VERSION, SHA256)
    _HOME.mkdir(parents=True, exist_ok=True)
    built([sys.executable, "-m", "venv", "--clear", str(_PYTHON.parents[1])], _HOME)
    requirements = str(HERE / "requirements.txt")
    built([str(_PYTHON), "-m", "pip", "install", "--quiet", "--require-hashes", "-r", requirements], _HOME)
    part = _SOURCE.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(unpacked, part)
    (part / "test" / "__init__.py").touch()
    shutil.copyfile(HERE / "service.py", part / "test" / "service.py")
    part.rename(_SOURCE)


def run(target: Target, only: str, limit_s: float) -> Results:
    """The result of each test, by pytest's name of it without the file."""
    report, first = target.folder / "junit.xml", target.bootstrap.partition(",")[0]
    limited(
        [str(_PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", only, f"--junitxml={report}", *FILES],
        target.folder / "output.txt", limit_s, cwd=_SOURCE,
        env={"PYTHONPATH": str(_SOURCE), "KAFKA_VERSION": jars.VERSION, "KAFKA_URI": f"kafka://{first}", "KAFKA_ROOT": "/"},
    )  # fmt: skip
    names = re.findall(r"^\S+::(\S+)", (target.folder / "output.txt").read_text(errors="replace"), re.M)
    return {**dict.fromkeys(names, "fail"), **read(report)}


def read(report: Path) -> Results:
    """The results in pytest's JUnit report; a run that was cut short wrote none."""
    if not report.exists():
        return {}
    return {case.attrib["name"]: _outcome(case) for case in ElementTree.parse(report).iter("testcase")}


def _outcome(case: ElementTree.Element) -> Outcome:
    if case.find("failure") is not None or case.find("error") is not None:
        return "fail"
    return "pass" if case.find("skipped") is None else "skip"


SUITE = Suite("kafka-python", "kafka-python", VERSION, prepare, run)
