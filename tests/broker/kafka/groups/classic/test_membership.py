"""The members of a group: their places, the lead, their identities, the end of their sessions."""

import pytest

from broker.kafka.groups.classic.members import Member
from broker.kafka.groups.classic.membership import Membership
from broker.wire import codes


def member(member_id: str, instance_id: str | None = None, rebalance_ms: int = 1000) -> Member:
    return Member(member_id, instance_id, "c", "h", 10_000, rebalance_ms, (("range", b""),), 0)


@pytest.fixture
def membership() -> Membership:
    """Three members, of whom b is static."""
    membership = Membership()
    for each in (member("a"), member("b", "i"), member("c", rebalance_ms=3000)):
        membership.add(each)
        membership.check()
    return membership


def test_the_lead_falls_to_the_oldest_that_is_left(membership: Membership) -> None:
    assert membership.leader == "a"
    for gone, leader in (("a", "b"), ("c", "b"), ("b", None)):
        membership.remove(membership.members[gone])
        membership.check()
        assert membership.leader == leader


def test_a_session_that_the_loss_of_another_member_begins_anew_does_not_expire(membership: Membership) -> None:
    for each in membership.members.values():
        each.deadline_ms, each.new = 1000, False
    expired = membership.expired(1000)
    membership.remove(next(expired))
    membership.members["b"].deadline_ms = 2000
    assert [each.id for each in expired] == ["c"]
    assert not list(membership.expired(999))


def test_a_static_member_keeps_its_place_and_the_lead_under_another_id(membership: Membership) -> None:
    membership.remove(membership.members["a"])
    membership.rename(membership.members["b"], "b2")
    membership.check()
    assert (membership.leader, membership.instances, membership.members["b2"].id) == ("b2", {"i": "b2"}, "b2")


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
def test_who_one_says_one_is(membership: Membership, member_id: str, instance_id: str | None, code: int) -> None:
    assert membership.identify(member_id, instance_id) == code


def test_the_slowest_member_sets_the_pace(membership: Membership) -> None:
    assert membership.longest_rebalance_ms() == 3000
    assert Membership().longest_rebalance_ms() == 0
