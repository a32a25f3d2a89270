"""Events of one process -> the rows of its journal. On the accept path: one clock, no I/O until flush(), no pyarrow.

An event is packed into one 64-byte row of the buffer (buffer.py), which flush() writes.
"""

import json
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.journal import spool
from broker.journal.buffer import ROW, JournalBuffer
from broker.journal.schema import CODE_OF_KIND, COORDINATOR, STAND_IN

LIMIT_KINDS = ("static", "setting", "quota", "observed", "observed_quota", "host")
SECRET_WORDS = ("password", "secret", "sasl.jaas.config", ".key")
MASK = "[hidden]"

_clock = time.monotonic_ns
_encoder = json.JSONEncoder(separators=(",", ":"))
# JSONEncoder.encode makes one of these for each call, which takes more than half of its time.
_parts_of_json = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # C, and not in its stubs
    None, _encoder.default, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True
)
_EVENT = spool.EVENT.pack_into
# The hot kinds leave out the columns that are null for them: pad bytes are zeros, and a zero is null.
_ADMITTED = struct.Struct("<BBHHH12x4xqq8x8xfI").pack_into
_REFUSED = struct.Struct("<BBHHHH6xH2x4xqq8xdfI").pack_into
_CLOSED = struct.Struct("<BBHHHHHH6x4xqqq8xf4x").pack_into
_THROTTLED = struct.Struct("<BBHHHHHHHH2xiqqqd4xI").pack_into
_CHARGE = struct.Struct("<BB6xHHH2xHHiq8xqd4xI").pack_into
_MOVED = struct.Struct("<BB16xH4xq24x4xI").pack_into
_K_ADMITTED, _K_REFUSED, _K_CLOSED, _K_THROTTLED, K_CHARGE = (
    CODE_OF_KIND[kind] for kind in ("admitted", "refused", "closed", "throttled", "charge")
)
K_OBSERVED, K_OBSERVED_CHARGE = CODE_OF_KIND["observed"], CODE_OF_KIND["observed_charge"]
_F_HELD = spool.FLAG_HELD
_F_REFUSED = spool.FLAG_HELD | spool.FLAG_LIMIT_VALUE
_F_CLOSED = spool.FLAG_HELD | spool.FLAG_BYTES
_F_THROTTLED = spool.FLAG_BYTES | spool.FLAG_THROTTLE | spool.FLAG_LIMIT_VALUE
_MAX_THROTTLE_MS = 0x7FFFFFFF


class JournalWriter(JournalBuffer):
    """The journal of one (broker, shard, epoch), a method for each kind of event."""

    # The hot events. A KeyError means a string without an id yet: define it and do it again.

    def admitted(self, conn: int, ip: str, port: int, listener: str, version: int, held_ms: float = 0.0) -> None:
        """A connection got in: call after its tokens are taken. held_ms: accept to decision."""
        end = self._end
        if end >= self._capacity:
            self.flush()
            end = self._end
        ids = self._ids
        try:
            _ADMITTED(
                self._buffer, end, _K_ADMITTED, _F_HELD, port, ids[ip], ids[listener], _clock(), conn, held_ms, version
            )
        except KeyError:
            self._learn(ip, listener)
            return self.admitted(conn, ip, port, listener, version, held_ms)
        self._end = end + ROW
        return None

    def refused(
        self,
        conn: int,
        ip: str,
        port: int,
        listener: str,
        *,
        reason: str,
        limit: str,
        limit_value: float,
        version: int,
        held_ms: float = 0.0,
        code: int = _K_REFUSED,
    ) -> None:
        """A connection was refused: reason is one of REASONS, limit the setting's name. held_ms: accept to close, or to
        the decision.

        `code`: K_OBSERVED for a cap that would have refused it, of OBSERVED_REASONS; held_ms: since its admission."""
        end = self._end
        if end >= self._capacity:
            self.flush()
            end = self._end
        ids = self._ids
        try:
            _REFUSED(
                self._buffer, end, code, _F_REFUSED, port, ids[ip], ids[listener], ids[reason], ids[limit],
                _clock(), conn, limit_value, held_ms, version,
            )  # fmt: skip
        except KeyError:
            self._learn(ip, listener, reason, limit)
            return self.refused(
                conn, ip, port, listener, reason=reason, limit=limit, limit_value=limit_value, version=version, held_ms=held_ms,
                code=code,
            )  # fmt: skip
        self._end = end + ROW
        return None

    def closed(
        self,
        conn: int,
        ip: str,
        port: int,
        listener: str,
        *,
        reason: str,
        user: str | None,
        client_id: str | None,
        bytes_moved: int,
        open_ms: float,
    ) -> None:
        """An admitted connection ends: call before its tokens are released. open_ms: how long it was open."""
        end = self._end
        if end >= self._capacity:
            self.flush()
            end = self._end
        ids = self._ids
        try:
            _CLOSED(
                self._buffer, end, _K_CLOSED, _F_CLOSED, port, ids[ip], ids[listener], ids[reason], ids[user],
                ids[client_id], _clock(), conn, bytes_moved, open_ms,
            )  # fmt: skip
        except KeyError:
            self._learn(ip, listener, reason, user, client_id)
            return self.closed(
                conn, ip, port, listener, reason=reason, user=user, client_id=client_id, bytes_moved=bytes_moved, open_ms=open_ms,
            )  # fmt: skip
        self._end = end + ROW
        return None

    def throttled(
        self,
        conn: int,
        ip: str,
        port: int,
        listener: str,
        *,
        user: str,
        client_id: str | None,
        api: str,
        amount: int,
        throttle_ms: int,
        limit: str,
        limit_value: float,
        version: int,
        at_ms: int,
        stand_in: bool = False,
    ) -> None:
        """A client is delayed for `throttle_ms`: a quota of the kind `limit` recorded `amount` for a request at `at_ms` (0: now);
        `stand_in`: a stand-in of the quota's home recorded it."""
        end = self._end
        if end >= self._capacity:
            self.flush()
            end = self._end
        ids = self._ids
        try:
            _THROTTLED(
                self._buffer, end, _K_THROTTLED, _F_THROTTLED, port, ids[ip], ids[listener],
                ids[STAND_IN] if stand_in else 0, ids[user], ids[client_id], ids[api], ids[limit],
                min(throttle_ms, _MAX_THROTTLE_MS), at_ms * 1_000_000 or _clock(), conn, amount, limit_value, version,
            )  # fmt: skip
        except KeyError:
            self._learn(ip, listener, STAND_IN, user, client_id, api, limit)
            return self.throttled(
                conn, ip, port, listener, user=user, client_id=client_id, api=api, amount=amount, throttle_ms=throttle_ms,
                limit=limit, limit_value=limit_value, version=version, at_ms=at_ms, stand_in=stand_in,
            )  # fmt: skip
        self._end = end + ROW
        return None

    def charge(
        self,
        user: str | None,
        client_id: str | None,
        *,
        amount: int,
        throttle_ms: int,
        limit: str,
        limit_value: float,
        version: int,
        at_ms: int,
        detail: str,
        stand_in: bool,
        code: int = K_CHARGE,
    ) -> None:
        """A meter decided a charge: `amount` (bytes, nanoseconds of handler time, partitions) was recorded at `at_ms` under a quota
        of the kind `limit`. `detail`: JSON, one of few texts. `code`: K_OBSERVED_CHARGE where the quota is observed."""
        end = self._end
        if end >= self._capacity:
            self.flush()
            end = self._end
        ids = self._ids
        try:
            _CHARGE(
                self._buffer, end, code, _F_THROTTLED, ids[STAND_IN] if stand_in else 0, ids[user], ids[client_id],
                ids[limit], ids[detail], min(throttle_ms, _MAX_THROTTLE_MS), at_ms * 1_000_000, amount, limit_value, version,
            )  # fmt: skip
        except KeyError:
            self._learn(STAND_IN, user, client_id, limit, detail)
            return self.charge(
                user, client_id, amount=amount, throttle_ms=throttle_ms, limit=limit, limit_value=limit_value, version=version,
                at_ms=at_ms, detail=detail, stand_in=stand_in, code=code,
            )  # fmt: skip
        self._end = end + ROW
        return None

    def moved(self, kind: str, detail: Mapping[str, object], version: int) -> None:
        """Tokens, or units of a rate, were granted or came back: `kind` is grant or reclaim."""
        if self._end >= self._capacity:
            self.flush()
        text = _to_json(detail)
        number = self._ids.get(text)
        if number is None:
            self._learn(text)
            number = self._ids[text]
        _MOVED(self._buffer, self._end, CODE_OF_KIND[kind], 0, number, _clock(), version)
        self._end += ROW

    def add(
        self,
        kind: str,
        *,
        conn: int = 0,
        ip: str | None = None,
        port: int = 0,
        listener: str | None = None,
        reason: str | None = None,
        user: str | None = None,
        client_id: str | None = None,
        api: str | None = None,
        bytes_moved: int | None = None,
        throttle_ms: int | None = None,
        held_ms: float | None = None,
        limit: str | None = None,
        limit_value: float | None = None,
        version: int = 0,
        detail: Mapping[str, object] | str | None = None,
        at_ns: int | None = None,
    ) -> None:
        """Any kind of event; `at_ns`: when it happened, if that is not now. Raises KeyError for a kind that schema.KINDS
        doesn't have."""
        code = CODE_OF_KIND[kind]
        text = detail if detail is None or isinstance(detail, str) else _to_json(detail)
        flags = (
            (bytes_moved is not None) * spool.FLAG_BYTES
            | (throttle_ms is not None) * spool.FLAG_THROTTLE
            | (held_ms is not None) * spool.FLAG_HELD
            | (limit_value is not None) * spool.FLAG_LIMIT_VALUE
        )
        strings = (ip, listener, reason, user, client_id, api, limit, text)
        if self._end >= self._capacity:
            self.flush()
        while True:
            ids = self._ids
            try:
                numbers = [ids[string] for string in strings]
                break
            except KeyError:
                self._learn(*strings)
        _EVENT(
            self._buffer, self._end, code, flags, port, *numbers, min(throttle_ms or 0, _MAX_THROTTLE_MS), at_ns or _clock(), conn,
            bytes_moved or 0, limit_value or 0.0, held_ms or 0.0, version,
        )  # fmt: skip
        self._end += ROW

    def config(
        self, version: int, changes: Iterable[Sequence[Any]], *, full: bool = False, acknowledged: bool = False
    ) -> None:
        """A shard writes this event when the version is in force there; the coordinator before it pushes the version, and again,
        `acknowledged`, when it is in force in every shard.

        `changes` is the delta as pushed: [kind, key, value or None] each; `full`: it is the whole state, as a process
        writes when it starts. Only limits (settings and quotas) are journaled; credentials never are.
        """
        limits = [
            [kind, key, MASK if any(word in key for word in SECRET_WORDS) and value is not None else value]
            for kind, key, value in changes
            if kind in LIMIT_KINDS
        ]
        self.add("config", version=version, detail={"changes": limits, "full": full, "acknowledged": acknowledged})

    def shard_lost(self, broker: int, shard: int, epoch: int) -> None:
        """Written by the coordinator: a shard's process died; its connections count as closed from its last event on."""
        self.add("shard_lost", detail={"broker": broker, "shard": shard, "epoch": epoch})

    def start(self, shards: int, brokers: int) -> None:
        """The first event of a shard of `shards`, in a cluster of `brokers`: on disk before any other process hears of it."""
        broker, shard, epoch = self._place
        size = {"shards": shards, "brokers": brokers}
        self.add("shard_up", detail={"broker": broker, "shard": shard, "epoch": epoch, **size})
        self.flush()

    def end(self) -> None:
        """The process ends in order: its last event says so, and that event's seq how many there are."""
        self.add("ended")
        self.close()


def _to_json(detail: Mapping[str, object]) -> str:
    return "".join(_parts_of_json(detail, 0))


def open_coordinator(folder: Path, epoch: int) -> JournalWriter:
    """The journal of the coordinator."""
    return JournalWriter(folder, COORDINATOR, COORDINATOR, epoch)
