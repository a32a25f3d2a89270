import pytest

from turnstile.load.counters import Counters, parse, reconcile
from turnstile.load.tally import Tally

PAGE = """\
# HELP turnstile_connections_admitted_total Connections admitted.
# TYPE turnstile_connections_admitted_total counter
turnstile_connections_admitted_total{listener="PLAINTEXT",shard="0",broker="0"} 5
turnstile_connections_admitted_total{listener="PLAINTEXT",shard="1",broker="0"} 7
turnstile_connections_refused_total{reason="ip_cap",listener="A",shard="0"} 2
turnstile_connections_refused_total{reason="ip_cap",listener="B",shard="1"} 1
turnstile_connections_refused_total{reason="ip_rate",listener="B",shard="1"} 0
turnstile_connections_open{listener="A"} 9
"""


def seen(admitted, refused, unanswered=0):
    tally = Tally()
    tally.admitted, tally.refused, tally.unanswered = admitted, refused, unanswered
    return tally


def counted(admitted, refused):
    return Counters(admitted, {"ip_cap": refused})


def test_counters_are_summed_over_shards_and_listeners():
    assert parse(PAGE) == Counters(12, {"ip_cap": 3, "ip_rate": 0})


def test_another_brokers_metrics_have_none():
    assert parse("kafka_server_requests_total 5\n") is None


def test_what_happened_since_leaves_out_reasons_that_did_not_occur():
    before, after = Counters(5, {"ip_cap": 1, "ip_rate": 4}), Counters(9, {"ip_cap": 3, "ip_rate": 4})
    assert after.since(before) == Counters(4, {"ip_cap": 2})


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
