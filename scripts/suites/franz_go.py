"""franz-go's own integration tests: those of pkg/kgo that talk to a cluster.

The module comes from the Go proxy; scripts/suites/franz-go/go.sum holds its hash, and the module's go.sum those of what it needs.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from scripts.peers.servers import find_go
from scripts.suites.suite import BUILD, CannotRun, Outcome, Results, Suite, Target, built, limited

HERE = Path(__file__).resolve().parent / "franz-go"
MODULE = "github.com/twmb/franz-go"
RECORDS = 50_000
"""Through each chain of consumers; the suite's default is ten times as many."""
VERSION = re.search(rf"{MODULE} (v\S+)", (HERE / "go.mod").read_text())[1]  # type: ignore[index]
_BINARY = BUILD / "franz-go" / "kgo.test"
_PACKAGE = BUILD / "franz-go" / "source" / "pkg" / "kgo"
_TALKS = re.compile(r"\b(newTestClient|adm|tmpTopic|tmpTopicPartitions|testChainETL)\(")


def prepare() -> None:
    """Raises CannotRun."""
    if _BINARY.exists():
        return
    go = find_go()
    if go is None:
        raise CannotRun("Go is not installed")
    found = json.loads(built([go, "mod", "download", "-json", MODULE], HERE))
    source = _PACKAGE.parents[1]
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(found["Dir"], source, copy_function=shutil.copyfile)
    for folder in (source, *source.rglob("*/")):
        folder.chmod(0o755)
    built([go, "test", "-c", "-o", str(_BINARY), "."], _PACKAGE)


def integration_tests() -> list[str]:
    """The tests whose own code asks for a client of the test cluster."""
    names = []
    for path in sorted(_PACKAGE.glob("*_test.go")):
        for function in re.split(r"^(?=func )", path.read_text(), flags=re.M):
            named = re.match(r"func (Test\w+)\(t \*testing\.T\)", function)
            if named and _TALKS.search(function):
                names.append(named[1])
    return names


def run(target: Target, only: str, limit_s: float) -> Results:
    """Tests and their subtests, as Go names them."""
    chosen = [name for name in integration_tests() if only in name]
    output = target.folder / "output.txt"
    limited(
        [str(_BINARY), "-test.v", f"-test.run=^({'|'.join(chosen)})$", f"-test.timeout={limit_s:.0f}s"],
        output, limit_s + 10, cwd=_PACKAGE,
        env={"KGO_SEEDS": target.bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS), "KGO_LOG_LEVEL": "none"},
    )  # fmt: skip
    return read(output.read_text(errors="replace"), chosen)


_ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \(", re.M)
_BEGUN = re.compile(r"^=== RUN\s+(\S+)$", re.M)
_OUTCOMES: dict[str, Outcome] = {"PASS": "pass", "FAIL": "fail", "SKIP": "skip"}


def read(output: str, chosen: list[str]) -> Results:
    """The results in the output of `go test -v`; a test that began and did not end has failed."""
    results: Results = dict.fromkeys((*chosen, *_BEGUN.findall(output)), "fail")
    return {**results, **{name: _OUTCOMES[word] for word, name in _ENDED.findall(output)}}


SUITE = Suite("franz-go", "franz-go (`pkg/kgo`)", VERSION, prepare, run)
