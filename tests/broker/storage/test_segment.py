"""A segment's sparse index against a walk over every batch, with few entries so that it has to thin out."""

from pathlib import Path

import pytest
from batches import batch, records_of, without_cut
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.storage import segment as segments
from broker.storage.files import OpenFiles
from broker.storage.records import PLACE, header_at
from broker.storage.recovery import rescan
from broker.storage.segment import DamagedSegment, LogSegment

BATCHES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 200), st.integers(0, 50)), min_size=1, max_size=40)


@pytest.fixture(autouse=True)
def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_ENTRIES", 4)
    monkeypatch.setattr(segments, "INDEX_INTERVAL_BYTES", 100)
    monkeypatch.setattr(segments, "LEAST_IN_FILE", 150)


def written(
    directory: Path, shapes: list[tuple[int, int, int]], files: OpenFiles | None = None
) -> tuple[LogSegment, list[bytes]]:
    """A segment from offset 100 on; shapes are (records, bytes of each, timestamp)."""
    made, offset, raws = LogSegment(str(directory), 100, OpenFiles() if files is None else files), 100, []
    for count, size, timestamp in shapes:
        raw = bytearray(batch(*[b"v" * size] * count, timestamps=[timestamp] * count))
        PLACE.pack_into(raw, 0, offset, len(raw) - 12, 0)
        made.note(header_at(raw, 0), offset)
        raws.append(bytes(raw))
        offset += count
    Path(made.path).write_bytes(b"".join(raws))
    return made, raws


@settings(max_examples=100)
@given(shapes=BATCHES, data=st.data())
def test_the_index_finds_what_a_walk_finds(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    files = OpenFiles()
    made, raws = written(tmp_path_factory.mktemp("log"), shapes, files)
    assert len(made.positions) <= 4
    starts = [sum(map(len, raws[:index])) for index in range(len(raws) + 1)]
    offsets = [records_of(raw)[0].offset for raw in raws] + [made.next_offset]

    offset = data.draw(st.integers(100, made.next_offset))
    index = next((i for i in range(len(raws)) if offset < offsets[i + 1]), len(raws))
    assert made.position_of(offset) == starts[index]

    timestamp = data.draw(st.integers(0, 60))
    late = [i for i, shape in enumerate(shapes) if shape[2] >= timestamp]
    assert [found.position for found in made.since(timestamp)] == [starts[i] for i in late]

    if index < len(raws):
        max_bytes, at_least_one = data.draw(st.integers(0, 2000)), data.draw(st.booleans())
        read, whole_bytes, behind = made.slice(starts[index], max_bytes, at_least_one)
        first_fits = len(raws[index]) <= max_bytes
        expected = max_bytes if first_fits else len(raws[index]) if at_least_one else 0
        assert read == b"".join(raws[index:])[:expected]
        assert read[:whole_bytes] == without_cut(read)
        if read:
            assert behind == offsets[starts.index(starts[index] + whole_bytes)]
        in_file, *where = made.slice(starts[index], max_bytes, at_least_one, in_file=True)
        assert isinstance(in_file, bytes) == (min(max_bytes, len(b"".join(raws[index:]))) < 150 or not first_fits)
        assert (bytes(in_file), *where) == (read, whole_bytes, behind)
    files.close()


@given(shapes=BATCHES)
def test_a_scan_and_a_sidecar_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, shapes: list[tuple[int, int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    made, raws = written(directory, shapes)
    made.save_sidecar()
    files = OpenFiles()
    scanned, loaded = (LogSegment(str(directory), 100, files) for _ in range(2))
    seen: list[int] = []
    assert rescan(scanned, files, lambda each: seen.append(each.batch.base_offset), closed=False) == ([scanned], 0)
    assert len(seen) == len(raws)
    assert loaded.load_sidecar()
    for other in (scanned, loaded):
        for name in ("size", "next_offset", "max_timestamp", "offsets", "positions", "before"):
            assert getattr(other, name) == getattr(made, name), name
    files.close()


def test_a_sidecar_of_another_size_is_not_believed(tmp_path: Path) -> None:
    made, _ = written(tmp_path, [(1, 10, 5)])
    made.save_sidecar()
    with Path(made.path).open("ab") as file:
        file.write(b"more")
    assert not LogSegment(str(tmp_path), 100, OpenFiles()).load_sidecar()


@pytest.mark.parametrize(
    ("at", "value"), [(0, b"\x7f"), (8, b"\xff\xff\xff\xff"), (8, b"\0\0\0\0"), (8, b"\x7f"), (16, b"\1")]
)
def test_a_header_that_cannot_be_right_is_never_followed(tmp_path: Path, at: int, value: bytes) -> None:
    made, raws = written(tmp_path, [(1, 10, 5), (1, 10, 6), (1, 10, 7)])
    data = bytearray(b"".join(raws))
    data[len(raws[0]) + at : len(raws[0]) + at + len(value)] = value
    Path(made.path).write_bytes(data)
    with pytest.raises(DamagedSegment):
        list(made.batches())
    with pytest.raises(DamagedSegment):
        made.position_of(101)
    if at:
        with pytest.raises(DamagedSegment):
            made.slice(len(raws[0]), 100, True)
