"""One versioned configuration for the whole cluster: changed in one place, in force everywhere before its caller is told.

changes_are_serialised  Each change is validated against the state the one before left, and is stored before it is pushed.
in_force_everywhere_on_return  A method that changes something returns only when every shard of the cluster has acknowledged
    the version, or has been killed because it got nowhere with it (publisher.push_waits_for_progress); one that comes back
    gets the whole state before it serves.
answered_changes_are_durable  A change that a caller was told of is durable (store.commits_survive_kill), but for faults,
    which end with the coordinator's process; a caller that goes away does not stop a push half way.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import trio

from shards.config import delegation_tokens, messages, topic_changes
from shards.config.acl_changes import acls_delta
from shards.config.advertised_changes import AddressChange, advertised_delta
from shards.config.change_history import ChangedValue, with_values_in_force
from shards.config.config_state import Change, ConfigState
from shards.config.controller_rates import ACLS_AND_USERS, CONFIGURATION, MOVES, TOPICS, ControllerRates
from shards.config.fault_changes import faults_delta
from shards.config.feature_changes import why_not_updated
from shards.config.host_overrides import LookUp, addresses_of, followed_delta, looked_up, names_in_state, with_hosts
from shards.config.messages import SettingChange
from shards.config.publisher import ACK_DEADLINE_S, Publisher, Shards
from shards.config.quota_changes import quotas_delta, users_delta
from shards.config.reassignments import reassign
from shards.config.resource_changes import resource_configs_delta
from shards.config.setting_changes import Overruled, observed_delta, overruled, settings_delta
from shards.config.store import PRODUCER_ID, LastChange, RecordedChange, Store
from shards.config.store_recovery import drop_contradictions, usable_records
from shards.config.topic_changes import topic_configs_delta
from shards.errors import DeadlineExceeded, PeerLost, RemoteError
from shards.ownership import BrokerShard

T = TypeVar("T")


class Coordinator:
    """Owns the ConfigState. Its process calls `connected` and `disconnected` as links come and go."""

    def __init__(
        self,
        store: Store,
        shards: Shards,
        members: Sequence[BrokerShard],
        *,
        static: Mapping[str, str] | None = None,
        wall_clock: Callable[[], float] = time.time,
        deadline_s: float = ACK_DEADLINE_S,
        stored: Callable[[int, list[Change]], None] = lambda version, delta: None,
        acknowledged: Callable[[int, list[Change]], None] = lambda version, delta: None,
        lost: Sequence[str] = (),
        run: str = "",
        override_stored: bool = False,
        look_up: LookUp = addresses_of,
    ) -> None:
        """`static`: the command line's settings (setting_changes.static_settings). A difference from the last start is a
        version of its own. `stored(version, delta)` is called before the push, `acknowledged(version, delta)` when
        the change is in force everywhere, before its caller is answered. `lost`: sentences about a damaged store
        (store_recovery.open_store). `run` tells one start of the cluster from the next: the coordinator of one may be restarted.
        `override_stored`: the first coordinator of a run unsets live changes that overrule the command line, and all addresses
        that were set live, as the command line says where listeners are. `look_up`: the addresses of a host. Raises
        ConfigInvalid when the command line contradicts the stored configuration."""
        self._store = store
        self._shards = shards
        self.members = tuple(members)
        self._wall_clock = wall_clock
        self._stored = stored
        self._look_up = look_up
        self._acknowledged = acknowledged
        self._publisher = Publisher(shards, self.members, deadline_s)
        self._changing = trio.Lock()
        self._rates = ControllerRates(lambda name: self.state.value(name))
        brokers = 1 + max(broker for broker, _ in self.members)
        self._shards_each = 1 + max(shard for _, shard in self.members)
        records, faults = usable_records(store.records())
        self.lost = [*lost, *store.unreadable, *faults]
        """Sentences: what of the store could not be used."""
        self.state = ConfigState(brokers, static or {}, records, store.version)
        self.is_first = not run or store.run() != run
        """True if this is the first coordinator of its run."""
        self.overruled = (
            {each: store.changed("setting", each.key) for each in overruled(self.state)} if self.is_first else {}
        )
        """Live changes in the way of the command line's settings as they were stored, and when they were made."""
        unset = list(self.overruled) if override_stored else []
        for each in unset:
            del self.state.settings[each.key]
        moved = dict(self.state.advertised) if override_stored and self.is_first else {}
        for key in moved:
            del self.state.advertised[key]
        drop_contradictions(self.state, self.lost)
        self._note_static(unset, moved)

    def _note_static(self, unset: Sequence[Overruled], moved: Mapping[str, str]) -> None:
        before, now = self._store.static(), self.state.static
        named = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
        if named or unset or moved or not self.state.version:
            changes = [ChangedValue("static", key, before.get(key), now.get(key)) for key in named]
            gone = [ChangedValue("setting", each.key, each.stored, None) for each in unset]
            gone += [ChangedValue("advertised", key, address, None) for key, address in moved.items()]
            shown = with_values_in_force(gone, {each.key: each.stored for each in unset}, now)
            self.state.version = self._store.commit(
                self._wall_clock(), "turnstile up", [*changes, *gone], shown=[*changes, *shown],
                static=json.dumps(now, sort_keys=True),
            )  # fmt: skip

    # ---- shards come and go

    async def connected(self, member: BrokerShard) -> None:
        """A shard's link is up: bring it to the present. Returns when it acknowledged, or is gone again."""
        await self._publisher.connected(member, lambda: (self.state.version, self.state.dump()))

    def disconnected(self, member: BrokerShard) -> None:
        """The shard's link ended."""
        self._publisher.disconnected(member)

    def describe_shards(self) -> dict[BrokerShard, int | None]:
        """The configuration version each shard acknowledged, None for one that is not connected."""
        return self._publisher.acknowledged_versions()

    async def ask_all(self, method: str, *args: object, timeout_s: float = 2.0) -> dict[BrokerShard, Any]:
        """The answers of all connected shards; one that doesn't answer, or doesn't serve this, is left out."""
        answers: dict[BrokerShard, object] = {}

        async def ask(member: BrokerShard) -> None:
            try:
                answers[member] = await self._shards.request(member, method, *args, timeout_s=timeout_s)
            except (PeerLost, DeadlineExceeded, RemoteError):
                return

        async with trio.open_nursery() as nursery:
            for member in [member for member, version in self.describe_shards().items() if version is not None]:
                nursery.start_soon(ask, member)
        return dict(sorted(answers.items()))

    # ---- what may be asked of it; all return only when every shard has applied the change (in_force_everywhere_on_return)

    async def alter_settings(self, who: str, changes: Sequence[SettingChange], validate_only: bool = False) -> int:
        """[broker id as text or "", name, value or None]. Returns the version. Raises ConfigInvalid."""
        make = partial(settings_delta, self.state, changes)
        return await self._alter(
            who, await with_hosts(self.state, changes, make, self._look_up), validate_only, CONFIGURATION
        )

    async def alter_observed(
        self, who: str, changes: Sequence[SettingChange], validate_only: bool = False, *, hosts_may_lack: bool = False
    ) -> int:
        """As alter_settings, of limits that are observed instead of enforced; `hosts_may_lack`: their host names may be without an
        address. Returns the version. Raises ConfigInvalid."""
        make = partial(observed_delta, self.state, changes)
        hosts = await with_hosts(self.state, changes, make, self._look_up, may_lack=hosts_may_lack)
        return await self._alter(who, hosts, validate_only)

    async def follow_hosts(self) -> dict[str, str]:
        """Looks the host names of all overrides up, and puts in force what changed. Returns name -> why it has no address."""
        found = await looked_up(names_in_state(self.state), self._look_up)
        if followed_delta(self.state, found):
            await self._alter("DNS", lambda: followed_delta(self.state, found), False)
        return found.faults

    async def alter_quotas(
        self, who: str, changes: Sequence[messages.QuotaChange], validate_only: bool = False, observed: bool = False
    ) -> int:
        """[{entity type: name or None}, {key: value or None}]; `observed`: not enforced. The version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: quotas_delta(self.state, changes, observed=observed), validate_only)

    async def alter_users(self, who: str, changes: Sequence[messages.UserChange], validate_only: bool = False) -> int:
        """[user, mechanism, credential or None]. Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: users_delta(self.state, changes), validate_only, ACLS_AND_USERS)

    async def alter_faults(self, who: str, changes: Sequence[messages.FaultChange], validate_only: bool = False) -> int:
        """[name, fault or None]. Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: faults_delta(self.state, changes), validate_only)

    async def advertise(self, who: str, change: AddressChange) -> int:
        """Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: advertised_delta(self.state, change), False)

    async def alter_acls(self, who: str, changes: Sequence[messages.AclChange], validate_only: bool = False) -> int:
        """[ACL as of key_of_acl, whether there is to be one]. Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: acls_delta(self.state, changes), validate_only, ACLS_AND_USERS)

    async def alter_topic_configs(
        self, who: str, changes: Sequence[messages.ResourceConfigChange], validate_only: bool = False
    ) -> int:
        """[topic, name, value or None]. Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: topic_configs_delta(self.state, changes), validate_only, TOPICS)

    async def alter_resource_configs(
        self, who: str, kind: str, changes: Sequence[messages.ResourceConfigChange], validate_only: bool = False
    ) -> int:
        """[client metrics resource or group, config name, value or None]. Returns the version. Raises ConfigInvalid."""
        return await self._alter(who, lambda: resource_configs_delta(self.state, kind, changes), validate_only)

    async def update_features(
        self, who: str, updates: Sequence[messages.FeatureUpdate], controller: int, validate_only: bool = False
    ) -> str:
        """[name, level, kind of update]. Returns why that can't be, as Kafka says it; empty: it is in force."""
        wanted = [(name, level, kind) for name, level, kind in updates]

        def make() -> tuple[list[Change], str]:
            said = why_not_updated(self.state, wanted, controller)
            return [] if said else [("feature", name, level) for name, level, _ in wanted], said

        return await self._answered(who, make, validate_only)

    async def alter_token(self, who: str, how: str, *args: object) -> list[object]:
        """`how`: create, renew or expire; the arguments and the answer are those of that function of delegation_tokens."""
        change = delegation_tokens.CHANGES[how]
        return await self._answered(who, lambda: change(self.state, *args, now_ms=self._now_ms()))

    async def delete_expired_tokens(self) -> int:
        """Returns the version. Raises CannotStore."""
        return await self._alter("expiry", lambda: delegation_tokens.expired(self.state, now_ms=self._now_ms()), False)

    def _now_ms(self) -> int:
        return int(self._wall_clock() * 1000)

    async def create_topics(
        self, who: str, wanted: Sequence[messages.TopicToCreate], validate_only: bool = False
    ) -> list[list[str]]:
        """As topic_changes.create_topics. Returns [error name or "", message] for each."""
        admit = self._rates.each(TOPICS, who, wanted)
        make = partial(topic_changes.create_topics, self.state, wanted, self._shards_each)
        return await self._answered(who, make, validate_only, admit)

    async def create_first_topics(
        self, run: str, wanted: Sequence[messages.TopicToCreate]
    ) -> list[topic_changes.MissedTopic]:
        """The topics that this run of the cluster is started with; not again when the coordinator was restarted in it, for
        by then some of them may have been deleted. Returns which are not there as asked."""
        if self._store.run() == run:
            return []
        results = await self.create_topics("turnstile up", wanted) if wanted else []
        self._store.ran(run)
        return topic_changes.missed_topics(self.state, wanted, results)

    async def create_partitions(
        self, who: str, wanted: Sequence[messages.TopicToExtend], validate_only: bool = False
    ) -> list[list[str]]:
        """As topic_changes.create_partitions. Returns [error name or "", message] for each."""
        admit = self._rates.each(TOPICS, who, wanted)
        make = partial(topic_changes.create_partitions, self.state, wanted, self._shards_each)
        return await self._answered(who, make, validate_only, admit)

    async def reassign(
        self, who: str, wanted: Sequence[messages.Reassignment], factor_may_change: bool
    ) -> list[list[str]]:
        """As reassignments.reassign. Returns [error name or "", message] for each."""
        admit = self._rates.each(MOVES, who, wanted)
        return await self._answered(who, partial(reassign, self.state, wanted, factor_may_change), admit=admit)

    async def delete_topics(self, who: str, names: Sequence[str]) -> list[list[str]]:
        """Returns [error name or "", message] for each."""
        admit = self._rates.each(TOPICS, who, [(name,) for name in names])
        return await self._answered(who, partial(topic_changes.delete_topics, self.state, names), admit=admit)

    async def reset(self, who: str, wanted: Sequence[messages.TopicToCreate]) -> int:
        """Back to the start: the command line's settings, `wanted` topics as of `create_topics`, no quota and no user.
        Where clients are told to connect stays: the way to the cluster is no other one than before.

        Then every shard closes its connections and forgets groups, rates and what clients used. Returns the version.
        """
        async with self._changing:
            topics, _ = topic_changes.create_topics(
                ConfigState(self.state.brokers, self.state.static), wanted, self._shards_each
            )
            gone = [
                (kind, key, None) for kind, key, _ in self.state.dump() if kind not in ("static", "advertised", "host")
            ]
            kept = {("topic", name) for _, name, _ in topics}
            delta = [*(change for change in gone if change[:2] not in kept), *topics]
            await self._commit_and_push(who, delta)
            await self.ask_all("reset")
            return self.state.version

    def allocate_producer_ids(self, count: int) -> int:
        """The first of `count` producer ids that were never given out before, nor will be again."""
        return self._store.allocate(PRODUCER_ID, count)

    def history(self, most: int = 100, before: int | None = None) -> list[RecordedChange]:
        """The last changes, latest first; of a setting the values that were in force (shards.config.change_history)."""
        return self._store.history(most, before)

    def changed(self, kind: str, key: str) -> LastChange | None:
        """The last change of a record."""
        return self._store.changed(kind, key)

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offer the methods to shards: `serve(name, function(peer, *args))`, as Mesh.serve takes them."""

        def without_peer(function: Callable[..., object]) -> Callable[..., object]:
            return lambda peer, *args: function(*args)

        for name in ("alter_settings", "alter_quotas", "alter_users", "alter_acls", "alter_topic_configs",
                     "alter_resource_configs", "update_features", "create_topics", "create_partitions", "reassign",
                     "alter_token", "delete_topics", "allocate_producer_ids", "history"):  # fmt: skip
            serve(name, without_peer(getattr(self, name)))

    # ---- how

    async def _alter(self, who: str, make: Callable[[], list[Change]], validate_only: bool, group: str = "") -> int:
        """`group`: of Redpanda's limits of controller operations."""
        if validate_only:
            make()
            return self.state.version
        async with self._changing:
            delta = make()
            self._rates.take(group, who, delta)
            await self._commit_and_push(who, delta)
            return self.state.version

    async def _answered(
        self,
        who: str,
        make: Callable[[], tuple[list[Change], T]],
        validate_only: bool = False,
        admit: Callable[[list[Change], T], tuple[list[Change], T]] | None = None,
    ) -> T:
        """Makes a change with an answer of its own, which may refuse a part of it; `admit` may refuse more when it is made."""
        if validate_only:
            return make()[1]
        async with self._changing:
            delta, answer = make() if admit is None else admit(*make())
            await self._commit_and_push(who, delta)
            return answer

    async def _commit_and_push(self, who: str, delta: list[Change]) -> None:
        if delta:
            changes = [ChangedValue(kind, key, self.state.find(kind, key), value) for kind, key, value in delta]
            shown = with_values_in_force(changes, self.state.settings, self.state.static)
            self.state.version = self._store.commit(self._wall_clock(), who, changes, shown=shown)
            self.state.put(delta)
            self._stored(self.state.version, delta)
        with trio.CancelScope(shield=True):  # answered_changes_are_durable; the deadlines bound it
            await self._publisher.push(self.state.version, delta)
        if delta:
            self._acknowledged(self.state.version, delta)
