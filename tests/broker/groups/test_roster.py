"""Who is in a group: places, leads and identities."""

import pytest

from broker.groups.members import Member
from broker.groups.roster import Roster
from broker.protocol import codes


def member(member_id: str, instance_id: str | None = None, rebalance_ms: int = 1000) -> Member:
    return Member(member_id, instance_id, "c", "h", 10_000, rebalance_ms, (("range", b""),), 0)


@pytest.fixture
def roster() -> Roster:
    """Three members, of whom b is static."""
    roster = Roster()
    for each in (member("a"), member("b", "i"), member("c", rebalance_ms=3000)):
        roster.add(each)
        roster.check()
    return roster


def test_the_lead_falls_to_the_oldest_that_is_left(roster: Roster) -> None:
    assert roster.leader == "a"
    for gone, leader in (("a", "b"), ("c", "b"), ("b", None)):
        roster.remove(roster.members[gone])
        roster.check()
        assert roster.leader == leader


def test_a_static_member_keeps_its_place_and_the_lead_under_another_id(roster: Roster) -> None:
    roster.remove(roster.members["a"])
    roster.rename(roster.members["b"], "b2")
    roster.check()
    assert (roster.leader, roster.instances, roster.members["b2"].id) == ("b2", {"i": "b2"}, "b2")


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("a", None, codes.NONE),
        ("b", "i", codes.NONE),
        ("b", None, codes.NONE),
        ("nobody", None, codes.UNKNOWN_MEMBER_ID),
        ("a", "nowhere", codes.UNKNOWN_MEMBER_ID),
        ("a", "i", codes.FENCED_INSTANCE_ID),
    ],
)
def test_who_one_says_one_is(roster: Roster, member_id: str, instance_id: str | None, code: int) -> None:
    assert roster.identify(member_id, instance_id) == code


def test_the_slowest_member_sets_the_pace(roster: Roster) -> None:
    assert roster.longest_rebalance_ms() == 3000
    assert Roster().longest_rebalance_ms() == 0
