"""The quota that holds for a (user, client-id), and the clients that share its bucket: the rules of Redpanda 26.

    1   user=u, client-id=c                    7   user=<default>, client-id=<default>
    2   user=u, client-id-prefix=p             8   user=<default>
    3   user=u, client-id=<default>            9   client-id=c
    4   user=u                                 10  client-id-prefix=p
    5   user=<default>, client-id=c            11  client-id=<default>
    6   user=<default>, client-id-prefix=p     12  none

bucket_of_the_rule  client-id=c and client-id=<default> have one bucket for each client id; client-id-prefix=p has one for all
    clients with that prefix; a user alone has one for all its clients. In rules 1 to 8 no two users share a bucket, not even under
    user=<default>.
unauthenticated_is_no_default  A client that has not logged in (user "") is under the rules of clients alone, 9 to 11.
missing_id_has_no_prefix  A client without a client id (or with the empty one) is under the rules of the default client.
longest_prefix  Of several prefixes that a client id begins with, the longest counts. Redpanda takes any, in no order that it
    documents.

Source: the table of Redpanda 26.2's page "About Client Throughput Quotas"; client_quota_translator (24.3) for what clients without
an id are under.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shards.limits.precedence import CLIENT_ID, USER
from shards.limits.quota_entities import PREFIX, Entity
from shards.limits.short_names import short_name

NO_RULE = 12
_ANONYMOUS = "ANONYMOUS"
_FIRST_RULES = 1, 5, 9  # of the user, the default user, and clients alone


class BucketKey(NamedTuple):
    """Whose bucket it is (Redpanda: tracker key); None where its rule does not tell clients apart. A long name is its digest."""

    user: str | None
    client_id: str | None
    prefix: str | None


class RedpandaMatch(NamedTuple):
    """The rule that holds for a client, the entity that its quota is of, and the bucket; for NO_RULE there is none."""

    rule: int
    entity: Mapping[str, str | None] | None
    limit: float | None
    key: BucketKey | None


_NONE = RedpandaMatch(NO_RULE, None, None, None)


class _ClientMatch(NamedTuple):
    """The quota of _Clients that holds for a client. `place`: 0 for its id, 1 for a prefix of it, 2 for the default, 3 for all."""

    place: int
    entity: dict[str, str | None]
    limit: float
    client_id: str | None
    prefix: str | None


class _Clients:
    """The quotas whose entities name one user, or the default user, or no user."""

    __slots__ = ("alone", "by_id", "by_prefix", "default", "lengths")

    def __init__(self) -> None:
        self.by_id: dict[str, float] = {}
        self.by_prefix: dict[str, float] = {}
        self.lengths: list[int] = []  # lengths of the prefixes, longest first
        self.default: float | None = None
        self.alone: float | None = None

    def add(self, names: Mapping[str, str | None], value: float) -> None:
        if PREFIX in names:
            self.by_prefix[names[PREFIX] or ""] = value
            self.lengths = sorted({len(each) for each in self.by_prefix}, reverse=True)
        elif CLIENT_ID not in names:
            self.alone = value
        elif (name := names[CLIENT_ID]) is None:
            self.default = value
        else:
            self.by_id[short_name(name)] = value

    def find(self, client_id: str, name: str) -> _ClientMatch | None:
        if name in self.by_id:
            return _ClientMatch(0, {CLIENT_ID: client_id}, self.by_id[name], name, None)
        for length in self.lengths:
            prefix = client_id[:length]
            if prefix in self.by_prefix:
                return _ClientMatch(1, {PREFIX: prefix}, self.by_prefix[prefix], None, prefix)
        if self.default is not None:
            return _ClientMatch(2, {CLIENT_ID: None}, self.default, name, None)
        return None if self.alone is None else _ClientMatch(3, {}, self.alone, None, None)

    def limit(self, key: BucketKey) -> float | None:
        if key.prefix is not None:
            return self.by_prefix.get(key.prefix)
        return self.alone if key.client_id is None else self.by_id.get(key.client_id, self.default)


def user_of(principal_name: str) -> str:
    """The user by which a client with that name in its principal is matched (unauthenticated_is_no_default)."""
    return "" if principal_name == _ANONYMOUS else principal_name


class RedpandaQuotaTable:
    """The quotas of one kind, by entity; those of other entities than user, client-id and client-id-prefix are left out."""

    def __init__(self, quotas: Iterable[tuple[Entity, float]] = ()) -> None:
        self._of_user: dict[str | None, _Clients] = {}  # None: the default user
        self._of_none = _Clients()
        self.in_use = False
        """True if any quota is set."""
        for entity, value in quotas:
            names = dict(entity)
            if names and not names.keys() - {USER, CLIENT_ID, PREFIX}:
                self._clients(names).add(names, value)
                self.in_use = True

    def match(self, user: str, client_id: str) -> RedpandaMatch:
        """The rule that holds for a client; `user` "": it has not logged in, `client_id` "": it told none."""
        user, name = short_name(user), short_name(client_id)
        named = ((user, user), (None, None)) if user else ()
        for (key, of), first in zip(named, _FIRST_RULES, strict=False):
            clients = self._of_user.get(key)
            if clients is not None and (found := clients.find(client_id, name)) is not None:
                entity = {USER: of, **found.entity}
                return RedpandaMatch(
                    first + found.place, entity, found.limit, BucketKey(user, found.client_id, found.prefix)
                )
        if (found := self._of_none.find(client_id, name)) is None:
            return _NONE
        key_alone = BucketKey(None, found.client_id, found.prefix)
        return RedpandaMatch(_FIRST_RULES[2] + found.place, found.entity, found.limit, key_alone)

    def limit(self, key: BucketKey) -> float | None:
        """The quota that a bucket has now: that of the first rule by which clients come to it. None: none has."""
        if key.user is None:
            return self._of_none.limit(key)
        of_user = (self._of_user[each].limit(key) for each in (key.user, None) if each in self._of_user)
        return next((limit for limit in of_user if limit is not None), None)

    def _clients(self, names: Mapping[str, str | None]) -> _Clients:
        if USER not in names:
            return self._of_none
        user = names[USER]
        return self._of_user.setdefault(None if user is None else short_name(user), _Clients())
