from turnstile.load.counters import BySource, Counters, parse

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


def test_counters_are_summed_over_shards_and_listeners():
    assert parse(PAGE) == Counters(12, {"ip_cap": 3, "ip_rate": 0})


def test_connections_that_were_refused_for_their_user_are_refused_alone():
    refused = "".join(
        f'turnstile_connections_refused_total{{reason="{reason}",listener="A"}} 2\n'
        for reason in ("user_cap", "user_rate")
    )
    assert parse(PAGE + refused).admitted == 12 - 4
    by_source = BySource(0, {"10.0.0.1": {"admitted": 6, "user_cap": 2}, "10.0.0.2": {"admitted": 3, "user_rate": 3}})
    counted = Counters(9, {"user_cap": 2, "user_rate": 3}, {}, by_source)
    assert counted.of({"10.0.0.1"}) == Counters(4, {"user_cap": 2}, {})
    assert counted.of_others({"10.0.0.1"}) == {"10.0.0.2": 3}


def test_another_brokers_metrics_have_none():
    assert parse("kafka_server_requests_total 5\n") is None


def test_what_happened_since_leaves_out_reasons_that_did_not_occur():
    before, after = Counters(5, {"ip_cap": 1, "ip_rate": 4}), Counters(9, {"ip_cap": 3, "ip_rate": 4})
    assert after.since(before) == Counters(4, {"ip_cap": 2})


def test_what_happened_since_is_told_by_address_unless_a_shard_forgot_or_began_anew():
    then = BySource(0, {"10.0.0.1": {"admitted": 4}, "10.0.0.2": {"ip_cap": 1}})
    now = BySource(0, {"10.0.0.1": {"admitted": 6, "ip_cap": 1}, "10.0.0.2": {"ip_cap": 1}})
    before, after = (Counters(5, {}, {(0, 0): 1}, each) for each in (then, now))
    assert after.since(before).by_source == BySource(0, {"10.0.0.1": {"admitted": 2, "ip_cap": 1}})
    assert Counters(5, {}, {(0, 0): 2}, now).since(before).by_source is None
    assert Counters(5, {}, {(0, 0): 1}, BySource(1, now.counts)).since(before).by_source is None
