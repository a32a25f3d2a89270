"""What is done to a cluster that others use is undone, also by Ctrl-C: it is what it was before."""

import time
from itertools import count

import pytest
from courses import ns

from turnstile.verdict.machine import Beat, Machine
from turnstile.verdict.stage import Stage
from turnstile.verdict.timeline import AT_ONCE_NS, Event, Step, Timeline
from turnstile.verdict.times import Times

OVERRIDES, MODE = "kafka_connections_max_overrides", "turnstile.refuse.mode"


class Fake:
    """A cluster that remembers; `interrupt` raises KeyboardInterrupt in the midst of that change, once."""

    def __init__(self):
        self.settings = {OVERRIDES: ["10.0.0.1:5", "10.0.0.2:7"]}
        self.quotas = [{"entity": {"ip": "10.0.0.1"}, "values": {"connection_creation_rate": 9.0}}]
        self.set_faults = [{"name": "theirs", "kind": "delay", "client_id": "other"}]
        self.interrupt = ""
        self._numbers = count(1)

    @property
    def admin(self):
        return self

    def get(self, path, key=None):
        return {"quotas": self.quotas} if path == "/v1/quotas" else {key: self.settings[key]}

    def set(self, settings):
        self.settings |= {name: value or [] for name, value in settings.items()}
        self._interrupted("set")

    def quota(self, entity, **rates):
        kind, _, name = entity.partition("=")
        row = next((row for row in self.quotas if row["entity"] == {kind: name}), None)
        if row is None:
            row = {"entity": {kind: name}, "values": {}}
            self.quotas.append(row)
        row["values"] = {name: rate for name, rate in (row["values"] | rates).items() if rate is not None}
        self._interrupted("quota")

    def fault(self, kind, **what):
        name = f"fault-{next(self._numbers)}"
        self.set_faults.append({"name": name, "kind": kind, **what})
        self._interrupted("fault")
        return name

    def faults(self):
        return self.set_faults

    def remove_fault(self, *names):
        assert names, "that would remove the faults of others"
        self.set_faults = [each for each in self.set_faults if each["name"] not in names]
        self._interrupted("remove")

    def _interrupted(self, what):
        if self.interrupt == what:
            self.interrupt = ""
            raise KeyboardInterrupt

    def state(self):
        return self.settings, [row for row in self.quotas if row["values"]], self.set_faults


def staged(**target):
    cluster = Fake()
    stage = Stage(cluster, None, Machine(), None, times=Times(), seed=0, target=target, say=lambda sentence: None)
    stage.address = "10.0.0.1"
    return cluster, stage


def test_a_cap_beside_others():
    cluster, stage = staged(ip="10.0.0.1")
    with stage.closed_at_accept():
        assert cluster.settings[OVERRIDES] == ["10.0.0.2:7", "10.0.0.1:0"]
    assert cluster.state() == Fake().state()


@pytest.mark.parametrize(("mode", "after"), [("close", []), ("hold", "hold")])
def test_a_refuse_mode_is_what_it_was_once_connections_were_refused_with_an_error(mode, after):
    cluster, stage = staged(ip="10.0.0.1")
    cluster.settings |= {MODE: mode, "turnstile.refuse.error": "POLICY_VIOLATION"}
    with stage.refused_with_an_error():
        assert cluster.settings[MODE] == "api-error" and "10.0.0.1:0" in cluster.settings[OVERRIDES]
    assert cluster.settings[MODE] == after and "10.0.0.1:5" in cluster.settings[OVERRIDES]


def test_a_client_among_others_of_its_address_gets_the_error_by_a_fault():
    cluster, stage = staged(client_id="app")
    with stage.refused_with_an_error():
        (ours,) = [each for each in cluster.set_faults if each["kind"] == "error"]
        assert ours["error"] == "POLICY_VIOLATION" and ours["client_id"] == "app"
    assert cluster.state() == Fake().state()


@pytest.mark.parametrize("entity", ["ip=10.0.0.1", "ip=10.0.0.9"])
def test_a_quota_is_what_it_was(entity):
    cluster, stage = staged()
    with stage.quota(entity, connection_creation_rate=1):
        assert {"connection_creation_rate": 1} in [row["values"] for row in cluster.quotas]
    assert cluster.state() == Fake().state()


def test_time_for_which_the_machine_stalled_does_not_count():
    _, stage = staged()
    stage.machine.beats.append(Beat(time.monotonic_ns(), ns(60)))
    looks = count(1)
    assert stage.wait_for(lambda: next(looks) == 4, 0.01)
    stage.machine.beats.clear()
    assert not stage.wait_for(lambda: False, 0.01)


class LateWatch:
    """A program with two clients, the second of which comes back at the third look."""

    def __init__(self):
        self.looks = 0

    def since(self, at_ns):
        self.looks += 1
        return [self._work(at_ns + 1, "first"), *([self._work(at_ns + 2, "second")] if self.looks >= 3 else [])]

    def first_work_after(self, at_ns):
        return at_ns + 1

    def baseline(self):
        return Timeline([Step("baseline", "baseline", 0, 10)], [self._work(1, "first"), self._work(2, "second")])

    def _work(self, at_ns, client_id):
        return Event("request", at_ns, (0, 0, 1, 1), client_id=client_id, api="Fetch")


def test_a_refusal_is_over_once_each_client_of_the_program_works_again():
    cluster, watch = Fake(), LateWatch()
    times = Times(stay_s=0)
    stage = Stage(cluster, watch, Machine(), None, times=times, seed=0, target={}, say=lambda sentence: None)
    stage.baseline = watch.baseline()
    with stage.step("refuse", "reset") as detail:
        stage.await_recovery(detail, whole=True)
    assert watch.looks >= 3 and detail["recovered_ns"] == detail["lifted_ns"] + 1


@pytest.mark.parametrize("times", [Times(), Times().quick()])
def test_connections_that_came_back_are_there_for_long_enough_to_count(times):
    assert ns(times.stay_s) > AT_ONCE_NS


@pytest.mark.parametrize("interrupt", ["set", "quota", "fault", "remove", ""])
def test_an_interrupted_step_leaves_nothing(interrupt):
    cluster, stage = staged(client_id="app")
    stage.target = {"ip": "10.0.0.1"} if interrupt == "set" else stage.target
    cluster.interrupt = interrupt
    with (
        pytest.raises(KeyboardInterrupt),
        stage.quota("ip=10.0.0.1", connection_creation_rate=1),
        stage.cut("blackhole"),
        stage.closed_at_accept(),
    ):
        raise KeyboardInterrupt
    assert cluster.state() == Fake().state()
