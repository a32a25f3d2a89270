import pytest

from turnstile.load.counters import BySource, Counters
from turnstile.load.own_addresses import OwnAddresses
from turnstile.load.reconciliation import reconcile
from turnstile.load.sources import Sources
from turnstile.load.tally import Tally

OWN = Sources("127.1.0.0/22")


def seen(admitted, refused, unanswered=0):
    tally = Tally()
    tally.admitted, tally.refused, tally.unanswered = admitted, refused, unanswered
    return tally


def counted(admitted, refused):
    return Counters(admitted, {"ip_cap": refused})


@pytest.mark.parametrize(
    ("seen_", "counted_", "agree"),
    [
        (seen(50, 150), counted(50, 150), True),
        (seen(50, 150), counted(51, 150), False),
        (seen(50, 150), counted(50, 149), False),
        (seen(50, 150), counted(51, 149), False),
        (seen(50, 150, unanswered=3), counted(52, 151), True),
        (seen(50, 150, unanswered=3), counted(54, 150), False),
        (seen(50, 150), counted(-7, 0), False),
    ],
    ids=["equal", "one more admitted", "one refusal not counted", "one on the wrong side", "unanswered either way",
         "more than the unanswered explain", "counters started anew"],
)  # fmt: skip
def test_both_sides_agree_only_if_every_connection_is_accounted_for(seen_, counted_, agree):
    assert reconcile(seen_, counted_).agree is agree


def test_of_real_clients_only_the_sum_is_known():
    assert reconcile(seen(50, 10), counted(55, 12), traffic=7).agree
    assert not reconcile(seen(50, 10), counted(55, 12), traffic=8).agree
    assert not reconcile(seen(50, 10), counted(49, 18), traffic=7).agree


def test_a_shard_that_died_explains_refusals_the_cluster_did_not_make_but_nothing_else():
    assert reconcile(seen(50, 12), counted(51, 10), shards_died=True).agree
    assert not reconcile(seen(50, 12), counted(51, 10)).agree
    assert not reconcile(seen(50, 12), counted(49, 10), shards_died=True).agree
    assert not reconcile(seen(50, 12), counted(50, 13), shards_died=True).agree


def test_the_sentence_has_both_sides_and_the_verdict():
    sentence = reconcile(seen(50, 150), counted(50, 149)).sentence
    assert sentence == "driver 50 admitted, 150 refused; cluster 50 admitted, 149 refused: they DISAGREE"


def beside(others, own_admitted=50, own_refused=150):
    """Counters of a cluster that also admitted `others`, ip -> how many."""
    counts = {"127.1.0.1": {"admitted": own_admitted, "ip_cap": own_refused}}
    counts.update({ip: {"admitted": n} for ip, n in others.items()})
    return Counters(own_admitted + sum(others.values()), {"ip_cap": own_refused}, by_source=BySource(0, counts))


def test_connections_of_other_addresses_are_told_apart_and_named():
    verdict = reconcile(seen(50, 150), beside({"127.0.0.1": 12}), own=OWN)
    assert verdict.agree and verdict.others == {"127.0.0.1": 12}
    assert verdict.sentence.endswith(
        "cluster 50 admitted, 150 refused: they agree; 12 more, of 127.0.0.1, are not its own"
    )


def test_other_clients_do_not_hide_a_wrong_count_of_the_drivers_own():
    assert reconcile(seen(50, 150), beside({"127.0.0.1": 12}, own_admitted=49), own=OWN).agree is False
    assert reconcile(seen(50, 150), beside({"127.0.0.1": 1}, own_admitted=49, own_refused=151), own=OWN).agree is False


def test_another_client_at_one_of_the_drivers_addresses_is_said_to_be_indistinguishable():
    verdict = reconcile(seen(50, 150), beside({}, own_admitted=53), own=OwnAddresses([OWN], []))
    assert verdict.agree is False
    assert "DISAGREE; 3 more from 127.1.0.0/22: of another client there, or counted wrongly" in verdict.sentence


def test_a_driver_that_the_cluster_sees_under_another_address_still_agrees():
    verdict = reconcile(seen(50, 150), beside({}), own=Sources("10.0.0.1"))
    assert verdict.agree and not verdict.others


def test_a_lost_driver_explains_what_the_cluster_counted_beyond_its_last_word_but_nothing_less():
    verdict = reconcile(seen(50, 150), counted(58, 151), drivers_lost=True)
    assert verdict.agree and verdict.sentence.endswith(
        "they agree, with 9 that lost drivers made after their last word"
    )
    assert reconcile(seen(50, 150), counted(50, 150), drivers_lost=True).sentence.endswith("they agree")
    assert not reconcile(seen(50, 150), counted(49, 160), drivers_lost=True).agree
    assert not reconcile(seen(50, 150), counted(60, 149), drivers_lost=True).agree
    beside_it = reconcile(seen(50, 150), beside({"127.0.0.1": 12}, own_admitted=53), own=OWN, drivers_lost=True)
    assert beside_it.agree and beside_it.others == {"127.0.0.1": 12}
