"""The text format: names as they were given, and text that can't break a line."""

from prometheus_client.parser import text_string_to_metric_families

from broker.admin.text_format import Kind, Page


def test_a_counter_keeps_its_name() -> None:
    page = Page()
    page.add(Kind.COUNTER, "vectorized_kafka_rpc_connects", "Connections.", {"shard": "1", "broker": "0"}, 3)
    page.add(Kind.COUNTER, "vectorized_kafka_rpc_connects", "Connections.", {"shard": "2", "broker": "0"}, 2**60)
    page.add(Kind.GAUGE, "up", "Is.", {}, 0.5)
    assert page.render().decode().splitlines() == [
        "# HELP vectorized_kafka_rpc_connects Connections.",
        "# TYPE vectorized_kafka_rpc_connects counter",
        'vectorized_kafka_rpc_connects{broker="0",shard="1"} 3.0',
        'vectorized_kafka_rpc_connects{broker="0",shard="2"} 1.152921504606847e+18',
        "# HELP up Is.",
        "# TYPE up gauge",
        "up 0.5",
    ]


def test_any_text_of_a_client_is_read_back() -> None:
    names = ['a"b', "back\\slash", "two\nlines", "\\n", "ü☃", ""]
    page = Page()
    for name in names:
        page.add(Kind.GAUGE, "g", "Help\nof two \\ lines.", {"client": name}, 1)
    (family,) = text_string_to_metric_families(page.render().decode())
    assert [sample.labels["client"] for sample in family.samples] == names
    assert family.documentation == "Help\nof two \\ lines."


def test_a_histogram_has_buckets_a_count_and_a_sum() -> None:
    page = Page()
    page.histogram("h", "Times.", [("0.5", 1), ("+Inf", 4)], 2.5)
    (family,) = text_string_to_metric_families(page.render().decode())
    assert [(sample.name, sample.labels, sample.value) for sample in family.samples] == [
        ("h_bucket", {"le": "0.5"}, 1),
        ("h_bucket", {"le": "+Inf"}, 4),
        ("h_count", {}, 4),
        ("h_sum", {}, 2.5),
    ]


def test_a_client_name_with_half_a_surrogate_does_not_end_the_page() -> None:
    page = Page()
    page.add(Kind.GAUGE, "g", "Help.", {"client": "\ud800"}, 1)
    assert b"g{client=" in page.render()
