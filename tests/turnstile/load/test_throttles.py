"""Throttle times of several clients, added up by their names."""

from turnstile.load.throttles import Throttles, merge, sentence


def told(*times_ms):
    throttles = Throttles()
    for each in times_ms:
        throttles.add(each)
    return throttles.as_json()


def test_answers_without_a_throttle_time_count_for_nothing():
    assert told(0, 0) == {"responses": 0, "total_ms": 0.0, "max_ms": 0.0}
    assert sentence("app producer", told(0)) == "app producer: never throttled"


def test_clients_of_one_name_add_up():
    found = {}
    merge(found, {"app producer": told(100, 0, 300)})
    merge(found, {"app producer": told(2000), "app consumer": told()})
    assert found["app producer"] == {"responses": 3, "total_ms": 2400.0, "max_ms": 2000.0}
    assert found["app consumer"]["responses"] == 0
    said = sentence("app producer", found["app producer"])
    assert said == "app producer: throttled 3 times, 800 ms on average, 2,000 ms at most"
