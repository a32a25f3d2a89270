"""Client quotas by a class of the operator's: client.quota.callback.class, which for Kafka is a Java class, and here a Python one.

The class decides which clients share a meter (`quota_metric_tags`) and what its limit is (`quota_limit`); what a meter lets
pass, the throttle, and the home of each meter are as for Kafka's own quotas. Each shard makes an instance of its own, which
hears of every quota that is set. It must decide by that, by its arguments and by what all shards see alike, such as a file;
else two shards meter one client apart.

asked_for_each_record  `quota_metric_tags` is asked for each record, and nothing that it said is remembered.
limit_kept_until_reset  The limit of tags is asked once, and again after a change of quotas or when `quota_reset_required` says so.
faults_limit_nobody  A class that raises, or answers what can't be, leaves its client without a quota, which is logged; it is asked
    again at the next record.
class_runs_in_the_loop  The class runs in the loop of the shard: while one of its methods blocks, the shard answers no request, and
    is ended after turnstile.shard.timeout.ms of that.

Source: org.apache.kafka.server.quota.ClientQuotaCallback, ClientQuotaManager (Apache Kafka 4.3).
"""

import json
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, Protocol, TypeAlias

from shards.limits.precedence import CLIENT_ID, USER, EntityNames, EntityPlace, Key, Match, Quota, QuotaTable
from shards.limits.quota_entities import CALLBACK
from shards.limits.short_names import short_name
from shards.settings.errors import ConfigInvalid

TYPES: Final = {
    "producer_byte_rate": "PRODUCE", "consumer_byte_rate": "FETCH", "request_percentage": "REQUEST",
    "controller_mutation_rate": "CONTROLLER_MUTATION",
}  # fmt: skip
"""Quota key -> Kafka's ClientQuotaType."""
MOST_TAGS: Final = 10_000
"""The tags of so many meters are remembered: clients may choose them."""
NO_KEY: Final[Key] = ("", "")
"""The key of a client that the class has failed to place: it has no limit."""
_DIGEST: Final = re.compile(r".{40}\.\.\.[0-9a-f]{32}", re.DOTALL)
_CUSTOM: Final = 8
"""The shape of the place of a quota that is of no entity (CustomQuotas of Kafka)."""

Tags: TypeAlias = Mapping[str, str]
Mistaken: TypeAlias = Callable[[BaseException], None]


class ClientQuotaCallback(Protocol):
    """The methods of the class; it is made without arguments. `quota_type`: PRODUCE, FETCH, REQUEST or CONTROLLER_MUTATION."""

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Tags:
        """The tags of the meter of a client: clients of equal tags share one. A name of more than 200 characters is its digest."""

    def quota_limit(self, quota_type: str, metric_tags: Tags) -> float | None:
        """The limit of a meter, in bytes a second, percent of a thread, or mutations a second; None: none."""

    def update_quota(self, quota_type: str, entity: EntityNames, value: float) -> None:
        """A quota was set for an entity of `user` and `client-id`, None for the default."""

    def remove_quota(self, quota_type: str, entity: EntityNames) -> None:
        """The quota of an entity was removed."""

    def quota_reset_required(self, quota_type: str) -> bool:
        """True if limits have changed since this was asked before."""


_METHODS: Final = [name for name in vars(ClientQuotaCallback) if not name.startswith("_")]


def make_callback(path: str) -> ClientQuotaCallback:
    """An instance of the class of a dotted path. Raises ConfigInvalid for what can't be one."""
    module, dot, name = path.rpartition(".")
    if not dot:
        raise ConfigInvalid(CALLBACK, path, "it must be module.Class, of a Python module on PYTHONPATH")
    try:
        made: ClientQuotaCallback = getattr(import_module(module), name)()
    except (Exception, SystemExit) as fault:  # whatever the module does when it is imported
        why = f"it is a Python class here, and could not be made: {type(fault).__name__}: {fault} (PYTHONPATH names its folder)"
        raise ConfigInvalid(CALLBACK, path, why) from None
    if lacking := [each for each in _METHODS if not callable(getattr(made, each, None))]:
        raise ConfigInvalid(CALLBACK, path, f"the class has no method {', '.join(lacking)}")
    return made


def check_callback(static: Mapping[str, str]) -> None:
    """Raises ConfigInvalid if the command line's settings (changes.static_settings) name a class that can't be one."""
    if path := static.get(f"/{CALLBACK}"):
        make_callback(path)


class CallbackQuotaTable(QuotaTable):
    """The quotas of one type as the class decides them. `mistaken(error)` hears of its faults (faults_limit_nobody)."""

    __slots__ = ("_callback", "_limits", "_mistaken", "_tags", "_type")

    remembers = False

    def __init__(self, kind: str, callback: ClientQuotaCallback, mistaken: Mistaken) -> None:
        super().__init__()
        self._type = TYPES[kind]
        self._callback = callback
        self._mistaken = mistaken
        self._tags: dict[Key, Tags] = {}
        self._limits: dict[Key, float | None] = {}

    def update(self, entity: EntityNames, value: float | None) -> None:
        super().update(entity, value)
        self._limits.clear()
        try:
            if value is None:
                self._callback.remove_quota(self._type, dict(entity))
            else:
                self._callback.update_quota(self._type, dict(entity), value)
        except (Exception, SystemExit) as fault:
            self._mistaken(fault)

    @property
    def in_use(self) -> bool:
        return True

    def key(self, user: str, client_id: str) -> Key:
        try:
            if self._callback.quota_reset_required(self._type):
                self._limits.clear()
            tags = dict(self._callback.quota_metric_tags(self._type, user, client_id))
            key = _key_of(tags)
        except (Exception, SystemExit) as fault:
            self._mistaken(fault)
            return NO_KEY
        if len(self._tags) >= MOST_TAGS and key not in self._tags:
            self._tags.clear()
            self._limits.clear()
        self._tags[key] = tags
        return key

    def limit(self, key: Key) -> float | None:
        if key in self._limits:
            return self._limits[key]
        # A key that another shard told of may come before its first client here.
        tags = self._tags.get(key) or _tags_of(key)
        if tags is None or key == NO_KEY:
            return None
        try:
            answer = self._callback.quota_limit(self._type, tags)
            limit = None if answer is None else float(answer)
            if limit is not None and not limit > 0:
                raise ValueError(f"quota_limit of {dict(tags)!r:.200} is {answer!r:.200}, which is not above 0")
        except (Exception, SystemExit) as fault:
            self._mistaken(fault)
            return None
        if len(self._limits) >= MOST_TAGS:
            self._limits.clear()
        self._limits[key] = limit
        return limit

    def quota(self, key: Key) -> Quota | None:
        limit = self.limit(key)
        return None if limit is None else Quota((_CUSTOM, *key), limit)

    def limit_at(self, place: EntityPlace | None) -> float | None:
        return None if place is None else self.limit((place[1] or "", place[2] or ""))

    def match(self, user: str, client_id: str) -> Match:
        key = self.key(user, client_id)
        return Match(
            key, {kind: name for kind, name in zip((USER, CLIENT_ID), key, strict=True) if name}, self.limit(key)
        )


def _key_of(tags: Tags) -> Key:
    """The key of a meter: of `user` and `client-id` as for Kafka's own quotas, else all tags as one text, `tenant=acme`. `_tags_of`
    reads it back. Raises TypeError, ValueError for tags that are no text."""
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in tags.items()):
        raise TypeError(f"quota_metric_tags must be text by name, not {dict(tags)!r:.200}")
    user, client_id = tags.get(USER, ""), tags.get(CLIENT_ID, "")
    if tags.keys() != {USER, CLIENT_ID} or not (user or client_id) or (not user and _is_of_tags(client_id)):
        words = sorted(tags.items())
        is_plain = words and not any(mark in f"{name}{value}" for name, value in words for mark in "=,{")
        client_id = ",".join(map("=".join, words)) if is_plain else json.dumps(dict(words), ensure_ascii=False)
        user = ""
    (user + client_id).encode()  # a text that can't be encoded has no home
    return (short_name(user), short_name(client_id))


def _tags_of(key: Key) -> Tags | None:
    """The tags that give a key; None where it is a digest of them."""
    user, client_id = key
    if _DIGEST.fullmatch(user) or _DIGEST.fullmatch(client_id):
        return None
    if user or not _is_of_tags(client_id):
        return {USER: user, CLIENT_ID: client_id}
    if not client_id.startswith("{"):
        return dict(pair.split("=") for pair in client_id.split(","))
    tags: dict[str, str] = json.loads(client_id)
    return tags


def _is_of_tags(text: str) -> bool:
    return "=" in text or text.startswith("{")
