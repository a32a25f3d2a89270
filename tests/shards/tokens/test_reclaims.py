"""reclaims.py: whether what was asked for before the mark has been answered."""

from shards.tokens.reclaims import Reclaims


def test_nothing_asked_before_the_mark_is_nothing_to_wait_for() -> None:
    reclaims = Reclaims()
    reclaims.mark()
    reclaims.asked(1)
    assert not reclaims.marked
    assert reclaims.owed() == {1: 1}


def test_each_shard_answers_what_it_was_asked_before_the_mark() -> None:
    reclaims = Reclaims()
    for shard in (1, 1, 2):
        reclaims.asked(shard)
    reclaims.mark()
    for shard, is_open in ((1, True), (2, True), (1, False)):
        assert reclaims.marked
        reclaims.answered(shard, 1)
        assert reclaims.marked == is_open


def test_what_is_asked_after_the_mark_does_not_delay_it() -> None:
    reclaims = Reclaims()
    reclaims.asked(1)
    reclaims.mark()
    reclaims.asked(1)
    reclaims.answered(1, 1)
    assert not reclaims.marked
    assert reclaims.owed() == {1: 1}


def test_the_answers_of_a_dead_shard_are_not_waited_for() -> None:
    reclaims = Reclaims()
    for _ in range(3):
        reclaims.asked(1)
    reclaims.mark()
    reclaims.answered(1, 3)
    assert not reclaims.marked
    assert reclaims.owed() == {}
