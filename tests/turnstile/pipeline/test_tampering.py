"""Each way to tamper with a journal gets the verdict that docs/audit.md says, and no other check finds a violation by mistake."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import tampering
from storms import write
from tampering import EXCEEDED, HELD, NOT_JUSTIFIED, UNKNOWN, Tampering
from tampering_table import TABLE, rows

from turnstile.pipeline.audit.audit import audit
from turnstile.pipeline.audit.audit_result import AuditResult
from turnstile.pipeline.events.journal import EVENTS, Journal, here
from turnstile.pipeline.events.rows import RowsHere

FINDINGS = (EXCEEDED, NOT_JUSTIFIED)
DOCS = Path(__file__).parents[3] / "docs" / "audit.md"


def judged(events: tampering.Events) -> AuditResult:
    return audit(Journal(RowsHere(pyarrow.Table.from_pylist(events, EVENTS)), [], is_live=False))


@pytest.mark.parametrize("name", ["caps", "tokens", "rates", "quotas"])
def test_an_honest_journal_holds(name: str) -> None:
    result = judged(tampering.copied(name))
    assert {check.verdict for check in result.checks} == {HELD}, [
        check for check in result.checks if check.verdict != HELD
    ]


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_each_tampering_gets_its_verdict(one: Tampering) -> None:
    result = judged(one.how(tampering.copied(one.journal)))
    verdicts = {check.name: check.verdict for check in result.checks}
    told = {check.name: (check.verdict, check.detail) for check in result.checks if check.verdict != HELD}
    assert result.verdict == one.verdict, told
    if one.check:
        assert verdicts[one.check] == one.verdict, told
    if one.verdict == UNKNOWN:
        assert not set(FINDINGS) & set(verdicts.values()), told


def in_parts(folder: Path, size: int = 20) -> list[Path]:
    """An honest journal as parts, each of one process, named as a cluster names them."""
    folder.mkdir()
    paths = []
    of: dict[tampering.Place, tampering.Events] = {}
    for event in tampering.copied("caps"):
        of.setdefault(tampering.place_of(event), []).append(event)
    for place, events in sorted(of.items()):
        ordered = sorted(events, key=lambda event: event["seq"])
        for first in range(0, len(ordered), size):
            write(folder / "aside", ordered[first : first + size])
            name = "b{}-s{}-e{:06}-{:012}.parquet".format(*place, ordered[first]["seq"])
            paths.append((folder / "aside" / "0.parquet").rename(folder / name))
    (folder / "aside").rmdir()
    return paths


def without_a_column(path: Path) -> None:
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table.drop_columns(["mono_ns"]), path)


def with_a_damaged_page(path: Path) -> None:
    """Pages carry checksums, as the converter writes them."""
    table = pyarrow.parquet.read_table(path)
    pyarrow.parquet.write_table(table, path, write_page_checksum=True, compression="none")
    column = pyarrow.parquet.read_metadata(path).row_group(0).column(table.schema.get_field_index("conn"))
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a part is gone": (Path.unlink, UNKNOWN),
    "a part is empty": (lambda path: path.write_bytes(b""), UNKNOWN),
    "a part is cut": (lambda path: path.write_bytes(path.read_bytes()[:-50]), UNKNOWN),
    "a part is text": (lambda path: path.write_text("hello"), UNKNOWN),
    "a part has a damaged page": (with_a_damaged_page, UNKNOWN),
    "a part lacks a column": (without_a_column, UNKNOWN),
    "a part is of something else": (lambda path: pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), path), UNKNOWN),
    "a part is there twice": (lambda path: shutil.copy(path, path.with_name("copy.parquet")), UNKNOWN),
    "a part has another name": (lambda path: path.rename(path.with_name("other.parquet")), HELD),
    "a foreign file lies beside the parts": (lambda path: path.with_name("notes.txt").write_text("hello"), HELD),
}


@pytest.mark.parametrize("name", FILES)
def test_each_way_to_tamper_with_a_file_gets_its_verdict(name: str, tmp_path: Path) -> None:
    paths = in_parts(tmp_path / "journal")
    tamper, verdict = FILES[name]
    tamper(paths[len(paths) // 2])
    journal = here([tmp_path / "journal"])
    assert journal is not None
    result = audit(journal)
    assert result.verdict == verdict, [check for check in result.checks if check.verdict != HELD]


def test_the_documentation_lists_each_of_them() -> None:
    assert len(TABLE) >= 86
    assert len({one.name for one in TABLE}) == len(TABLE)
    lines = set(DOCS.read_text().splitlines())
    wanted = [*rows(), *(f"| {name} | {verdict} | |" for name, (_, verdict) in FILES.items())]
    assert [row for row in wanted if row not in lines] == []
