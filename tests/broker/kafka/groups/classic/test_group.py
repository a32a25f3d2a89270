"""The classic group protocol: each rule once, then random members under a random clock.

The simulation's members behave as clients do (join, sync, heartbeat, leave), but also die, repeat themselves, restart
under their instance id, use another member's ids, have timeouts of zero, and sleep through their sessions. After every
step each group's invariants hold; every answer comes once; a generation has one leader; a member's assignment is the one
that leader made; generations only rise, and no new one has a number that was given before the process was killed; no group is
ended by a mistake of the state machine.
"""

from __future__ import annotations

import errno
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.kafka.groups.classic.classic_groups import ClassicGroups
from broker.kafka.groups.classic.group import ClassicGroup
from broker.kafka.groups.classic.members import GroupConfig, JoinGroupResult, JoinRequest, SyncGroupResult
from broker.kafka.groups.classic.messages import SyncGroup
from broker.kafka.groups.classic.rebalance import GroupState
from broker.kafka.groups.committed_offsets import LastGeneration
from broker.kafka.groups.stored_group import StoredGroup
from broker.wire import codes

LIMITS = GroupConfig(min_session_ms=3000, max_session_ms=60_000, max_size=100, initial_delay_ms=0)
RANGE = (("range", b"r"),)


class FakeStore:
    """The records of groups, as CommittedOffsets has them."""

    def __init__(self) -> None:
        self.generations: dict[str, LastGeneration] = {}
        self.groups: dict[str, StoredGroup] = {}
        self.is_full = False

    def __iter__(self) -> Iterator[str]:
        return iter([*self.generations])

    def generation(self, group: str) -> LastGeneration:
        return self.generations.get(group, LastGeneration(0, None))

    def store_generation(self, group: str, generation: int, protocol_type: str | None) -> None:
        self._write()
        self.generations[group] = LastGeneration(generation, protocol_type)

    def stored_group(self, group: str, kind: int) -> StoredGroup | None:
        return self.groups.get(group)

    def store_group(
        self, group: str, kind: int, row: Sequence[object], members: Mapping[str, Sequence[object] | None]
    ) -> None:
        self._write()
        self.groups.setdefault(group, StoredGroup(kind)).apply(row, members)

    def forget_members(self, group: str) -> None:
        self._write()
        self.groups.pop(group, None)

    def _write(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")


class Table:
    """Groups with a clock and answers that can be looked at."""

    def __init__(self, limits: GroupConfig = LIMITS) -> None:
        self.ids = itertools.count()
        self.now_ms = 0
        self.store = FakeStore()
        self.limits = limits
        self.groups = self.loaded()

    def loaded(self) -> ClassicGroups:
        groups = ClassicGroups(
            limits=lambda: self.limits,
            new_id=lambda: f"id{next(self.ids)}",
            store=self.store,
            on_fault=lambda *args: self.failed(*args),
        )
        groups.load(self.now_ms)
        return groups

    def kill(self) -> None:
        """The process is killed, and its successor begins with the records; requests that waited are never answered."""
        self.groups = self.loaded()
        self.check()

    def failed(self, group_id: str, fault: Exception) -> None:
        raise fault

    def join(self, member_id: str = "", **fields: Any) -> list[JoinGroupResult]:
        """Sends a JoinGroup. The list gets its answers: empty while it waits."""
        answers: list[JoinGroupResult] = []
        self.groups.join(fields.pop("group", "g"), request(member_id, **fields), answers.append, self.now_ms)
        self.check()
        return answers

    def sync(
        self, joined: JoinGroupResult, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> list[SyncGroupResult]:
        answers: list[SyncGroupResult] = []
        message = SyncGroup(
            fields.get("group", "g"),
            joined.member_id,
            fields.get("instance_id"),
            fields.get("generation", joined.generation),
            fields.get("protocol", (None, None)),
            [*(assignments or {}).items()],
        )
        self.groups.sync(message, answers.append, self.now_ms)
        self.check()
        return answers

    def beat(self, joined: JoinGroupResult, instance_id: str | None = None, generation: int | None = None) -> int:
        n = joined.generation if generation is None else generation
        return self.groups.heartbeat("g", joined.member_id, instance_id, n, self.now_ms)

    def leave(self, member_id: str, instance_id: str | None = None) -> int:
        (code,) = self.groups.leave("g", [(member_id, instance_id)], self.now_ms)
        self.check()
        return code

    def pass_ms(self, ms: int) -> None:
        """Time passes, and every deadline is met. At each instant the groups come to rest (ticked_groups_come_to_rest)."""
        end_ms = self.now_ms + ms
        ticks = 0
        while (due_ms := self.groups.next_deadline_ms()) is not None and due_ms <= end_ms:
            ticks = ticks + 1 if due_ms <= self.now_ms else 0
            assert ticks < 10, "ticked_groups_come_to_rest"
            self.now_ms = max(due_ms, self.now_ms)
            self.groups.tick(self.now_ms)
            self.check()
        self.now_ms = end_ms

    def check(self) -> None:
        for group in self.groups:
            group.check()
            assert not group.outbox

    @property
    def state(self) -> GroupState:
        group = self.groups.get("g")
        assert group is not None
        return group.state

    def stable(self, *members: JoinGroupResult) -> None:
        """All members sync; the leader first."""
        for joined in sorted(members, key=lambda j: j.member_id != j.leader):
            (answer,) = self.sync(joined, {m: m.encode() for m, _, _ in joined.members})
            assert answer.code == codes.NONE


def request(
    member_id: str = "",
    *,
    instance_id: str | None = None,
    client: str = "c",
    session_ms: int = 10_000,
    rebalance_ms: int = 30_000,
    protocol_type: str = "consumer",
    protocols: tuple[tuple[str, bytes], ...] = RANGE,
    id_required: bool = False,
    can_skip: bool = True,
) -> JoinRequest:
    return JoinRequest(
        member_id, instance_id, client, "/127.0.0.1", session_ms, rebalance_ms, protocol_type, protocols, id_required,
        can_skip,
    )  # fmt: skip


@pytest.fixture
def table() -> Table:
    return Table()


def pair(table: Table) -> tuple[JoinGroupResult, JoinGroupResult]:
    """Two members in a stable generation, the leader first."""
    first = table.join()
    table.pass_ms(0)
    table.stable(first[0])
    second = table.join()
    assert not second
    again = table.join(first[0].member_id)
    table.stable(again[0], second[0])
    return again[0], second[0]


# --- joining and syncing ---------------------------------------------------------------------------------------


def test_a_lone_member_leads_its_generation(table: Table) -> None:
    answers = table.join()
    assert not answers
    table.pass_ms(0)
    (joined,) = answers
    assert (joined.code, joined.generation, joined.protocol, joined.protocol_type) == (0, 1, "range", "consumer")
    assert joined.leader == joined.member_id == "c-id0"
    assert joined.members == (("c-id0", None, b"r"),)
    assert table.store.generation("g") == (1, "consumer")
    (synced,) = table.sync(joined, {"c-id0": b"all"})
    assert synced == SyncGroupResult(0, "consumer", "range", b"all")
    assert table.state is GroupState.STABLE


def test_a_second_member_makes_the_first_rejoin(table: Table) -> None:
    first, second = pair(table)
    assert first.generation == second.generation == 2
    assert second.leader == first.leader == first.member_id
    assert [m[0] for m in first.members] == [first.member_id, second.member_id]
    assert second.members == ()
    assert table.beat(first) == table.beat(second) == codes.NONE


def test_a_follower_that_syncs_first_waits_for_the_leader(table: Table) -> None:
    first, second = pair(table)
    third = table.join()
    again = table.join(second.member_id)
    lead = table.join(first.member_id)
    waiting = [table.sync(third[0]), table.sync(again[0])]
    assert waiting == [[], []]
    table.sync(lead[0], {third[0].member_id: b"3", second.member_id: b"2"})
    assert [w[0].assignment for w in waiting] == [b"3", b"2"]


def test_heartbeats_tell_of_the_rebalance(table: Table) -> None:
    first, second = pair(table)
    table.join()
    assert table.beat(first) == codes.REBALANCE_IN_PROGRESS
    assert table.sync(second)[0].code == codes.REBALANCE_IN_PROGRESS


def test_syncs_under_way_end_when_the_group_starts_over(table: Table) -> None:
    first, second = pair(table)
    third = table.join()
    for member in (second, first):
        table.join(member.member_id)
    waiting = table.sync(third[0])
    table.join()
    assert [w.code for w in waiting] == [codes.REBALANCE_IN_PROGRESS]


def test_a_member_that_repeats_its_join_gets_the_same_answer_again(table: Table) -> None:
    _first, second = pair(table)
    assert table.join(second.member_id) == [second]
    assert table.state is GroupState.STABLE


def test_the_leader_and_a_changed_member_start_a_rebalance(table: Table) -> None:
    first, second = pair(table)
    assert table.join(second.member_id, protocols=(("range", b"other"),)) == []
    assert table.state is GroupState.PREPARING
    table.join(first.member_id)
    assert table.state is GroupState.COMPLETING
    group = table.groups.get("g")
    assert group is not None
    assert group.generation == 3


def test_the_protocol_that_most_prefer_is_chosen(table: Table) -> None:
    both = (("sticky", b"s"), ("range", b"r"))
    first = table.join(protocols=(("range", b"r"), ("sticky", b"s"), ("odd", b"")))
    second, third = table.join(protocols=both), table.join(protocols=both)
    table.pass_ms(0)
    assert {a[0].protocol for a in (first, second, third)} == {"sticky"}


@pytest.mark.parametrize(
    "fields",
    [{"protocol_type": "connect"}, {"protocols": (("odd", b""),)}, {"protocols": ()}, {"protocol_type": ""}],
)
def test_members_must_have_a_protocol_in_common(table: Table, fields: dict[str, Any]) -> None:
    pair(table)
    assert table.join(**fields)[0].code == codes.INCONSISTENT_GROUP_PROTOCOL


def test_a_first_member_needs_some_protocol(table: Table) -> None:
    assert table.join(protocols=())[0].code == codes.INCONSISTENT_GROUP_PROTOCOL
    assert len(table.groups) == 0


def test_an_initial_delay_collects_members(table: Table) -> None:
    table = Table(LIMITS._replace(initial_delay_ms=100))
    first = table.join()
    table.pass_ms(60)
    second = table.join()
    table.pass_ms(60)
    assert not first, "a newcomer draws the delay out once more"
    table.pass_ms(90)
    assert first[0].generation == second[0].generation == 1
    assert len(first[0].members) == 2


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    table = Table(LIMITS._replace(initial_delay_ms=100))
    first = table.join(rebalance_ms=250)
    for _ in range(5):
        table.pass_ms(49)
        table.join(rebalance_ms=250)
    assert not first
    table.pass_ms(5)
    assert first[0].generation == 1


# --- identities ------------------------------------------------------------------------------------------------


def test_a_new_member_is_asked_to_come_back_with_its_id(table: Table) -> None:
    (asked,) = table.join(id_required=True)
    assert asked == JoinGroupResult(codes.MEMBER_ID_REQUIRED, "c-id0")
    answers = table.join("c-id0", id_required=True)
    table.pass_ms(0)
    assert answers[0].member_id == "c-id0"
    assert answers[0].generation == 1


def test_an_id_that_is_never_used_is_forgotten(table: Table) -> None:
    table.join(id_required=True, session_ms=5000)
    assert len(table.groups) == 1
    table.pass_ms(5000)
    assert len(table.groups) == 0
    assert table.join("c-id0")[0].code == codes.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_an_id_that_was_just_handed_out(table: Table) -> None:
    first, second = pair(table)
    (asked,) = table.join(id_required=True)
    waiting = [table.join(first.member_id), table.join(second.member_id)]
    assert waiting == [[], []]
    joined = table.join(asked.member_id)
    assert len(joined) == 1
    assert waiting[0][0].generation == joined[0].generation == 3


def test_strangers_and_old_generations_are_turned_away(table: Table) -> None:
    first, _ = pair(table)
    stranger = first._replace(member_id="nobody")
    assert table.beat(stranger) == codes.UNKNOWN_MEMBER_ID
    assert table.sync(stranger)[0].code == codes.UNKNOWN_MEMBER_ID
    assert table.join("nobody")[0].code == codes.UNKNOWN_MEMBER_ID
    assert table.leave("nobody") == codes.UNKNOWN_MEMBER_ID
    assert table.beat(first, generation=1) == codes.ILLEGAL_GENERATION
    assert table.sync(first, generation=3)[0].code == codes.ILLEGAL_GENERATION
    assert table.sync(first, protocol=("consumer", "sticky"))[0].code == codes.INCONSISTENT_GROUP_PROTOCOL
    assert table.groups.heartbeat("other", "m", None, 1, 0) == codes.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("session_ms", "code"), [(2999, 26), (3000, None), (60_000, None), (60_001, 26)])
def test_session_timeouts_have_bounds(table: Table, session_ms: int, code: int | None) -> None:
    assert [a.code for a in table.join(session_ms=session_ms)] == ([code] if code else [])


def test_a_group_without_a_name_is_refused(table: Table) -> None:
    assert table.join(group="")[0].code == codes.INVALID_GROUP_ID
    assert table.sync(JoinGroupResult(0), group="")[0].code == codes.INVALID_GROUP_ID
    assert table.groups.heartbeat("", "", None, 1, 0) == codes.INVALID_GROUP_ID


def test_a_full_group_takes_no_more() -> None:
    table = Table(LIMITS._replace(max_size=2))
    first, second = pair(table)
    assert table.join()[0].code == codes.GROUP_MAX_SIZE_REACHED
    assert table.join(second.member_id) == [second]
    table.leave(first.member_id)
    assert table.join() == []


# --- leaving and being lost ------------------------------------------------------------------------------------


def test_a_member_that_leaves_makes_the_others_rebalance(table: Table) -> None:
    first, second = pair(table)
    assert table.leave(first.member_id) == codes.NONE
    assert table.beat(second) == codes.REBALANCE_IN_PROGRESS
    (joined,) = table.join(second.member_id)
    assert joined.leader == second.member_id
    assert joined.generation == 3


def test_the_last_to_leave_empties_the_group(table: Table) -> None:
    first, second = pair(table)
    table.leave(first.member_id)
    table.leave(second.member_id)
    assert table.state is GroupState.EMPTY
    assert table.store.generation("g") == (3, "consumer")
    answers = table.join()
    table.pass_ms(0)
    assert answers[0].generation == 4


def test_a_silent_member_is_lost_when_its_session_ends(table: Table) -> None:
    first, second = pair(table)
    table.pass_ms(9000)
    table.beat(second)
    table.pass_ms(1000)
    assert table.beat(first) == codes.UNKNOWN_MEMBER_ID
    assert table.beat(second) == codes.REBALANCE_IN_PROGRESS
    assert table.join(second.member_id)[0].generation == 3


def test_a_member_that_does_not_rejoin_in_time_is_left_out(table: Table) -> None:
    first, second = pair(table)
    third = table.join(rebalance_ms=5000)
    lead = table.join(first.member_id, rebalance_ms=5000)
    for _ in range(4):
        table.pass_ms(9000)
        table.beat(second)
    assert [m[0] for m in lead[0].members] == [first.member_id, third[0].member_id]
    assert table.beat(second) == codes.UNKNOWN_MEMBER_ID


def test_waiting_for_a_rebalance_keeps_a_member_alive(table: Table) -> None:
    first, second = pair(table)
    again = table.join(second.member_id, protocols=(("range", b"2"),), session_ms=3000)
    for _ in range(3):
        table.pass_ms(6000)
        assert table.beat(first) == codes.REBALANCE_IN_PROGRESS
    assert again == []
    table.join(first.member_id)
    assert again[0].code == codes.NONE
    table.pass_ms(2999)
    assert table.beat(again[0]) == codes.NONE, "its session begins anew"


def test_a_member_that_is_removed_while_it_waits_for_its_share_is_answered(table: Table) -> None:
    first, second = pair(table)
    again = table.join(second.member_id, protocols=(("range", b"2"),))
    table.join(first.member_id)
    waiting = table.sync(again[0])
    assert table.leave(second.member_id) == codes.NONE
    assert [w.code for w in waiting] == [codes.UNKNOWN_MEMBER_ID]


def test_a_member_that_never_syncs_is_removed(table: Table) -> None:
    first, second = pair(table)
    again = table.join(second.member_id, protocols=(("range", b"2"),))
    table.join(first.member_id)
    waiting = table.sync(again[0])
    for _ in range(5):
        table.pass_ms(7000)
        table.beat(first, generation=3)
    assert waiting[0].code == codes.REBALANCE_IN_PROGRESS
    assert table.beat(first, generation=3) == codes.UNKNOWN_MEMBER_ID


# --- static members (KIP-345) ----------------------------------------------------------------------------------


def static_pair(table: Table, **fields: Any) -> tuple[JoinGroupResult, JoinGroupResult]:
    first = table.join(instance_id="one", **fields)
    second = table.join(instance_id="two", **fields)
    table.pass_ms(0)
    table.stable(first[0], second[0])
    return first[0], second[0]


def test_a_restarted_static_member_takes_its_place_without_a_rebalance(table: Table) -> None:
    first, second = static_pair(table)
    (back,) = table.join(instance_id="two")
    assert back.generation == second.generation
    assert back.member_id not in (first.member_id, second.member_id)
    assert table.sync(back, instance_id="two")[0].assignment == second.member_id.encode()
    assert table.beat(second, instance_id="two") == codes.FENCED_INSTANCE_ID
    assert table.join(second.member_id, instance_id="two")[0].code == codes.FENCED_INSTANCE_ID
    assert table.state is GroupState.STABLE


def test_a_restarted_static_leader_need_not_assign_again(table: Table) -> None:
    _first, second = static_pair(table)
    (back,) = table.join(instance_id="one")
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert [m[0] for m in back.members] == [second.member_id, back.member_id]


def test_an_old_client_is_not_told_that_it_leads(table: Table) -> None:
    first, _ = static_pair(table)
    (back,) = table.join(instance_id="one", can_skip=False)
    assert back.leader == first.member_id != back.member_id
    assert back.members == ()
    assert not back.skip_assignment


def test_a_restarted_static_member_with_another_protocol_rebalances(table: Table) -> None:
    pair_of = (("range", b"r"), ("sticky", b"s"))
    static_pair(table, protocols=pair_of)
    assert table.join(instance_id="two", protocols=(("sticky", b"s"),)) == []
    assert table.state is GroupState.PREPARING


def test_the_former_self_of_a_static_member_is_fenced_while_it_waits(table: Table) -> None:
    first, _second = static_pair(table)
    waiting = table.join(first.member_id, instance_id="one")
    table.join(instance_id="one")
    assert [w.code for w in waiting] == [codes.FENCED_INSTANCE_ID]


def test_static_members_outlive_a_rebalance_they_missed(table: Table) -> None:
    first, second = static_pair(table, session_ms=60_000, rebalance_ms=5000)
    third = table.join()
    table.pass_ms(5000)
    assert third == []
    again = table.join(first.member_id, instance_id="one")
    table.pass_ms(30_000)
    assert second.member_id in [m[0] for m in again[0].members]
    assert third[0].generation == 2


def test_a_static_leader_that_misses_a_rebalance_leads_no_more(table: Table) -> None:
    first, second = static_pair(table, session_ms=60_000, rebalance_ms=5000)
    again = table.join(second.member_id, instance_id="two", protocols=(("range", b"2"),), rebalance_ms=5000)
    table.pass_ms(5000)
    assert again[0].leader == second.member_id
    assert {m[0] for m in again[0].members} == {first.member_id, second.member_id}


def test_an_administrator_removes_a_static_member_by_its_instance_id(table: Table) -> None:
    first, second = static_pair(table)
    assert table.leave("", "one") == codes.NONE
    assert table.leave("", "nobody") == codes.UNKNOWN_MEMBER_ID
    assert table.leave(first.member_id, "two") == codes.FENCED_INSTANCE_ID
    assert table.beat(second, "two") == codes.REBALANCE_IN_PROGRESS


def test_an_id_of_a_dynamic_member_cannot_take_the_place_of_a_static_one(table: Table) -> None:
    static = table.join(instance_id="one")
    table.pass_ms(0)
    table.stable(static[0])
    (asked,) = table.join(id_required=True)
    (refused,) = table.join(asked.member_id, instance_id="one")
    assert refused.code == codes.UNKNOWN_SERVER_ERROR
    assert table.leave(asked.member_id) == codes.NONE
    assert table.leave(static[0].member_id, "one") == codes.NONE
    assert table.state is GroupState.EMPTY


def test_absent_static_members_without_a_rebalance_timeout_are_waited_for_by_their_sessions(table: Table) -> None:
    first = table.join(instance_id="one", rebalance_ms=0)
    second = table.join(instance_id="two", rebalance_ms=0)
    table.groups.tick(table.now_ms)
    table.stable(first[0], second[0])
    assert table.leave(first[0].member_id, "one") == codes.NONE
    table.pass_ms(5000)
    assert table.state is GroupState.PREPARING
    back = table.join(second[0].member_id, instance_id="two", rebalance_ms=0)
    assert back[0].generation == 2


def test_an_absent_static_member_gets_a_rebalance_timeout_once_another_is_back(table: Table) -> None:
    first, _ = static_pair(table, session_ms=60_000, rebalance_ms=5000)
    table.join(instance_id="three", session_ms=60_000, rebalance_ms=5000)
    table.leave("", "three")
    table.pass_ms(20_000)
    assert table.state is GroupState.PREPARING
    again = table.join(first.member_id, instance_id="one", session_ms=60_000, rebalance_ms=5000)
    table.pass_ms(4999)
    assert not again
    table.pass_ms(1)
    assert len(again[0].members) == 2, "the absent one keeps its place until its session ends"


# --- the process is killed ---------------------------------------------------------------------------------------


def test_members_go_on_when_their_shard_was_killed(table: Table) -> None:
    first, second = pair(table)
    table.pass_ms(9000)
    table.kill()
    table.pass_ms(9000)  # sessions begin anew
    assert table.state is GroupState.STABLE
    assert [table.beat(first), table.beat(second)] == [codes.NONE] * 2
    assert table.groups.may_commit("g", first.member_id, None, 2, table.now_ms) == codes.NONE
    (synced,) = table.sync(second)
    assert (synced.assignment, synced.protocol_type, synced.protocol) == (
        second.member_id.encode(),
        "consumer",
        "range",
    )
    third = table.join()
    assert table.beat(first) == codes.REBALANCE_IN_PROGRESS
    table.join(second.member_id)
    (again,) = table.join(first.member_id)
    assert third[0].leader == again.leader == first.member_id and len(again.members) == 3
    assert third[0].generation == 3


def test_silent_members_are_lost_a_session_after_their_shard_was_killed(table: Table) -> None:
    first, _ = pair(table)
    table.kill()
    table.pass_ms(5000)
    assert table.beat(first) == codes.NONE
    table.pass_ms(5000)
    assert table.beat(first) == codes.REBALANCE_IN_PROGRESS
    (again,) = table.join(first.member_id)
    assert [member for member, _, _ in again.members] == [first.member_id]


def test_members_wait_for_the_others_as_long_as_ever_when_their_shard_was_killed(table: Table) -> None:
    first, second = pair(table)
    table.kill()
    again = table.join(first.member_id, protocols=(("range", b"new"),))
    for _ in range(4):
        table.pass_ms(5000)
        assert table.beat(second) == codes.REBALANCE_IN_PROGRESS
    assert again == []
    table.join(second.member_id)
    assert again[0].code == codes.NONE


def test_a_rebalance_that_a_kill_cut_short_leaves_the_group_as_before(table: Table) -> None:
    first, second = pair(table)
    third = table.join()
    table.join(second.member_id)
    (again,) = table.join(first.member_id)
    assert again.generation == third[0].generation == 3
    table.kill()
    assert table.state is GroupState.STABLE
    assert table.beat(second) == codes.NONE
    assert table.beat(again) == codes.ILLEGAL_GENERATION
    assert table.beat(third[0]) == codes.UNKNOWN_MEMBER_ID
    table.join(first.member_id)
    (anew,) = table.join(second.member_id)
    assert anew.generation == 4, "3 was told"


def test_a_static_member_that_took_its_place_has_it_when_its_shard_was_killed(table: Table) -> None:
    first, second = static_pair(table)
    (back,) = table.join(instance_id="two")
    table.kill()
    assert table.beat(back, "two") == codes.NONE
    assert table.beat(second, "two") == codes.FENCED_INSTANCE_ID
    assert table.beat(first, "one") == codes.NONE


def test_a_group_that_all_have_left_is_empty_when_its_shard_was_killed(table: Table) -> None:
    first, second = pair(table)
    table.leave(first.member_id)
    table.leave(second.member_id)
    table.kill()
    assert table.groups.get("g") is None
    assert table.join(first.member_id)[0].code == codes.UNKNOWN_MEMBER_ID
    answers = table.join()
    table.pass_ms(0)
    assert answers[0].generation == 4 and table.join(first.member_id)[0].code == codes.UNKNOWN_MEMBER_ID


def test_a_full_disk_keeps_no_group_from_working_and_its_members_join_anew_when_it_was_killed(table: Table) -> None:
    first, second = pair(table)
    table.store.is_full = True
    table.leave(second.member_id)
    (again,) = table.join(first.member_id)
    table.stable(again)
    assert table.beat(again) == codes.NONE
    table.store.is_full = False
    table.kill()
    assert table.beat(again) == codes.ILLEGAL_GENERATION, "what was written before the disk was full"


# --- mistakes of ours ------------------------------------------------------------------------------------------


def broken(table: Table, monkeypatch: pytest.MonkeyPatch, method: str) -> list[tuple[str, Exception]]:
    """Has `method` of every group raise; returns what the table reports."""

    def fail(*_: Any) -> None:
        raise KeyError("a mistake")

    reports: list[tuple[str, Exception]] = []
    monkeypatch.setattr(table, "failed", lambda *args: reports.append(args))
    monkeypatch.setattr(ClassicGroup, method, fail)
    return reports


@pytest.mark.parametrize("method", ["join", "sync", "heartbeat", "leave", "may_commit", "tick"])
def test_a_mistake_in_a_group_ends_that_group_alone(table: Table, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    first, second = pair(table)
    waiting = table.join(second.member_id, protocols=(("range", b"new"),))
    with monkeypatch.context() as patch:
        told = broken(table, patch, method)
        reply: list[Any] = []
        calls: dict[str, Any] = {
            "join": lambda: table.groups.join("g", request(first.member_id), reply.append, 0),
            "sync": lambda: table.groups.sync(
                SyncGroup("g", first.member_id, None, 2, (None, None), []), reply.append, 0
            ),
            "heartbeat": lambda: reply.append(table.groups.heartbeat("g", first.member_id, None, 2, 0)),
            "leave": lambda: reply.extend(table.groups.leave("g", [(first.member_id, None)], 0)),
            "may_commit": lambda: reply.append(table.groups.may_commit("g", first.member_id, None, 2, 0)),
            "tick": lambda: table.groups.tick(60_000),
        }
        calls[method]()
    assert [group for group, _ in told] == ["g"]
    assert [getattr(answer, "code", answer) for answer in reply] == [codes.UNKNOWN_SERVER_ERROR] * (method != "tick")
    assert [answer.code for answer in waiting] == [codes.UNKNOWN_MEMBER_ID]
    assert table.groups.get("g") is None
    assert table.join(first.member_id)[0].code == codes.UNKNOWN_MEMBER_ID
    assert not table.join(), "the group begins anew"
    table.kill()
    assert table.groups.get("g") is None, "nor does the group come back"


def test_a_tick_looks_at_each_group_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.join()
    seen: list[str] = []
    monkeypatch.setattr(ClassicGroup, "tick", lambda group, now_ms: seen.append(group.id))
    table.groups.tick(10_000)
    assert seen == ["g"]


# --- commits ---------------------------------------------------------------------------------------------------


def test_commit_needs_a_member_of_the_generation(table: Table) -> None:
    def may(member_id: str, generation: int, group: str = "g") -> int:
        return table.groups.may_commit(group, member_id, None, generation, table.now_ms)

    assert may("", -1) == codes.NONE
    assert may("m", 3) == codes.ILLEGAL_GENERATION
    first, second = pair(table)
    assert may(first.member_id, 2) == codes.NONE
    assert may(first.member_id, 1) == codes.ILLEGAL_GENERATION
    assert may("nobody", 2) == codes.UNKNOWN_MEMBER_ID
    assert may("", -1) == codes.UNKNOWN_MEMBER_ID
    table.join()
    assert may(first.member_id, 2) == codes.NONE, "it commits before it rejoins"
    table.join(second.member_id)
    table.join(first.member_id)
    assert may(first.member_id, 3) == codes.REBALANCE_IN_PROGRESS
    table.leave(first.member_id)
    table.leave(second.member_id)


# --- simulation ------------------------------------------------------------------------------------------------


@dataclass
class Actor:
    """A client: what it believes about itself, and the answers it has not looked at yet."""

    number: int
    instance_id: str | None
    member_id: str = ""
    joined: JoinGroupResult | None = None
    owns: bytes | None = None
    joins: list[JoinGroupResult] = field(default_factory=list)
    syncs: list[SyncGroupResult] = field(default_factory=list)


class Simulation:
    def __init__(self, seed: int, *, kills: bool = False) -> None:
        self.random = random.Random(seed)
        self.kills = kills
        self.table = Table(LIMITS._replace(initial_delay_ms=self.random.choice([0, 50]), max_size=6))
        self.actors = [Actor(n, f"static{n}" if self.random.random() < 0.3 else None) for n in range(8)]
        self.rebalance_ms = self.random.choice([8000, 8000, 0])
        self.leaders: dict[int, str] = {}
        self.assigned: dict[tuple[int, str], bytes] = {}
        self.given: dict[tuple[int, str], bytes] = {}
        self.replies = 0
        self.generation = 0

    def run(self, count: int) -> None:
        for _ in range(count):
            actor = self.random.choice(self.actors)
            steps = [self.join, self.sync] * 3
            self.random.choice([*steps, self.beat, self.leave, self.die, self.stray])(actor)
            if self.kills and self.random.random() < 0.02:
                self.kill()
            if self.random.random() < 0.3:
                self.table.pass_ms(self.random.choice([0, 10, 500, 4000, 11_000]))
            self.read()
            group = self.table.groups.get("g")
            if group is not None:
                assert group.generation >= self.generation, "the generation only rises"
                self.generation = group.generation

    def kill(self) -> None:
        """A generation without an assignment is gone, and its number is not used again."""
        self.read()
        self.table.kill()
        group = self.table.groups.get("g")
        self.generation = 0 if group is None else group.generation

    def join(self, actor: Actor) -> None:
        protocols = self.random.choice([RANGE, (("sticky", b"s"), ("range", b"r"))])
        asked = request(
            actor.member_id, instance_id=actor.instance_id, client=f"c{actor.number}", session_ms=5000,
            rebalance_ms=self.rebalance_ms, protocols=protocols, id_required=self.random.random() < 0.5,
        )  # fmt: skip
        self.table.groups.join("g", asked, self.once(actor.joins), self.table.now_ms)
        self.table.check()

    def sync(self, actor: Actor) -> None:
        joined = actor.joined
        if joined is None:
            return
        assignments = {}
        if joined.leader == joined.member_id:
            assignments = {m: f"{joined.generation}:{m}".encode() for m, _, _ in joined.members}
        reply = self.once(actor.syncs)
        protocol = ("consumer", joined.protocol)
        message = SyncGroup(
            "g", joined.member_id, actor.instance_id, joined.generation, protocol, [*assignments.items()]
        )
        self.table.groups.sync(message, reply, self.table.now_ms)
        self.table.check()

    def beat(self, actor: Actor) -> None:
        if actor.joined is not None and self.table.beat(actor.joined, actor.instance_id) in (
            codes.UNKNOWN_MEMBER_ID,
            codes.FENCED_INSTANCE_ID,
        ):
            self.die(actor)

    def leave(self, actor: Actor) -> None:
        if actor.member_id and self.random.random() < 0.3:
            self.table.leave(actor.member_id, actor.instance_id)
            self.die(actor)

    def stray(self, actor: Actor) -> None:
        """A request that mixes the ids of two members, or an administrator's removal by instance id."""
        other = self.random.choice(self.actors)
        member_id = self.random.choice([actor.member_id, other.member_id, ""])
        instance_id = self.random.choice([actor.instance_id, other.instance_id, "static0", "nobody"])
        match self.random.choice(["join", "leave", "remove", "commit"]):
            case "join":
                asked = request(member_id, instance_id=instance_id, session_ms=5000, rebalance_ms=self.rebalance_ms)
                self.table.groups.join("g", asked, self.once([]), self.table.now_ms)
            case "leave":
                self.table.leave(member_id, instance_id)
            case "remove":
                self.table.groups.leave("g", [("", a.instance_id) for a in self.actors], self.table.now_ms)
            case "commit":
                generation = self.random.choice([-1, self.generation])
                self.table.groups.may_commit("g", member_id, instance_id, generation, self.table.now_ms)
        self.table.check()

    def die(self, actor: Actor) -> None:
        """The client forgets everything; answers on their way to it are not read."""
        actor.member_id, actor.joined, actor.owns, actor.joins, actor.syncs = "", None, None, [], []

    def once(self, inbox: list[Any]) -> Any:
        called: list[bool] = []

        def reply(answer: Any) -> None:
            assert not called, "answered twice"
            called.append(True)
            self.replies += 1
            inbox.append(answer)

        return reply

    def read(self) -> None:
        for actor in self.actors:
            for joined in actor.joins:
                self.read_join(actor, joined)
            for synced in actor.syncs:
                self.read_sync(actor, synced)
            actor.joins.clear()
            actor.syncs.clear()

    def read_join(self, actor: Actor, joined: JoinGroupResult) -> None:
        if joined.code == codes.MEMBER_ID_REQUIRED:
            actor.member_id = joined.member_id
        elif joined.code in (codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID):
            self.die(actor)
        elif joined.code == codes.NONE:
            actor.member_id, actor.joined = joined.member_id, joined
            if joined.members:
                leader = self.leaders.setdefault(joined.generation, joined.member_id)
                assert leader == joined.member_id or joined.skip_assignment, "two leaders of one generation"
                assert joined.member_id in [m for m, _, _ in joined.members]

    def read_sync(self, actor: Actor, synced: SyncGroupResult) -> None:
        if synced.code == codes.NONE and actor.joined is not None:
            generation, member_id = actor.joined.generation, actor.joined.member_id
            expected = f"{generation}:{member_id}".encode()
            # A static member inherits the share of its former self; one that no leader knew of has none.
            assert synced.assignment in (expected, b"") or actor.instance_id is not None
            known = self.given.setdefault((generation, member_id), synced.assignment)
            assert known == synced.assignment, "the assignment changed inside a generation"


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("block", range(10))
def test_random_members_keep_the_invariants(block: int, *, kills: bool) -> None:
    replies = generations = 0
    for seed in range(block * 40, block * 40 + 40):
        simulation = Simulation(seed, kills=kills)
        try:
            simulation.run(250)
        except Exception as fault:
            raise AssertionError(f"seed {seed}") from fault
        replies += simulation.replies
        generations += simulation.generation
    assert generations > 200 and replies > 2000, "the simulation no longer gets anywhere"


def test_answers_all_come_once_time_is_up() -> None:
    """No member waits for ever: each request is answered within the longest timeout."""
    for seed in range(60):
        simulation = Simulation(seed)
        asked = 0
        count = simulation.once

        def once(inbox: list[Any], count: Any = count) -> Any:
            nonlocal asked
            asked += 1
            return count(inbox)

        simulation.once = once  # type: ignore[method-assign]
        simulation.run(60)
        simulation.table.pass_ms(20 * 60_000)
        assert simulation.replies == asked, f"seed {seed}"
        group = simulation.table.groups.get("g")
        assert group is None or group.state is GroupState.EMPTY
