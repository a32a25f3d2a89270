"""The hub with drivers in threads, some of them made to do what drivers on lost machines do. No Spark."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest
from fake_brokers import fake_broker

from turnstile.fleet.hub import Hub
from turnstile.fleet.member import HubUnreachable, Order, play
from turnstile.fleet.messages import Company, Go, Join, Link, Ping, Pong, Progress, Ready, Snapshot, frame
from turnstile.load.raw_sockets import DriverError
from turnstile.load.sources import Sources
from turnstile.load.spec import UNTIL_THE_END, ClientGroup, LoadScenario
from turnstile.load.tally import COUNTS, Tally

ADMITTED, REFUSED = Sources("127.1.0.0/28"), Sources("127.1.1.0/28")
SECRET = "s3cret"


@pytest.fixture(scope="module")
def broker():
    with fake_broker() as (bootstrap, _):
        yield bootstrap


@contextmanager
def fleet(broker, count, *groups, real=None, allowed=None, **settings):
    """A hub for `count` drivers, of which `real` (all) run in threads; yields it and the order of its drivers."""
    scenario = LoadScenario(name="test", groups=groups, **settings)
    hub = Hub(("127.0.0.1", 0), SECRET, count, check=lambda: None)
    order = Order(scenario, broker, ("127.0.0.1", hub.port), SECRET, count, allowed)
    numbers = range(count if real is None else real)
    threads = [threading.Thread(target=play, args=(order, number), daemon=True) for number in numbers]
    for thread in threads:
        thread.start()
    try:
        yield hub, order
    finally:
        hub.close()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()


def run(hub, watch=lambda _: None):
    """From joining to the last word; the tallies of all drivers, added up by group."""
    hub.gather(lambda _: None)
    hub.start()
    hub.collect(watch, not_before_s=0.0)
    return total(hub)


def total(hub):
    totals = []
    for driver in hub.drivers.values():
        for number, tally in enumerate(driver.tallies(1)):
            if number == len(totals):
                totals.append(Tally())
            totals[number].add(tally)
    return totals


class Acted:
    """A driver that does only what it is told here."""

    def __init__(self, order, number, secret=SECRET):
        self.sock = socket.create_connection(order.hub)
        self.link = Link(self.sock)
        self.link.send(Join(secret, number, f"host-{number}", 1, [], []))

    def until_start(self):
        """Answers as a driver does, to the start."""
        while not isinstance(message := self.link.receive(), Go):
            if isinstance(message, Company):
                self.link.send(Ready())
            elif isinstance(message, Ping):
                self.link.send(Pong(time.monotonic(), time.time() + 5))
        return self

    def say(self, attempted, admitted):
        tally = Tally()
        tally.attempted = tally.admitted = admitted - 1
        for _ in range(admitted - 1):
            tally.admitted_us.record(700)
        self.link.send(Snapshot([tally.dump()]))
        counts = dict.fromkeys(COUNTS, 0) | {"attempted": attempted, "admitted": admitted}
        self.link.send(Progress([list(counts.values())], 0, 0, False))


def is_sent_away(sock):
    sock.settimeout(60)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def acting(order, number, act):
    """The same in a thread, as the hub waits in this one."""

    def run():
        driver = Acted(order, number)
        with driver.sock:
            act(driver.until_start())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_drivers_share_the_clients_and_what_they_did_adds_up(broker):
    groups = (
        ClientGroup(name="in", clients=101, sources=ADMITTED, hold_s=UNTIL_THE_END),
        ClientGroup(name="out", clients=50, sources=REFUSED),
    )
    with fleet(broker, 3, *groups) as (hub, _):
        admitted, refused = run(hub)
    assert (admitted.attempted, admitted.admitted, len(admitted.admitted_us)) == (101, 101, 101)
    assert (refused.attempted, refused.refused, len(refused.refused_us)) == (50, 50, 50)
    assert [driver.tallies(2)[0].admitted for driver in map(hub.drivers.get, range(3))] == [34, 34, 33]


def test_addresses_of_the_host_stand_for_the_scenarios(broker):
    """The fake broker refuses what comes from 127.1.1.x, which the scenario names and the host's addresses are not."""
    group = ClientGroup(clients=40, sources=REFUSED)
    with fleet(broker, 2, group, allowed="127.1.0.0/30") as (hub, _):
        [tally] = run(hub)
        assert hub.drivers[0].connects_from == ["127.1.0.0", "127.1.0.1", "127.1.0.2", "127.1.0.3"]
    assert tally.admitted == 40


def test_clocks_are_measured(broker):
    with fleet(broker, 2, ClientGroup(clients=4, sources=ADMITTED), real=1) as (hub, order):
        acting(order, 1, lambda _: None)
        run(hub)
    here, there = hub.drivers[0].clock, hub.drivers[1].clock
    assert abs(here.ahead_s) <= here.within_s
    assert abs(there.ahead_s - 5) <= there.within_s


def test_a_driver_that_is_lost_is_counted_as_far_as_it_said_and_the_others_go_on(broker):
    with fleet(broker, 2, ClientGroup(clients=20, sources=ADMITTED), real=1) as (hub, order):

        def act(driver):
            driver.say(attempted=9, admitted=8)

        acting(order, 1, act)
        [tally] = run(hub)
    assert hub.drivers[0].lost_s is None and hub.drivers[1].lost_s is not None
    assert (tally.attempted, tally.admitted) == (10 + 9, 10 + 8)
    assert len(tally.admitted_us) == 10 + 7  # the latencies are those of its last snapshot


def test_a_driver_that_says_nothing_is_lost(broker):
    with fleet(broker, 2, ClientGroup(clients=20, sources=ADMITTED), real=1) as (hub, order):
        over = threading.Event()
        silent = acting(order, 1, lambda _: over.wait(30))
        hub.gather(lambda _: None)
        hub.start()
        hub.drivers[1].heard_s = -1e9
        hub.collect(lambda _: None, not_before_s=0.0)
        over.set()
        silent.join(10)
    assert "said nothing" in hub.drivers[1].lost_because
    assert total(hub)[0].admitted == 10


def test_where_none_is_left_that_is_the_end(broker):
    with fleet(broker, 1, ClientGroup(), real=0) as (hub, order):
        acting(order, 0, lambda _: None)
        with pytest.raises(DriverError, match=r"Driver 0 on host-0 was lost after .* none is left"):
            run(hub)


def test_what_a_driver_can_not_do_is_said_with_its_host(broker):
    with (
        fleet(broker, 1, ClientGroup(sources=Sources("203.0.113.7"))) as (hub, _),
        pytest.raises(DriverError, match=rf"Driver 0 on {socket.gethostname()}: Can't connect from 203\.0\.113\.7"),
    ):
        run(hub)


@pytest.mark.parametrize(
    ("bootstrap", "allowed", "says"),
    [
        (
            "198.51.100.1:9092",
            None,
            "connects from 127.1.0.0, from which 198.51.100.1 can't be reached: --worker-sources",
        ),
        ("127.0.0.1:9092", "203.0.113.0/24", "has none of the addresses 203.0.113.0/24"),
        ("nowhere.invalid:9092", None, "can't be resolved"),
    ],
)
def test_a_host_from_which_nothing_can_come_is_said_before_the_start(bootstrap, allowed, says):
    with (
        fleet(bootstrap, 1, ClientGroup(sources=ADMITTED), allowed=allowed) as (hub, _),
        pytest.raises(DriverError, match=says),
    ):
        hub.gather(lambda _: None)


def test_strangers_are_sent_away(broker):
    with fleet(broker, 1, ClientGroup(clients=5, sources=ADMITTED)) as (hub, order):
        guest, twin = Acted(order, 0, secret="guessed"), Acted(order, 7)
        noise = socket.create_connection(order.hub)
        noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
        early = socket.create_connection(order.hub)
        early.sendall(frame(Progress([], 0, 0, True)))
        [tally] = run(hub)
        for sock in (guest.sock, twin.sock, noise, early):
            with sock:
                assert is_sent_away(sock)
    assert tally.admitted == 5


def test_an_interrupt_ends_the_drivers_and_what_they_did_is_there(broker):
    group = ClientGroup(clients=10_000, rate=100, sources=ADMITTED, hold_s=UNTIL_THE_END)
    with fleet(broker, 2, group) as (hub, _):
        hub.gather(lambda _: None)
        hub.start()

        def watch(latest):
            if sum(progress.counts[0][COUNTS.index("admitted")] for progress in latest) > 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            hub.collect(watch, not_before_s=0.0)
        hub.end()
        hub.collect(lambda _: None, not_before_s=0.0)
    [tally] = total(hub)
    assert 4 < tally.admitted <= tally.attempted < 10_000


def test_a_hub_that_can_not_be_reached_is_named():
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()[:2]
    order = Order(LoadScenario(name="x", groups=(ClientGroup(),)), "127.0.0.1:1", address, SECRET, 1, None)
    with pytest.raises(HubUnreachable, match=f"can't reach this command at 127.0.0.1:{address[1]}: Connection refused"):
        play(order, 0)


def test_a_hub_that_goes_ends_its_drivers(broker):
    with fleet(broker, 2, ClientGroup(clients=10_000, rate=10, sources=ADMITTED)) as (hub, _):
        hub.gather(lambda _: None)
        hub.start()
