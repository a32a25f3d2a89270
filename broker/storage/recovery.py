"""A log's segments and producers, as its files tell after a killed process, or after damage.

Closed segments come from their sidecars. The last one is scanned whole, checksums and all, from the state of the
producers that was saved when it began; where that is missing the scan starts further back. As in Kafka, the checksums of
closed segments are not looked at: clients do that. A closed segment is scanned when its sidecar does not match it, and
when a reader meets a header that can't be right.

sound_batches_are_kept  A sound batch is never dropped: one behind damage goes into a segment of its own, which leaves a gap
    in the offsets.
damaged_bytes_are_set_aside  Damaged bytes are set aside (runtime/set_aside.py). A torn end of the last segment, which a
    killed process leaves, is not.
repairs_can_be_repeated  A repair that is cut short is done again by the next one: the damaged file is replaced last.
aborted_transactions_from_index_files  Aborted transactions of closed segments come from their `.txnindex` files. Where one
    is damaged, its segment is scanned with the producers as they were when it began.
replaced_files_are_deleted  A file that a cleaned one has replaced is deleted (segment_name.py, one_rename_replaces). What
    is made of a damaged cleaned segment are cleaned segments of the next round, so that none of them covers another.
"""

import contextlib
import os
from collections.abc import Callable
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

from broker.runtime.logger import Logger
from broker.runtime.set_aside import keep_copy, set_aside
from broker.storage import scanning
from broker.storage.files import OpenFiles, is_short_of_resources, read_checked, replace_checked
from broker.storage.producer_state import ProducerStateManager
from broker.storage.scanning import Piece, Scan
from broker.storage.segment import LogSegment
from broker.storage.segment_name import SegmentName, in_force
from broker.storage.transaction_index import TransactionIndex

log = Logger()


class Recovered(NamedTuple):
    segments: list[LogSegment]
    producers: ProducerStateManager
    aborted: TransactionIndex
    torn_bytes: int  # cut off at the end


def recover(directory: str, files: OpenFiles) -> Recovered:
    """Reads the log in `directory`. Raises OSError."""
    names, replaced = in_force(os.listdir(directory))
    found = [LogSegment(directory, name.base_offset, files, name) for name in names]
    delete_replaced([LogSegment(directory, name.base_offset, files, name) for name in replaced], found)
    producers, scan_from = _latest_snapshot(found)
    aborted = TransactionIndex()
    heed = Replay(producers, aborted)

    segments: list[LogSegment] = []
    torn_bytes = 0
    for index, segment in enumerate(found):
        closed = index + 1 < len(found)
        if segments and segment.base_offset < segments[-1].next_offset:
            if all(
                segment.base_offset != other.base_offset for other in segments
            ):  # else the segment was just made again (repairs_can_be_repeated)
                set_aside(segment.path, "its offsets are in the segment before it, too")
        elif closed and index < scan_from and (dumped := _load_aborted(segment)) is not None and segment.load_sidecar():
            aborted.load(dumped)
            segments.append(segment)
        else:
            if index < scan_from:  # the producers are in the snapshot of a later segment
                heed = Replay(load_snapshot(segment) or ProducerStateManager(), aborted)
            elif heed.producers is not producers:
                heed = Replay(producers, aborted)
            made, torn = rescan(segment, files, heed, closed=closed)
            torn_bytes += torn
            segments += made
            _save_sidecars(made if closed else made[:-1], aborted)
            end = made[-1].next_offset if made else segment.base_offset
            if closed and end < found[index + 1].base_offset:
                log.warning("records are missing", file=segment.path, offsets=[end, found[index + 1].base_offset])
    return Recovered(segments, producers, aborted, torn_bytes)


class Replay:
    """Notes batch after batch what they say of producers, and which transactions were aborted."""

    def __init__(self, producers: ProducerStateManager, aborted: TransactionIndex) -> None:
        self.producers = producers
        self._aborted = aborted

    def __call__(self, piece: Piece) -> None:
        batch = piece.batch
        if batch.producer_id < 0:
            return
        if piece.marker is None:
            self.producers.record(batch, batch.base_offset)
        elif (ended := self.producers.end(batch, piece.marker, batch.base_offset)) is not None:
            self._aborted.append(ended)


def _ignore(_: Piece) -> None:
    pass


class RescannedSegment(NamedTuple):
    """The segments that are made of one, and how many torn bytes were cut off."""

    segments: list[LogSegment]
    torn_bytes: int


def rescan(
    segment: LogSegment, files: OpenFiles, on_batch: Callable[[Piece], None] = _ignore, *, closed: bool
) -> RescannedSegment:
    """Reads a segment's whole file and repairs it: (the segments that are made of it, torn bytes cut off). Raises OSError.

    `on_batch` is called with each batch. The end of a `closed` segment can't be torn by a killed process, only damaged;
    nothing is made of one that holds no batch.
    """
    descriptor = files.descriptor(segment.path, create=True)
    length = os.fstat(descriptor).st_size
    segment.reset()
    if not length:
        return RescannedSegment([] if closed else [segment], 0)
    with mmap(descriptor, length, access=ACCESS_READ) as mapped:
        scan = scanning.scan(mapped, length, segment.base_offset)
        if closed and scan.torn_bytes:
            scan.damaged.append((length - scan.torn_bytes, length))
            scan.torn_bytes = 0
        segments = [segment]
        if scan.damaged:
            segments = _split(segment, files, mapped, scan)
            if not segments and not closed:
                segments = [segment]
                files.descriptor(segment.path, create=True)
    if not scan.damaged:
        for piece in scan.wrong:
            os.pwrite(descriptor, scanning.head_of(piece.batch), piece.position)
        if scan.torn_bytes:
            os.ftruncate(descriptor, length - scan.torn_bytes)
    if scan.wrong:
        log.warning("headers of batches were put right", file=segment.path, batches=len(scan.wrong))
    for run, made in zip(scan.runs, segments, strict=False):
        made.load(piece.batch for piece in run)
    for piece in (piece for run in scan.runs for piece in run):
        on_batch(piece)
    return RescannedSegment(segments, scan.torn_bytes)


def _split(segment: LogSegment, files: OpenFiles, mapped: mmap, scan: Scan) -> list[LogSegment]:
    """Sets a damaged file aside, and writes a segment of each of its runs. The first has the old one's place
    (repairs_can_be_repeated)."""
    directory = os.path.dirname(segment.path)
    at_start = bool(scan.runs) and scan.runs[0][0].batch.base_offset == segment.base_offset
    segments = [_segment_of(run, segment, directory, files) for run in scan.runs]
    for each, run in zip(segments, scan.runs, strict=True):
        with open(each.path + ".tmp", "wb") as file:
            file.writelines(_bytes_of(mapped, piece) for piece in run)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(segment.sidecar)
    with contextlib.suppress(FileNotFoundError):
        if segments and not at_start:  # the state at the start of the damaged file holds for the rest of it
            os.rename(snapshot_path(segment), snapshot_path(segments[0]))
    keep_copy(segment.path, "batches are damaged")
    files.forget(segment.path)
    for each in reversed(segments):
        os.replace(each.path + ".tmp", each.path)
    if segment not in segments:
        os.unlink(segment.path)
    return segments


def _segment_of(run: list[Piece], damaged: LogSegment, directory: str, files: OpenFiles) -> LogSegment:
    """The segment that a run of sound batches becomes: repairs_can_be_repeated, replaced_files_are_deleted."""
    first, cleaned = run[0].batch.base_offset, damaged.name.round
    if cleaned:
        return LogSegment(directory, first, files, SegmentName(first, run[-1].batch.last_offset + 1, cleaned + 1))
    return damaged if first == damaged.base_offset else LogSegment(directory, first, files)


def _bytes_of(mapped: mmap, piece: Piece) -> bytes:
    head = scanning.head_of(piece.batch)
    return head + mapped[piece.position + len(head) : piece.position + piece.batch.size]


def _save_sidecars(segments: list[LogSegment], aborted: TransactionIndex) -> None:
    for segment in segments:
        with contextlib.suppress(OSError):  # the segment is scanned again next time
            save_aborted(segment, aborted)
            segment.save_sidecar()


class ProducersSnapshot(NamedTuple):
    """The state of the producers as a segment began, and the index of that one."""

    producers: ProducerStateManager
    segment_index: int


def _latest_snapshot(segments: list[LogSegment]) -> ProducersSnapshot:
    """The state of the producers as a segment began, the latest that can be read, and the index of that segment."""
    for index in range(len(segments) - 1, -1, -1):
        producers = load_snapshot(segments[index])
        if producers is not None:
            return ProducersSnapshot(producers, index)
    return ProducersSnapshot(ProducerStateManager(), 0)


def snapshot_path(segment: LogSegment) -> str:
    return os.path.join(os.path.dirname(segment.path), f"{segment.base_offset:020d}.producers")


def save_snapshot(segment: LogSegment, producers: ProducerStateManager) -> None:
    """Keeps what is known of the producers as `segment` begins. Raises OSError."""
    replace_checked(snapshot_path(segment), producers.dump())


def load_snapshot(segment: LogSegment) -> ProducerStateManager | None:
    """The snapshot of a segment; None if there is none, or a damaged one. Raises OSError for want of descriptors or memory."""
    try:
        dumped = read_checked(snapshot_path(segment))
    except OSError as fault:
        if is_short_of_resources(fault):
            raise
        return None
    return None if dumped is None else ProducerStateManager.load(dumped)


def delete_snapshot(segment: LogSegment) -> None:
    """And what the segment has of aborted transactions."""
    for path in (snapshot_path(segment), aborted_path(segment)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def delete_replaced(replaced: list[LogSegment], in_their_place: list[LogSegment]) -> None:
    """Removes the files of segments that cleaned ones have replaced; fine if they are gone.

    The producers as a segment began are as they were when the one that begins there now began.
    """
    kept = {segment.base_offset for segment in in_their_place}
    for segment in replaced:
        segment.delete()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aborted_path(segment))
        if segment.base_offset not in kept:
            delete_snapshot(segment)


class CleanedLog(NamedTuple):
    """A log's segments and aborted transactions after segments in front of the last were replaced."""

    segments: list[LogSegment]
    aborted: TransactionIndex


def after_cleaning(segments: list[LogSegment], aborted: TransactionIndex, files: OpenFiles) -> CleanedLog | None:
    """A log's segments and aborted transactions as its files are, after nothing but segments in front of the last were replaced.

    Segments that are known are kept as they are. None if it takes a recovery to tell. Raises OSError.
    """
    last = segments[-1]
    directory = os.path.dirname(last.path)
    known = {segment.name: segment for segment in segments}
    names, _ = in_force(os.listdir(directory))
    if not names or names.pop() != last.name:
        return None
    found: list[LogSegment] = []
    index = TransactionIndex()
    for name in names:
        segment = known.get(name) or LogSegment(directory, name.base_offset, files, name)
        if name in known:
            index.load(aborted.dump(segment.base_offset, segment.next_offset))
        elif (dumped := _load_aborted(segment)) is not None and segment.load_sidecar():
            index.load(dumped)
        else:
            return None
        found.append(segment)
    index.load(aborted.dump(last.base_offset, 1 << 62))
    return CleanedLog([*found, last], index)


def aborted_path(segment: LogSegment) -> str:
    return segment.path.removesuffix("log") + "txnindex"


def save_aborted(segment: LogSegment, aborted: TransactionIndex) -> None:
    """Keeps the transactions whose aborts are in `segment`. Raises OSError."""
    dumped = aborted.dump(segment.base_offset, segment.next_offset)
    if dumped[0]:
        replace_checked(aborted_path(segment), dumped)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aborted_path(segment))


def _load_aborted(segment: LogSegment) -> list[bytes] | None:
    """The columns that `save_aborted` kept: empty ones if there is no file; None if it is damaged. Raises OSError."""
    try:
        dumped: list[bytes] | None = read_checked(aborted_path(segment))
    except FileNotFoundError:
        return TransactionIndex().dump(0, 0)
    return dumped
