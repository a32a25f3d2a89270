"""The options of `turnstile up`, put into the stored configuration; and the notes on them, where they were typed.

earlier_changes_are_kept_and_told  An earlier run's live changes are kept unless --override-stored is given; each that is in
    the way of the command line is told, with when it was made, by whom, and the command that undoes it.
config_files_replace  Quotas and users of a --config file replace what is stored; what they replace is told.
once_per_run  A coordinator that is started again within a run repeats none of this.
"""

import shlex
import time
from typing import NamedTuple

from broker.serve.sasl import SCRAM, Credential
from shards.config.cluster_plan import ClusterPlan
from shards.config.coordinator import Coordinator
from shards.config.limit_notes import notes_in_force
from shards.config.messages import SettingChange, TopicToCreate, TopicToExtend
from shards.config.setting_changes import Overruled, limits_in_force, listeners_of
from shards.config.store import LastChange
from shards.config.topic_changes import MissedTopic
from shards.limits.quota_entities import REDPANDAS, entity_of, key_of_entity
from shards.settings.config_def import broker_setting, listener_of, not_emulated
from shards.settings.config_types import HIDDEN
from shards.settings.errors import ConfigInvalid

_WHO = "turnstile up"


class StartReport(NamedTuple):
    """`overruled`: sentences about what was asked for and is not in force. `notes`: about what is in force and often
    misunderstood."""

    limits: dict[str, str]
    overruled: list[str]
    notes: list[str]


class FirstStart:
    """`apply` once in each run; `add_records` also after a reset."""

    def __init__(self, coordinator: Coordinator, plan: ClusterPlan) -> None:
        self._coordinator = coordinator
        self._plan = plan
        self._not_observed: list[str] = []

    async def apply(self) -> StartReport:
        """Creates the topics, quotas and users; returns when they are in force. Raises ConfigInvalid, CannotStore."""
        coordinator, plan = self._coordinator, self._plan
        replaced: list[str] = []
        if coordinator.is_first:
            replaced = self._replaced_quotas() + self._replaced_users()
            await self.add_records()
        wanted = [TopicToCreate(name, partitions, {}) for name, partitions in plan.topics]
        missed = await coordinator.create_first_topics(plan.run, wanted)
        overruled = [self._topic(each) for each in await self._grown(missed)]
        for each, changed in coordinator.overruled.items():
            (replaced if plan.override_stored else overruled).append(self._setting(each, changed))
        state = coordinator.state
        ignored = not_emulated(key[1:] for key in plan.static if key.startswith("/"))
        notes = [
            *coordinator.lost,
            *replaced,
            *self._not_observed,
            *self._unused(),
            *self._moved(),
            *ignored,
            *notes_in_force(state, self._plan.at_admin),
        ]
        return StartReport(limits_in_force(state), overruled, notes)

    async def add_records(self) -> None:
        """The quotas, users and observed caps of `turnstile up`, which has checked them."""
        if self._plan.quotas:
            await self._coordinator.alter_quotas(_WHO, self._plan.quotas)
        changes = [
            (name, mechanism, Credential.of_password(mechanism, password).stored())
            for name, password in self._plan.users.items()
            for mechanism in SCRAM
        ]
        if changes:
            await self._coordinator.alter_users(_WHO, changes)
        if self._plan.observed:
            await self._observe([("", name, text) for name, text in self._plan.observed])

    async def _observe(self, changes: list[SettingChange]) -> None:
        try:
            await self._coordinator.alter_observed(_WHO, changes, hosts_may_lack=True)
        except ConfigInvalid as fault:  # beside what an earlier run has stored
            self._not_observed = [f"nothing is observed as asked for: {fault}"]

    async def _grown(self, missed: list[MissedTopic]) -> list[MissedTopic]:
        """With --override-stored, gives topics the partitions that they lack. Returns the topics that are still not as asked."""
        if not self._plan.override_stored:
            return missed
        lacking = [TopicToExtend(each.name, each.asked) for each in missed if 0 < self._partitions(each) < each.asked]
        if lacking:
            await self._coordinator.create_partitions(_WHO, lacking)
        return [each for each in missed if self._partitions(each) != each.asked]

    def _partitions(self, topic: MissedTopic) -> int:
        """The number of its partitions; 0: there is no such topic."""
        found = self._coordinator.state.topics.get(topic.name)
        return len(found["leaders"]) if found else 0

    # What is said

    def _setting(self, each: Overruled, changed: LastChange | None) -> str:
        asked, stored = (
            HIDDEN if broker_setting(each.name).is_password else text for text in (each.asked, each.stored)
        )
        of = f" of broker {each.broker}" if each.broker else ""
        if self._plan.override_stored:
            return f"{each.name}={asked} replaces {stored}{of}, which was {_since(changed)}."
        undo = f"turnstile config unset {each.name}{f' --broker {each.broker}' if each.broker else ''}{self._plan.at_admin}"
        return (
            f"{each.name}={asked} was asked for, but {stored} is in force{of}: {_since(changed)}, and kept in the data directory. "
            f"To have {asked}, start with --override-stored, or now: {undo}"
        )

    def _topic(self, each: MissedTopic) -> str:
        there = self._partitions(each)
        if not there:
            return f"topic {each.name}:{each.asked} was not made: {each.why}"
        sentence = f"topic {each.name} has {there} partitions since an earlier run, and {each.asked} were asked for."
        if there < each.asked:
            return f"{sentence} To have {each.asked}, start with --override-stored."
        return f"{sentence} Partitions are never taken away: delete the topic, or start with another --data-dir."

    def _replaced_quotas(self) -> list[str]:
        found = []
        for names, values in self._plan.quotas:
            entity = entity_of(names, REDPANDAS)
            key = key_of_entity(entity)
            before = self._coordinator.state.quotas.get(key, {})
            words = shlex.join(f"{kind}={'<default>' if name is None else name}" for kind, name in entity)
            for name, value in values.items():
                if name in before and before[name] != value:
                    since = _since(self._coordinator.changed("quota", key))
                    undo = f"turnstile quota set {words} {name}={before[name]:.15g}{self._plan.at_admin}"
                    found.append(
                        f"{words} {name}={value:.15g} replaces {before[name]:.15g}, which was {since}. To go back: {undo}"
                    )
        return found

    def _replaced_users(self) -> list[str]:
        found = []
        for name, password in self._plan.users.items():
            stored = self._coordinator.state.users.get(name, {})
            if any(not Credential.parse(each).is_of(how, password) for how, each in stored.items()):
                since = _since(self._coordinator.changed("user", name))
                found.append(f"the password of user {name} replaces another one, which was {since}.")
        return found

    def _moved(self) -> list[str]:
        """Addresses for clients that an earlier run has stored: the cluster may be reached otherwise now."""
        state = self._coordinator.state
        listeners = {name.lower() for name in listeners_of(state.static)}
        found = []
        for key, address in state.advertised.items():
            broker, _, listener = key.partition("/")
            if int(broker) >= state.brokers or listener.lower() not in listeners:
                found.append(
                    f"{address} is stored for clients of {listener} of broker {broker}, and this cluster has no such listener. "
                    f"To forget all that is stored: turnstile advertise --unset{self._plan.at_admin}"
                )
                continue
            since = _since(self._coordinator.changed("advertised", key))
            undo = f"turnstile advertise {listener} --unset{self._plan.at_admin}"
            found.append(
                f"clients of {listener} are told {address} for broker {broker}, {since}, and kept in the data directory. "
                f"To forget it: {undo}"
            )
        return found

    def _unused(self) -> list[str]:
        """Stored settings of listeners and brokers that this cluster does not have."""
        state = self._coordinator.state
        listeners = [name.lower() for name in listeners_of(state.static)]
        found = []
        for key, text in state.settings.items():
            broker, _, name = key.partition("/")
            if broker and int(broker) >= state.brokers:
                found.append(f"{name}={text} of broker {broker} is stored, and this cluster has no such broker.")
            elif (listener := listener_of(name)) is not None and listener not in listeners:
                undo = f"turnstile config unset {name}{self._plan.at_admin}"
                found.append(f"{name}={text} is stored, and this cluster has no such listener. To forget it: {undo}")
        return found


def _since(changed: LastChange | None) -> str:
    if changed is None:
        return "set by an earlier run"
    return f"set on {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(changed.at))} by {changed.who}"
