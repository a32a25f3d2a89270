"""A streams group: its topology, its members, their requests and tasks (KIP-1071). No I/O and no clock; `now_ms` comes in.

A heartbeat is answered at once. The first one brings the topology; while topics of it are missing no member has tasks, and its
answer tells which internal topics are to be created.

Invariants (`check` asserts them)
no_active_task_twice  No task is active at two members, what one is still to revoke included.
streams_epochs_never_fall  No epoch falls while its member stays; assignment epoch <= group epoch.
targets_have_each_task_once  No task is active in the targets of two members.

Source: GroupMetadataManager.streamsGroupHeartbeat, StreamsGroup of Kafka 4.3. As there, static members, warm-up tasks and regular
expressions for source topics are refused (api.py), and another topology only begins once the group was deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from broker.kafka.groups.modern.member import LEAVE
from broker.kafka.groups.modern.modern_group import ModernGroup, fingerprint_of
from broker.kafka.groups.modern.topics import GroupTopics
from broker.kafka.groups.streams.assignor import Candidate, SubtopologyTasks, sticky
from broker.kafka.groups.streams.endpoints import EndpointPartitions, endpoints_of
from broker.kafka.groups.streams.heartbeat_checks import fenced_by, unknown_task
from broker.kafka.groups.streams.member import (
    StreamsGroupConfig,
    StreamsHeartbeat,
    StreamsMember,
    StreamsResult,
)
from broker.kafka.groups.streams.reconciliation import Holders, is_reconciled, reconcile
from broker.kafka.groups.streams.status import Delay, Status, delayed, shutdown, stale
from broker.kafka.groups.streams.tasks import NOTHING, Task, Tasks
from broker.kafka.groups.streams.topology import (
    ConfiguredTopology,
    InvalidTopology,
    PartitionsOf,
    Topology,
    configure,
)
from broker.wire import codes


@dataclass(slots=True, kw_only=True, eq=False)
class StreamsGroup(ModernGroup[StreamsMember]):
    """`fingerprint`: of the topics of its topology when the epoch was last raised; `validated`: the epoch of the topology for which
    all topics were there, -1: they are not; `standby_replicas`: as of the last target."""

    topology: Topology | None = None
    validated: int = -1
    standby_replicas: int = 0
    endpoint_epoch: int = 0
    shutdown_by: str | None = None
    _delayed_until_ms: int | None = None
    _configured: ConfiguredTopology | None = None

    def check(self) -> None:
        """Raises AssertionError when an invariant does not hold."""
        held = Counter(task for member in self.members.values() for task in member.progress.held.active)
        assert all(count == 1 for count in held.values()), "no_active_task_twice"
        aimed = Counter(task for member in self.members.values() for task in member.target.active)
        assert all(count == 1 for count in aimed.values()), "targets_have_each_task_once"
        assert self.assignment_epoch <= self.epoch, "streams_epochs_never_fall"

    def state(self, topics: GroupTopics) -> str:
        """The state, as ListGroups and StreamsGroupDescribe spell it."""
        if not self.members:
            return "Empty"
        configured = self.configured(topics)
        if configured is None or not configured.is_ready:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(is_reconciled(member.progress, self.assignment_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    # --- requests --------------------------------------------------------------------------------------------------

    def heartbeat(
        self, request: StreamsHeartbeat, config: StreamsGroupConfig, topics: GroupTopics, now_ms: int
    ) -> StreamsResult:
        """NONE with the member's epoch, or the code of the first rule that the request breaks."""
        refused = self._refuses(request, config)
        if refused is not None:
            return refused
        try:
            configured = self._configure(request.topology, topics)
        except InvalidTopology as fault:
            return StreamsResult(codes.STREAMS_INVALID_TOPOLOGY, str(fault))
        unknown = unknown_task(request.owned, configured)
        if unknown is not None:
            return StreamsResult(codes.INVALID_REQUEST, unknown)
        if not self.members:
            self._delayed_until_ms = now_ms + config.initial_delay_ms if config.initial_delay_ms else None
        member = self.members.setdefault(request.member_id, StreamsMember(request.member_id))
        before, assigned = member.kept(), member.progress.assigned
        self._note_changes(config, configured, topics, changed=member.update(request))
        waits_for = self._waits_for(config, now_ms)
        is_delayed = waits_for is Delay.INITIAL_REBALANCE
        if self.epoch > self.assignment_epoch and waits_for is None:
            self._assign(config, configured, now_ms)
        self._advance(member, request.owned, now_ms, is_delayed=is_delayed)
        member.session_deadline_ms = now_ms + config.session_ms
        if request.shutdown and self.shutdown_by is None:
            self.shutdown_by = member.id
        if member.kept() != before:
            self._changed.add(member.id)
        is_told = request.epoch == 0 or member.progress.assigned != assigned
        if is_told and member.facts.endpoint is not None:
            self.endpoint_epoch += 1
        return StreamsResult(
            codes.NONE,
            None,
            member.id,
            member.epoch,
            config.heartbeat_ms,
            self._statuses(member, configured, waits_for),
            member.progress.assigned if is_told else None,
            self.endpoint_epoch,
            self._endpoints(topics) if request.endpoint_epoch != self.endpoint_epoch else None,
            configured.missing,
        )

    def leave(self, member_id: str, now_ms: int) -> StreamsResult:
        if member_id not in self.members:
            return self._unknown(member_id)
        self._remove(self.members[member_id], now_ms)
        return StreamsResult(codes.NONE, None, member_id, LEAVE)

    def may_commit(self, member_id: str, epoch: int, topics: Iterable[tuple[str, int]], version: int | None) -> int:
        """NONE if this member may commit offsets of these partitions (topic, number), else the code. `version` is that of
        OffsetCommit; None: in a transaction. A member may commit with an earlier epoch what it has had since then (KIP-1251)."""
        is_anonymous = epoch < 0 and not member_id
        if epoch < 0 and (not self.members or (version is None and is_anonymous)):
            return codes.NONE
        member = self.members.get(member_id)
        if member is None:
            return codes.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return codes.NONE
        since = [self._since(member, *each) for each in topics]
        is_current = epoch < member.epoch and all(each is not None and each <= epoch for each in since)
        return codes.NONE if is_current else codes.STALE_MEMBER_EPOCH

    def subscribes_to(self, topic: str) -> bool:
        """True if members read a topic."""
        return bool(self.members) and self.topology is not None and self.topology.subtopology_of(topic) is not None

    def configured(self, topics: GroupTopics) -> ConfiguredTopology | None:
        """The topology with the topics that exist; None: no member has sent one."""
        if self.topology is None:
            return None
        if self._configured is None or topics.version != self._topics_version:
            self._configured = configure(self.topology, _partitions_of(topics))
            self._topics_version = topics.version
        return self._configured

    def _refuses(self, request: StreamsHeartbeat, config: StreamsGroupConfig) -> StreamsResult | None:
        member = self.members.get(request.member_id)
        if member is None:
            if len(self.members) >= config.max_size:
                message = f"The streams group has reached its maximum capacity of {config.max_size} members."
                return StreamsResult(codes.GROUP_MAX_SIZE_REACHED, message)
            if request.epoch != 0:
                return self._unknown(request.member_id)
        elif (fenced := fenced_by(member, request)) is not None:
            return fenced
        known = self.topology
        if request.topology is None or known is None or known.epoch > request.topology.epoch:
            return None
        is_same = known == request.topology
        return None if is_same else StreamsResult(codes.INVALID_REQUEST, "Topology updates are not supported yet.")

    def _unknown(self, member_id: str) -> StreamsResult:
        return StreamsResult(codes.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")

    # --- what is kept ------------------------------------------------------------------------------------------------

    def _row(self) -> list[object]:
        return [
            self.epoch, self.assignment_epoch, self.topology, self.fingerprint, self.validated, self.standby_replicas,
        ]  # fmt: skip

    def restore(self, member: StreamsMember, session_ms: int, now_ms: int) -> None:
        """Takes in a member of before this process: its session begins anew."""
        member.session_deadline_ms = now_ms + session_ms
        member.await_revocation(now_ms)
        self.members[member.id] = member

    # --- epochs, targets, progress ------------------------------------------------------------------------------------

    def _configure(self, topology: Topology | None, topics: GroupTopics) -> ConfiguredTopology:
        """The group's topology, or the one that its first member brings, with the topics that there are. Raises InvalidTopology."""
        if self.topology is None:
            assert topology is not None  # a member that joins sends it
            configured = configure(topology, _partitions_of(topics))
            self.topology, self._configured, self._topics_version = topology, configured, topics.version
            self._group_changed = True
        found = self.configured(topics)
        assert found is not None
        return found

    def _release(self, member: StreamsMember) -> None:
        if not self.members:
            self.shutdown_by = self._delayed_until_ms = None

    def _waits_for(self, config: StreamsGroupConfig, now_ms: int) -> Delay | None:
        """The delay that the next assignment waits for; None: it is made at once, or there is nothing to assign."""
        if self.epoch == self.assignment_epoch:
            return None
        if self._delayed_until_ms is not None and now_ms >= self._delayed_until_ms:
            self._delayed_until_ms = None
        if self._delayed_until_ms is not None:
            return Delay.INITIAL_REBALANCE
        return None if self._may_assign(config.assignment_interval_ms, now_ms) else Delay.ASSIGNMENT_INTERVAL

    def _note_changes(
        self, config: StreamsGroupConfig, configured: ConfiguredTopology, topics: GroupTopics, *, changed: bool
    ) -> None:
        """Raises the epoch if members, topics or configs are others than those of the last epoch."""
        assert self.topology is not None
        fingerprint = _fingerprint(self.topology, topics)
        validated = self.topology.epoch if configured.is_ready else -1
        now = fingerprint, validated, config.standby_replicas
        if changed or now != (self.fingerprint, self.validated, self.standby_replicas):
            self.fingerprint, self.validated, self.standby_replicas = now
            self._raise_epoch()

    def _assign(self, config: StreamsGroupConfig, configured: ConfiguredTopology, now_ms: int) -> None:
        """The targets of a new epoch: nothing for anybody while topics are missing."""
        targets = dict.fromkeys(self.members, NOTHING)
        if configured.is_ready and configured.tasks is not None and self.topology is not None:
            subtopologies = {
                each.id: SubtopologyTasks(configured.tasks[each.id], each.is_stateful)
                for each in self.topology.subtopologies
            }
            members = [Candidate(each.id, each.facts.process_id, each.target) for each in self.members.values()]
            targets = sticky(members, subtopologies, config.standby_replicas)
        self._set_targets(targets, now_ms)

    def _advance(self, member: StreamsMember, owned: Tasks | None, now_ms: int, *, is_delayed: bool) -> None:
        epoch, target = self.assignment_epoch, member.target
        if is_delayed:
            target = NOTHING
        if is_reconciled(member.progress, epoch):
            return
        progress = reconcile(member.progress, member.facts.process_id, target, epoch, self._holders(), owned)
        if progress != member.progress:
            member.advance(progress, now_ms)
            self.changed_ms = now_ms

    def _holders(self) -> Holders:
        active: dict[Task, str] = {}
        standby: dict[Task, set[str]] = {}
        for member in self.members.values():
            held, process = member.progress.held, member.facts.process_id
            active.update(dict.fromkeys(held.active, process))
            for task in held.standby:
                standby.setdefault(task, set()).add(process)
        return Holders(active, standby)

    def _since(self, member: StreamsMember, topic: str, number: int) -> int | None:
        """The assignment epoch since which a member has the active task that reads a partition; None: it has it not."""
        subtopology = None if self.topology is None else self.topology.subtopology_of(topic)
        return None if subtopology is None else member.since.get((subtopology, number))

    # --- what is told ------------------------------------------------------------------------------------------------

    def _statuses(
        self, member: StreamsMember, configured: ConfiguredTopology, waits_for: Delay | None
    ) -> tuple[Status, ...]:
        epochs = member.facts.topology_epoch, -1 if self.topology is None else self.topology.epoch
        statuses = stale(*epochs), delayed(waits_for), configured.status, shutdown(self.shutdown_by)
        return tuple(each for each in statuses if each is not None)

    def _endpoints(self, topics: GroupTopics) -> tuple[EndpointPartitions, ...]:
        configured = self.configured(topics)
        if configured is None or configured.tasks is None or self.topology is None:
            return ()
        return endpoints_of(self.members.values(), self.topology, _partitions_of(topics))


def _partitions_of(topics: GroupTopics) -> PartitionsOf:
    def count(name: str) -> int | None:
        found = topics.get(name)
        return None if found is None else found[1]

    return count


def _fingerprint(topology: Topology, topics: GroupTopics) -> str:
    """The fingerprint of the topics that a topology needs, as they are now."""
    return fingerprint_of([(name, topics.get(name)) for name in sorted(topology.required_topics())])
