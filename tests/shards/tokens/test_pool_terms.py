"""pool_terms.py: what many pools have in common, changed and recalled for all of them at once."""

from shards.limits.caps import UNLIMITED, CapRule
from shards.tokens.home_pool import HomePool
from shards.tokens.pool_terms import EVEN, HERE, NO_LIMIT, PoolMode, TermsTable

CAP, OTHER = CapRule(10, "kafka_connections_max_per_ip"), CapRule(7, "kafka_connections_max_overrides")


def test_a_pool_that_changes_alone_leaves_others_as_they_are() -> None:
    table = TermsTable()
    one, other = (HomePool(f"ip:10.0.0.{number}", table.of("ip", CAP)) for number in (1, 2))
    assert one.terms is other.terms
    one.enter(PoolMode.TIGHT)
    one.rule = UNLIMITED
    assert (one.mode, one.rule) == (PoolMode.TIGHT, UNLIMITED)
    assert (other.mode, other.rule) == (PoolMode.OPEN, CAP)


def test_what_follows_from_rule_home_and_mode() -> None:
    table = TermsTable()
    each = [table.of("ip", rule, home) for rule in (CAP, UNLIMITED) for home in (HERE, 0, 1)]
    assert [terms.away for terms in each] == [0, 1, 1, 0, 0, 0]
    assert [terms.limit for terms in each] == [10, EVEN, EVEN, NO_LIMIT, NO_LIMIT, NO_LIMIT]
    assert [table.of("ip", CAP, mode=mode).tight for mode in PoolMode] == [False, True, True]


def test_all_pools_of_a_kind_with_a_rule_get_another_whatever_their_home_and_mode() -> None:
    table = TermsTable()
    here, away, tight = table.of("ip", CAP), table.of("ip", CAP, 1), table.of("ip", CAP, 1, PoolMode.TIGHT)
    user, named = table.of("user", CAP), table.of("ip", OTHER)
    assert {*table.change("ip", CAP, rule := CapRule(3, CAP.name))} == {here, away, tight}
    assert {terms.rule for terms in (here, away, tight)} == {rule} and here.limit == 3 and away.limit == EVEN
    assert (user.rule, user.limit, named.rule, named.limit) == (CAP, 10, OTHER, 7)
    assert table.of("ip", rule) is here and table.of("ip", CAP) is not here


def test_pools_that_came_to_have_the_same_terms_are_changed_together_from_then_on() -> None:
    table = TermsTable()
    one, other = table.of("ip", CAP), table.of("ip", OTHER)
    table.change("ip", CAP, OTHER)
    table.change("ip", OTHER, CapRule(1, CAP.name))
    assert one.limit == other.limit == 1


def test_recalled_terms_are_found_by_a_change_and_never_handed_out() -> None:
    table = TermsTable()
    recalled, here = table.of("ip", CAP, 1), table.of("ip", CAP)
    table.recall(1, "ip")
    assert recalled.limit == -NO_LIMIT and here.limit == 10
    fresh = table.of("ip", CAP, 1)
    assert fresh is not recalled and fresh.limit == EVEN
    table.change("ip", CAP, OTHER)
    assert recalled.rule == fresh.rule == OTHER and (recalled.limit, fresh.limit) == (-NO_LIMIT, EVEN)
    assert recalled.with_mode(PoolMode.OPEN) is fresh


def test_while_reports_are_waited_for_nothing_with_a_cap_is_at_hand_at_home() -> None:
    table = TermsTable()
    table.blocked = True
    capped, free, away = table.of("ip", CAP), table.of("ip", UNLIMITED), table.of("ip", CAP, 1)
    assert (capped.limit, free.limit, away.limit) == (0, NO_LIMIT, EVEN)
    table.unblock()
    assert (capped.limit, free.limit, away.limit) == (10, NO_LIMIT, EVEN)


def test_terms_are_forgotten_a_turn_after_they_were_seen() -> None:
    table = TermsTable()
    old, seen = table.of("ip", CAP), table.of("ip", OTHER)
    table.tick = 20
    seen.seen = 15
    new = table.of("ip", UNLIMITED)
    table.forget_unseen(4)
    assert [table.knows(terms) for terms in (old, seen, new)] == [False, True, True]
    assert table.of("ip", CAP) is not old
