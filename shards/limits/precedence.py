"""The quota that holds for a (user, client-id), and the clients that share one: Kafka's eight levels.

    1  user=u, client-id=c          5  user=<default>, client-id=<default>
    2  user=u, client-id=<default>  6  user=<default>
    3  user=u                       7  client-id=c
    4  user=<default>, client-id=c  8  client-id=<default>

Two questions, and Kafka answers them apart: under which *key* a client is metered (clients of one key share a sensor), and which
*limit* that key has. The key follows from the shapes of entity that have a quota of this type: with one shape in use it is that
shape's, with several the first level that matches decides. A shape whose last quota is removed is in use no more (Kafka 4.1 kept
it).

A name longer than LONGEST_KNOWN stands in places and keys as its digest (short_names.py).

An entity is written as over the wire and in scenarios: `{"user": "alice", "client-id": None}`, None naming the default.
Source: ClientQuotaManager, updateQuotaTypes and DefaultQuotaCallback (Apache Kafka 4.3).
"""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from shards.limits.short_names import short_name

EntityNames = Mapping[str, str | None]
Key = tuple[str, str]  # (user, client-id) that share one sensor; "" where the level does not tell them apart

USER = "user"
CLIENT_ID = "client-id"

_CLIENT, _USER, _BOTH = 1, 2, 4  # shapes of entity
EntityPlace = tuple[int, str | None, str | None]
"""An entity's shape, user and client-id; None: the default, or not part of the shape."""


class Match(NamedTuple):
    """The `entity` that gives the quota (None: no quota), its `limit`, and the `key` of the sensor (None: not metered)."""

    key: Key | None
    entity: EntityNames | None
    limit: float | None


class Quota(NamedTuple):
    """The quota of a key: the place of its entity, and its limit."""

    place: EntityPlace
    limit: float

    @property
    def is_named(self) -> bool:
        """True if the entity names all of its clients: such a quota has one key, that of a default one for each client."""
        shape, user, client_id = self.place
        return (shape == _CLIENT or user is not None) and (shape == _USER or client_id is not None)


class QuotaTable:
    """The quotas of one type. Every look-up is at most eight dict probes. `version` rises with every change."""

    __slots__ = ("_counts", "_shapes", "_values", "version")

    remembers: ClassVar[bool] = True
    """True if the key and the limit of a client stay as they are until `version` rises."""

    def __init__(self) -> None:
        self.version = 0
        self._values: dict[EntityPlace, float] = {}
        self._counts: Counter[int] = Counter()
        self._shapes = 0

    def update(self, entity: EntityNames, value: float | None) -> None:
        """Set or, with None, remove the quota of an entity. Removing one that is not set does nothing.

        ValueError if the entity is not of user and client-id.
        """
        if not entity or entity.keys() - {USER, CLIENT_ID}:
            raise ValueError(f"a client quota is set for user, client-id or both, not for {dict(entity)!r}")
        self.version += 1
        place = _place(entity)
        shape, was_set = place[0], place in self._values
        if value is not None:
            self._values[place] = value
            self._counts[shape] += not was_set
            self._shapes |= shape
        elif was_set:
            del self._values[place]
            self._counts[shape] -= 1
            if not self._counts[shape]:
                self._shapes &= ~shape

    @property
    def in_use(self) -> bool:
        """True if any quota is set: without one nothing is recorded."""
        return self._shapes != 0

    def items(self) -> list[tuple[EntityNames, float]]:
        """Every quota that is set."""
        return [(_entity(place), value) for place, value in self._values.items()]

    def key(self, user: str, client_id: str) -> Key:
        """The key that this client is metered under."""
        user, client_id = short_name(user), short_name(client_id)
        shapes = self._shapes
        if shapes <= _CLIENT:
            return ("", client_id)
        if shapes == _USER:
            return (user, "")
        if shapes == _BOTH:
            return (user, client_id)
        values = self._values
        if (_BOTH, user, client_id) in values or (_BOTH, user, None) in values:
            return (user, client_id)
        if (_USER, user, None) in values:
            return (user, "")
        if (_BOTH, None, client_id) in values or (_BOTH, None, None) in values:
            return (user, client_id)
        if (_USER, None, None) in values:
            return (user, "")
        return ("", client_id)

    def limit(self, key: Key) -> float | None:
        """The quota of a key; None where none is set. An empty user or client-id has none at the level of both."""
        place = self._place_of(key)
        return None if place is None else self._values[place]

    def quota(self, key: Key) -> Quota | None:
        """The quota of a key, with the entity that gives it."""
        place = self._place_of(key)
        return None if place is None else Quota(place, self._values[place])

    def limit_at(self, place: EntityPlace | None) -> float | None:
        """The quota of the entity of a place, if it still has one."""
        return None if place is None else self._values.get(place)

    def match(self, user: str, client_id: str) -> Match:
        """Both answers at once, and the entity they came from: what `turnstile quota explain` shows."""
        if not self._shapes:
            return Match(None, None, None)
        key = self.key(user, client_id)
        place = self._place_of(key)
        if place is None:
            return Match(key, None, None)
        return Match(key, _entity(place), self._values[place])

    def _place_of(self, key: Key) -> EntityPlace | None:
        user, client_id = key
        places: tuple[EntityPlace, ...]
        if user and client_id:
            places = ((_BOTH, user, client_id), (_BOTH, user, None), (_BOTH, None, client_id), (_BOTH, None, None))
        elif user:
            places = ((_USER, user, None), (_USER, None, None))
        elif client_id:
            places = ((_CLIENT, None, client_id), (_CLIENT, None, None))
        else:
            return None
        for place in places:
            if place in self._values:
                return place
        return None


def _place(entity: EntityNames) -> EntityPlace:
    names = {kind: None if name is None else short_name(name) for kind, name in entity.items()}
    if len(names) == 2:
        return (_BOTH, names[USER], names[CLIENT_ID])
    return (_USER, names[USER], None) if USER in names else (_CLIENT, None, names[CLIENT_ID])


def _entity(place: EntityPlace) -> EntityNames:
    shape, user, client_id = place
    if shape == _BOTH:
        return {USER: user, CLIENT_ID: client_id}
    return {USER: user} if shape == _USER else {CLIENT_ID: client_id}
