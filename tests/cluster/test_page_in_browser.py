"""The live page of a real cluster in a real browser, by mouse and by keyboard: what it changes holds, and what it shows is so."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from browser import Page, browser
from harness import Cluster, connect, running, until
from request_bytes import answer, request

PER_IP, WHOLE = "kafka_connections_max_per_ip", "turnstile.cluster.max.connections"
LONG = "turnstile.max.connection.creation.rate.per.user.overrides"
HOSTILE = "<img src=x onerror=document.title=1><script>document.title=1</script>"
REFRESHED = "performance.getEntriesByType('resource').filter(one => one.name.includes('/v1/live')).length"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("page") / "d", brokers=2) as cluster:
        yield cluster


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[ExitStack]:
    """What is open during a test; then the cluster has no limits and no connections."""
    with ExitStack() as clients:
        yield clients
    for query in ("", "?broker=1", "?observe=true", "?broker=1&observe=true"):
        names = [PER_IP, LONG] if "broker" in query else [PER_IP, WHOLE]
        cluster.put(f"/v1/cluster_config{query}", {"upsert": {}, "remove": names})
    until(lambda: cluster.metric("turnstile_connections_open") == 0, what="all connections closed")


@pytest.fixture
def page(cluster: Cluster, clients: ExitStack, tmp_path: Path) -> Iterator[Page]:
    """The page, as it is drawn; its scripts end without an error, and its policy has refused nothing."""
    with browser(tmp_path) as page:
        page.looks(width=1300)
        page.open(cluster.admin)
        page.until("document.querySelector('#limits button')")
        yield page
        assert page.errors == []


def client_of(
    cluster: Cluster, clients: ExitStack, source: str, client_id: str = "app", broker: int = 0
) -> socket.socket:
    """A connection that asked once."""
    sock = clients.enter_context(connect(cluster.listeners["PLAINTEXT"][broker], source))
    sock.sendall(request(18, 0, client_id, b""))
    assert answer(sock)
    return sock


def goes_to(page: Page, label: str) -> None:
    """Walks with Tab to what has this label or text, as one who has no mouse does."""
    here = "(one => one.getAttribute('aria-label') || one.textContent)(document.activeElement)"
    for _ in range(200):
        page.press("Tab")
        if page.evaluate(here) == label:
            return
    raise AssertionError(f"Tab does not reach {label!r}")


def value_of(cluster: Cluster, name: str, query: str = "") -> object:
    return cluster.get(f"/v1/cluster_config?key={name}{query}")[name]


def test_a_limit_is_changed_by_keyboard_and_holds(cluster: Cluster, clients: ExitStack, page: Page) -> None:
    cluster.put("/v1/cluster_config?broker=1", {"upsert": {PER_IP: 1}, "remove": []})
    goes_to(page, f"Change {PER_IP}")
    page.press("Enter", "2", "Enter")
    page.until(f"document.getElementById('say').textContent.startsWith('{PER_IP} = 2, in force on every shard since')")
    assert f"broker 1 keeps its own value 1 of {PER_IP}" in page.text("#say")
    assert value_of(cluster, PER_IP) == 2
    for _ in range(2):
        client_of(cluster, clients, "127.1.0.1")
    assert clients.enter_context(connect(cluster.address, "127.1.0.1")).recv(1) == b""
    page.until("document.getElementById('uses').textContent.includes('2 of 2 (100 %)')")
    goes_to(page, f"Change {PER_IP}")
    page.press("Enter")
    goes_to(page, "Unset")
    page.press("Enter")
    until(lambda: value_of(cluster, PER_IP) is None, what="unset")


@pytest.mark.parametrize("name", [PER_IP, WHOLE])
def test_a_limit_is_rehearsed_from_the_page_and_refuses_nobody(
    cluster: Cluster, clients: ExitStack, page: Page, name: str
) -> None:
    goes_to(page, f"Change {name}")
    page.press("Enter", "2")
    goes_to(page, "Observe")
    page.press("Enter")
    page.until(
        f"document.getElementById('say').textContent.startsWith('{name} = 2 is observed, not enforced, on every')"
    )
    assert (value_of(cluster, name), value_of(cluster, name, "&observe=true")) == (None, 2)
    page.until("document.getElementById('limits').textContent.includes('observed: 2')")
    for broker in (0, 0, 0, 1) if name == WHOLE else (0,) * 4:
        client_of(cluster, clients, "127.1.0.1", broker=broker)
    page.until(
        "document.getElementById('observed').textContent.includes('would have refused 2 connections of 1 address')"
    )
    assert cluster.metric("turnstile_connections_open") == 4
    page.click(f"[aria-label='Stop observing {name}']")
    page.until("document.getElementById('rehearsal').hidden")
    assert value_of(cluster, name, "&observe=true") is None


def test_an_address_is_opened_and_names_that_clients_chose_are_text(
    cluster: Cluster, clients: ExitStack, page: Page
) -> None:
    cluster.set(PER_IP, 3)
    for client_id in (HOSTILE, "app"):
        client_of(cluster, clients, "127.1.0.1", client_id)
    page.until("document.querySelector('#uses button.open')")
    page.click("#uses button.open")
    page.until("document.querySelectorAll('#detail tbody tr').length === 2")
    page.until("document.getElementById('detail').textContent.includes('2 of 3 (66 %)')")
    assert HOSTILE in page.text("#detail")
    assert page.evaluate("[document.title, document.querySelectorAll('main img, main script').length]") == [
        "Turnstile",
        0,
    ]
    assert page.evaluate("location.hash") == "#ip=127.1.0.1"
    page.press("Escape")
    page.until("document.getElementById('detail').hidden")
    assert page.evaluate("document.activeElement.textContent") == "connections of 127.1.0.1"


def test_on_a_phone_nothing_is_cut_and_the_dark_is_dark(cluster: Cluster, clients: ExitStack, page: Page) -> None:
    cluster.put("/v1/cluster_config", {"upsert": {PER_IP: 1, WHOLE: 50}, "remove": []})
    cluster.put("/v1/cluster_config?observe=true", {"upsert": {PER_IP: 1, WHOLE: 2}, "remove": []})
    cluster.put("/v1/cluster_config?broker=1&observe=true", {"upsert": {LONG: "alice:5"}, "remove": []})
    client_of(cluster, clients, "127.1.0.1", HOSTILE)
    page.looks(width=420, dark=True)
    cut = """(width => [...document.querySelectorAll('main *, header *')].filter(one => one.getBoundingClientRect().right > width ||
      one.matches('td, h2, .limit > *') && one.scrollWidth > one.clientWidth + 1)
      .map(one => one.outerHTML.slice(0, 200)))(document.documentElement.clientWidth)"""
    for place, drawn in (
        ("#ip=127.1.0.1", "#detail tbody tr"),
        ("#", "#observed tbody tr"),
        ("#internals", "#pools td"),
    ):
        page.evaluate(f"location.hash = {place!r}")
        page.until(f"document.querySelector({drawn!r}) && innerWidth === 420")
        assert page.evaluate(cut) == []
    colors = page.evaluate(
        "['body', '.card', 'input'].map(each => getComputedStyle(document.querySelector(each)).backgroundColor)"
    )
    assert all(int(part) < 40 for color in colors for part in color.strip("rgb()").split(",")), colors


def test_a_slow_click_is_not_lost_while_rows_are_drawn_anew(page: Page) -> None:
    button = f"[aria-label='Change {PER_IP}']"
    page.mouse(button, "mousePressed")
    before = page.evaluate(REFRESHED)
    page.until(f"{REFRESHED} >= {before} + 3")
    page.mouse(button, "mouseReleased")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"New value of {PER_IP}"
