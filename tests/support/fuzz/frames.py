"""Frames by seed: requests of every API and version as their schemas say, and frames that are no requests.

The n-th frame of a seed depends on the seed, on n, and on what earlier answers told (`learn`).
"""

from __future__ import annotations

import random
import struct
import threading
from typing import Any, NamedTuple

from fuzz.values import Values

from broker.serve.call import Call
from broker.wire import apis, wire
from broker.wire.shapes import Field, fields_of

PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP = 0, 1, 11, 14
WAITING = frozenset({FETCH, JOIN_GROUP, SYNC_GROUP})
"""Requests that a broker may answer as late as they allow."""
MOST_BYTES = 4 << 20
_MOST_LEARNED = 20
_LEARNED = ("member_id", "generation_id", "topic_id", "producer_id", "producer_epoch", "cluster_id")


class Frame(NamedTuple):
    """`data` with its length in front. `answered`: it is a request, so it has an answer soon or its connection ends; `silent`:
    one that wants none."""

    number: int
    api_key: int
    version: int
    data: bytes
    answered: bool
    silent: bool = False


class Frames:
    """The frames of a seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.number = 0
        self._lock = threading.Lock()
        self.learned: dict[str, list[Any]] = {}

    def next(self) -> Frame:
        """May be called by several threads."""
        with self._lock:
            self.number += 1
            return self._make(self.number)

    def _make(self, number: int) -> Frame:
        rng = random.Random(f"{self.seed}/{number}")
        api_key = rng.choice([*apis.APIS])
        api = apis.APIS[api_key]
        version = rng.randint(api.min_version, api.max_version)
        data, acks = self._request(rng, api_key, version)
        if len(data) > MOST_BYTES:  # what large frames cost is measured elsewhere; of this one the beginning will do
            body = data[4:MOST_BYTES]
            return Frame(number, api_key, version, struct.pack(">i", len(body)) + body, False)
        kind = rng.random()
        if kind < 0.75:
            silent = api_key == PRODUCE and acks == 0
            return Frame(number, api_key, version, data, not silent and api_key not in WAITING, silent)
        return Frame(number, api_key, version, _spoilt(rng, data), False)

    def learn(self, response: Any) -> None:
        """Remembers ids in a response, at any depth."""
        for name in response.field_names:
            value = getattr(response, name)
            if name in _LEARNED and value:
                known = self.learned.setdefault(name, [])
                if value not in known:
                    known.append(value)
                    del known[:-_MOST_LEARNED]
            elif isinstance(value, tuple):
                for item in value[:3]:
                    if hasattr(item, "field_names"):
                        self.learn(item)

    def _request(self, rng: random.Random, api_key: int, version: int) -> tuple[bytes, Any]:
        values = Values(rng, self.learned)
        module = wire._module(api_key, version, "request")
        types = wire.request_types(api_key, version)
        request = _message(values, getattr(module, types.top.__name__), types)
        call = Call(api_key, version, self.number & 0x7FFFFFFF)
        data = wire.encode_request(call, request, rng.choice((None, "", "fuzzer", "fuzzer")))
        return data, getattr(request, "acks", None)


def _message(values: Values, entity: type, types: Any) -> Any:
    made = {}
    for field in fields_of(entity):
        if field.tag is not None and values.rng.random() < 0.5:
            continue
        made[field.name] = _array(values, field, types) if field.array else _one(values, field, types)
    return getattr(types, entity.__name__)(**made)


def _array(values: Values, field: Field, types: Any) -> Any:
    if field.nullable and values.rng.random() < 0.15:
        return None
    length = values.length()
    with values.within(length):
        if length > 5 or values.rng.random() < 0.2:  # the same again and again
            return (_one(values, field._replace(nullable=False), types),) * length
        return tuple(_one(values, field._replace(nullable=False), types) for _ in range(length))


def _one(values: Values, field: Field, types: Any) -> Any:
    if field.entity is None:
        return values.of(field)
    if field.nullable and values.rng.random() < 0.3:
        return None
    return _message(values, field.entity, types)


def _spoilt(rng: random.Random, data: bytes) -> bytes:
    """A frame that is no request, or hardly one."""
    body = bytearray(data[4:])
    kind = rng.randrange(6)
    if kind == 0:  # cut short
        del body[rng.randrange(len(body)) :]
    elif kind == 1:  # other bytes here and there
        for _ in range(rng.choice((1, 1, 3, 20))):
            body[rng.randrange(len(body))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    elif kind == 2:  # another API or version
        body[:4] = struct.pack(">hh", rng.choice((*range(100), -1, 32767)), rng.choice((*range(20), -1, 32767)))
    elif kind == 3:  # more behind its end
        body += rng.randbytes(rng.choice((1, 5, 300)))
    elif kind == 4:
        body = bytearray(rng.randbytes(rng.choice((0, 1, 8, 100, 5000))))
    else:  # a length that lies
        return struct.pack(">i", rng.choice((-1, 0, 3, 2**31 - 1, len(body) + 1, max(len(body) - 1, 0)))) + bytes(body)
    return struct.pack(">i", len(body)) + bytes(body)
