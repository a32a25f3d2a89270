import json

from turnstile.load.drivers import DriverReport, summary
from turnstile.load.tally import COUNTS

COUNTED = dict(zip(COUNTS, range(1000, 1000 + len(COUNTS)), strict=True))


def report(number, host, ahead_ms=0.0, late_ms=0.0, lost_s=None, because=""):
    return DriverReport(number, host, COUNTED, ahead_ms, 0.05, late_ms, lost_s, because)


def test_the_summary_has_hosts_starts_and_clocks_the_furthest_first():
    told = summary([report(0, "a", 0.1, 0.2), report(1, "a", 0.2, 0.7), report(2, "b", -1500.0, 0.4)])
    assert told == (
        "3 drivers on 2 hosts, started within 0.5 ms; clocks beside this machine's: b -1500.00 ms (within 0.05), "
        "a +0.10 ms (within 0.05)"
    )


def test_of_many_hosts_some_clocks_are_named():
    told = summary([report(number, f"host-{number}") for number in range(20)])
    assert told.startswith("20 drivers on 20 hosts") and told.endswith(" and 12 closer ones")


def test_a_lost_driver_is_said_with_what_it_did():
    lost = report(1, "b", lost_s=4.2, because="the connection ended")
    assert lost.loss == (
        "Driver 1 on b was lost after 4.2 s (the connection ended): until its last word 1,000 attempted, 1,001 admitted, 1,002 "
        "refused; what it did after that, and what it had still to do, is missing"
    )
    assert json.loads(json.dumps(lost.as_json()))["lost_s"] == 4.2
    assert report(0, "a").as_json()["lost_because"] is None
