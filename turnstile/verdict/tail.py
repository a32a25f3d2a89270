"""The events of a running cluster's journal as they are written: its spool, read on from where it was read before."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import BinaryIO

from broker.journal import spool
from broker.journal.schema import CODE_OF_KIND
from turnstile.verdict.timeline import MS, Event

_EVERY_S = 0.02
_NAMES = {
    CODE_OF_KIND[kind]: kind for kind in ("admitted", "refused", "closed", "throttled", "fault", "request", "early")
}
_IDS = slice(3, 11)  # places in a row: ip, listener, reason, user, client_id, api, limit, detail


class Tail:
    """Reads in a thread, from `start` to `stop`; `events` grows, in the order in which each shard wrote."""

    def __init__(self, journal: Path) -> None:
        self.events: list[Event] = []
        self._folder = spool.spool_folder(journal)
        self._segments: dict[str, _Segment | None] = {}  # None: read to its end
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()

    def start(self) -> None:
        for segment in self._new_segments():
            segment.skip()
        self._thread.start()

    def stop(self) -> None:
        """Reads what is there, and ends."""
        self._stopped.set()
        if self._thread.ident is not None:  # the thread was started
            self._thread.join()
        for segment in self._segments.values():
            if segment is not None:
                segment.file.close()

    def catch_up(self) -> None:
        """`events` has what was on disk when this was called."""
        with self._lock:
            self._new_segments()
            for stem, segment in self._segments.items():
                if segment is None:
                    continue
                is_finished = not (self._folder / (stem + spool.LIVE)).exists()
                self.events += segment.read()
                if is_finished:
                    segment.file.close()
                    self._segments[stem] = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.catch_up()
            time.sleep(_EVERY_S)
        self.catch_up()

    def _new_segments(self) -> list[_Segment]:
        found = []
        for ending in (spool.LIVE, spool.DONE):
            for path in sorted(self._folder.glob(f"b[0-9]*{ending}")):
                if path.stem in self._segments:
                    continue
                try:
                    segment = _Segment(path.open("rb"))
                except FileNotFoundError:  # finished meanwhile: the next look finds its other name
                    continue
                self._segments[path.stem] = segment
                found.append(segment)
        return found


class _Segment:
    """One file of one process; it stays readable when it is renamed or removed."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        header = spool.parse_header(file.read(spool.ROW), file.name)
        self._place = header.broker, header.shard, header.epoch
        self._at = spool.ROW
        self._texts: dict[int, str] = {0: ""}

    def skip(self) -> None:
        """Leaves out the events that are there already; their texts are needed for later ones."""
        self.read()

    def read(self) -> list[Event]:
        """The events that were written since the last time."""
        self.file.seek(self._at)
        data = self.file.read()
        data = data[: len(data) // spool.ROW * spool.ROW]
        found: list[Event] = []
        at = 0
        while at < len(data):
            kind = data[at]
            if kind == spool.DEFINE_KIND:
                _, number, size, text = spool.DEFINE.unpack_from(data, at)
                rows = 1 + -(-max(size - spool.INLINE, 0) // spool.ROW)
                if at + rows * spool.ROW > len(data):
                    break
                rest = data[at + spool.ROW : at + rows * spool.ROW]
                self._texts[number] = (text + rest)[:size].decode("utf-8", "replace")
                at += rows * spool.ROW
                continue
            if kind in _NAMES:
                found.append(self._event(kind, data, at))
            at += spool.ROW
        self._at += at
        return found

    def _event(self, kind: int, data: bytes, at: int) -> Event:
        row = spool.EVENT.unpack_from(data, at)
        ip, _, reason, _, client_id, api, limit, _ = (self._texts.get(number, "") for number in row[_IDS])
        throttle_ms, mono_ns, conn, size, value, took_ms, _ = row[11:]
        name = _NAMES[kind]
        at_ns = mono_ns - int(took_ms * MS) if name == "request" else mono_ns
        return Event(
            name, at_ns, (*self._place, conn), ip, row[2], client_id, api, reason, limit, size, throttle_ms, took_ms,
            value,
        )  # fmt: skip
