"""The cluster's accept path and the reference gate, which `turnstile replay` runs, decide the same for two listeners."""

import os

from cluster_pools import uncapped, unrated
from hypothesis import given
from hypothesis import strategies as st

from broker.accept.admission import Admission
from broker.accept.pacing import Pacing
from broker.accept.pending_connection import PendingConnection
from broker.accept.step_actions import Deciders
from broker.metrics.outcomes import Outcomes
from broker.runtime.shard_context import ShardContext
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.replay_gate import IncomingConnection, ReplayGate
from shards.settings.config_types import text_of
from shards.tokens.tokens import Tokens

LISTENERS = ("A", "B")


class Poller:
    now_ns = 0


class Ignore:
    """Counts, journals and watches nothing."""

    def __getattr__(self, name):
        return lambda *anything: None


class Socket:
    """A listening socket whose backlog is a list of connects, by number."""

    def __init__(self, arrived):
        self._arrived = arrived
        self._accepting = False
        self.backlog = []

    def start(self):
        self._accepting = True

    def pause(self):
        self._accepting = False

    def accept(self):
        while self._accepting and self.backlog:
            self._arrived(os.open(os.devnull, os.O_RDONLY), f"10.0.0.{self.backlog.pop(0)}", 1)


class Journal(Ignore):
    """Keeps what became of each connect, by the last byte of its address."""

    def __init__(self, decided):
        self._decided = decided

    def admitted(self, number, ip, *row):
        self._decided[int(ip.rpartition(".")[2])] = "admitted"

    def refused(self, number, ip, port, listener, *, reason, **row):
        self._decided[int(ip.rpartition(".")[2])] = reason


class Shard:
    """The real accept path over real tokens, as the only shard of its broker."""

    def __init__(self, limits):
        self.decided, self.open = {}, {}
        tokens = self._tokens = Tokens(
            0, 1, epoch=1, send=None, rule_of=limits.rule_of, on_wait=PendingConnection.began_to_wait
        )
        context = ShardContext(
            shard=0, shards=1, image=None, tokens=tokens, cluster=uncapped(),
            cluster_rate=unrated(),
            poller=Poller(), timers=Ignore(), journal=None,
            counters=Ignore(), top_talkers=Ignore(), log=None, send=None, request=None, start_soon=None,
        )  # fmt: skip
        deciders = Deciders(
            rates=None,
            core_rates=None,
            held=None,
            refused_sockets=None,
            force=None,
            numbers=iter(range(1, 1000)),
            pending=set(),
            fd_ceiling=1 << 20,
        )
        self.sockets = {}
        for name in LISTENERS:
            outcomes = Outcomes(name, Journal(self.decided), Ignore(), Ignore(), Ignore())
            pacing = Pacing(name, Poller(), Ignore(), Ignore(), lambda: 64)
            admission = Admission(
                context, deciders, outcomes, pacing, self._open, answering=lambda *_: None, more_pools=("broker:all",)
            )
            socket = self.sockets[name] = Socket(admission.arrived)
            pacing.start(socket)

    def _open(self, fd, number, ip, port, pools):
        os.close(fd)
        self.open[int(ip.rpartition(".")[2])] = pools

    def connect(self, connect, listener):
        self.sockets[listener].backlog.append(connect)
        self._settle()

    def close(self, connect):
        self._tokens.release(self.open.pop(connect))
        self._settle()

    def _settle(self):
        for _ in range(20):
            self._tokens.flush()
            for socket in self.sockets.values():
                socket.accept()
        self._tokens.check()


class Gate:
    """The reference gate behind the same verbs."""

    def __init__(self, limits):
        self._gate = ReplayGate(limits, LISTENERS)
        self._connections = {}

    def connect(self, connect, listener):
        connection = self._connections[connect] = IncomingConnection(
            self._gate.acceptors[listener], f"10.0.0.{connect}"
        )
        self._gate.connect(connection, now_ms=0)

    def close(self, connect):
        self._gate.close(self._connections[connect], now_ms=0)

    @property
    def decided(self):
        outcomes = {connect: each.reason or each.outcome for connect, each in self._connections.items()}
        return {connect: outcome for connect, outcome in outcomes.items() if outcome is not None}


def limits_of(settings):
    limits = ConnectionLimits()
    for name, value in settings.items():
        limits = limits.with_change(name, text_of(value), LISTENERS)
    return limits


def agree(settings, steps):
    """Each step connects to a listener, or closes one of those that are open, the oldest first."""
    limits = limits_of(settings)
    shard, gate = Shard(limits), Gate(limits)
    for connect, step in enumerate(steps, start=1):
        if step in LISTENERS:
            shard.connect(connect, step)
            gate.connect(connect, step)
        elif shard.open:
            leaving = sorted(shard.open)[step % len(shard.open)]
            shard.close(leaving)
            gate.close(leaving)
        assert shard.decided == gate.decided, (connect, step)


STEPS = st.lists(st.one_of(st.sampled_from(LISTENERS), st.integers(0, 9)), max_size=40)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), STEPS)
def test_with_listeners_that_let_wait_and_a_broker_that_refuses(total, a, b, steps):
    settings = {
        "listener.name.a.max.connections": a,
        "listener.name.b.max.connections": b,
        "kafka_connections_max": total,
    }
    agree(settings, steps)


@given(st.integers(1, 6), STEPS)
def test_with_a_broker_that_lets_wait(total, steps):
    listeners = {f"listener.name.{name}.max.connections": 100 for name in "ab"}
    agree({"max.connections": total, **listeners}, steps)


@given(st.integers(1, 6), st.integers(1, 6), STEPS)
def test_with_a_broker_that_lets_wait_or_refuses_whichever_is_tighter(total, refusing, steps):
    listeners = {f"listener.name.{name}.max.connections": 100 for name in "ab"}
    agree({"max.connections": total, "kafka_connections_max": refusing, **listeners}, steps)


def test_a_connection_that_waits_for_a_listeners_slot_leaves_the_brokers_to_the_other_listener():
    settings = {"listener.name.a.max.connections": 2, "kafka_connections_max": 10}
    agree(settings, [*"AAA", *"BBBBBBBB", "B"])
    shard = Shard(limits_of(settings))
    for connect, listener in enumerate([*"AAA", *"BBBBBBBBB"], start=1):
        shard.connect(connect, listener)
    assert len(shard.open) == 10 and shard.decided[12] == "broker_cap" and 3 not in shard.decided
