from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from turnstile.fleet.shares import Company, Numbering, of_driver
from turnstile.load.lanes import Lane
from turnstile.load.sources import Sources
from turnstile.load.spec import ClientGroup, RecordedConnection

NAMED = st.sampled_from([None, "127.1.0.1", "127.1.0.0/28", "127.1.0.0/24", "127.1.0.4/30,127.2.0.0/29", "fd00::/120"])
HOSTS = st.lists(st.integers(0, 40), min_size=1, max_size=6)
"""How many addresses each host has."""


@st.composite
def companies(draw):
    """The addresses of each driver; drivers of one host have the same."""
    usable = []
    for host, count in enumerate(draw(HOSTS)):
        addresses = [f"10.{host}.0.{number}" for number in range(max(1, count))]
        usable += [addresses] * draw(st.integers(1, 3))
    return usable


@st.composite
def groups(draw):
    made = []
    for number in range(draw(st.integers(1, 3))):
        text, clients = draw(NAMED), draw(st.integers(1, 300))
        recorded = None
        if text is not None and draw(st.booleans()):
            addresses = draw(st.lists(st.integers(0, 30), min_size=clients, max_size=clients))
            recorded = RecordedConnection([0.0] * clients, [0.0] * clients, addresses)
        sources = Sources(text) if text is not None else None
        made.append(ClientGroup(name=str(number), clients=clients, sources=sources, recorded=recorded))
    return made


def shares(named, usable):
    """Of each group, what each driver plays: client -> address."""
    company = Company(usable)
    numbering = Numbering([group.sources for group in named if group.sources is not None])
    for group in named:
        played = []
        for driver in range(len(usable)):
            as_played = of_driver(group, numbering, company, driver)
            lane = Lane(as_played)
            clients = as_played.share(driver, len(usable))
            played.append({client: lane.source(client) for client in clients})
        yield group, played


@given(groups(), companies())
def test_every_client_is_played_by_one_driver_from_an_address_of_its_host(named, usable):
    for group, played in shares(named, usable):
        assert sorted(client for each in played for client in each) == list(range(group.clients))
        for addresses, each in zip(usable, played, strict=True):
            assert set(each.values()) <= set(addresses)


@given(groups(), companies())
def test_an_address_of_the_scenario_is_one_address_in_every_group(named, usable):
    stands_for = {}
    for group, played in shares(named, usable):
        if group.sources is not None:
            lane = Lane(group)
            for each in played:
                for client, address in each.items():
                    assert stands_for.setdefault(lane.source(client), address) == address


@given(st.integers(1, 300), st.integers(1, 8))
def test_without_addresses_of_the_workers_drivers_play_what_processes_do(clients, drivers):
    group = ClientGroup(clients=clients, sources=Sources("127.1.0.0/24"))
    [(_, played)] = shares([group], [[]] * drivers)
    assert [list(each) for each in played] == [list(group.share(n, drivers)) for n in range(drivers)]


def test_drivers_of_one_host_share_the_clients_of_an_address_and_hosts_share_the_addresses():
    one_address = ClientGroup(clients=300, sources=Sources("127.1.0.1"))
    usable = [["10.0.0.1"], ["10.0.0.1"], ["10.0.1.1"]]
    [(_, played)] = shares([one_address], usable)
    assert list(map(len, played)) == [150, 150, 0]
    many = ClientGroup(clients=300, sources=Sources("127.1.0.0/24"))
    [(_, played)] = shares([many], usable)
    assert Counter(address for each in played for address in each.values()) == {"10.0.0.1": 150, "10.0.1.1": 150}


def test_clients_with_an_address_each_are_spread_over_the_drivers_of_a_host():
    group = ClientGroup(clients=64, sources=Sources("127.1.0.0/26"))
    [(_, played)] = shares([group], [[f"10.0.0.{number}" for number in range(64)]] * 4)
    assert list(map(len, played)) == [16] * 4
