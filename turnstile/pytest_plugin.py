"""The pytest plugin, installed with the package: a cluster for the session, reset for each test that asks for it.

    @pytest.mark.limits(per_ip=5)
    @pytest.mark.quota("client-id=app", producer_byte_rate=1000)
    def test_the_sixth_client_is_told(turnstile):
        run_my_clients(turnstile.bootstrap)
        assert turnstile.refusals().by_reason == {"ip_cap": 1}

Under pytest-xdist each worker has a cluster of its own, on ports of its own. A test that fails shows what the cluster
refused and throttled during it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker.admin.live_answers import LimitUse, LiveAnswer, QuotaClient
    from turnstile.cluster import Cluster

_SETTER = {"limits": "set", "quota": "quota"}
"""Each mark, and the method of Cluster that takes what it says."""
_USED = pytest.StashKey["Cluster"]()
_ADDRESSES = 20
"""Refused addresses that a failure's section shows."""


def pytest_configure(config: pytest.Config) -> None:
    """The marks, for --strict-markers and --markers."""
    config.addinivalue_line("markers", "limits(**settings): limits of the `turnstile` fixture's cluster in this test")
    config.addinivalue_line("markers", "quota(entity, **rates): a client quota in this test, such as user=alice")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks that can't be of any cluster end the run before it has begun; in a worker of pytest-xdist, which can't say so, the
    test that has one fails."""
    marks = {id(mark): (item, mark) for item in items for mark in item.iter_markers() if mark.name in _SETTER}
    if not marks or hasattr(config, "workerinput"):
        return
    from turnstile.marks import spelled, wrong

    said = [
        f"{item.nodeid}: {spelled(mark)}: {why}" for item, mark in marks.values() if (why := wrong(mark)) is not None
    ]
    if said:
        raise pytest.UsageError("\n".join(said))


@pytest.fixture(scope="session")
def turnstile_options() -> dict[str, Any]:
    """Options of the session's cluster, those of `turnstile.Cluster`; override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def turnstile_cluster(turnstile_options: dict[str, Any]) -> Iterator[Cluster]:
    """The cluster of the session (of each worker, under pytest-xdist), as the tests before have left it."""
    from turnstile.cluster import Cluster

    with Cluster(**turnstile_options) as cluster:
        yield cluster


@pytest.fixture
def turnstile(request: pytest.FixtureRequest, turnstile_cluster: Cluster) -> Cluster:
    """The session's cluster as it was when it started, with the limits and quotas of the test's marks.

    If a test before has ended the cluster, another is started.
    """
    from turnstile.marks import spelled, wrong

    if not turnstile_cluster.is_running:
        turnstile_cluster.stop()
        turnstile_cluster.start()
    turnstile_cluster.reset()
    marks = [*request.node.iter_markers("limits"), *request.node.iter_markers("quota")]
    for mark in reversed(marks):  # the closest is set last, and wins
        why = wrong(mark) or _refused(turnstile_cluster, mark)
        if why is not None:
            pytest.fail(f"{spelled(mark)}: {why}", pytrace=False)
    request.node.stash[_USED] = turnstile_cluster
    return turnstile_cluster


def _refused(cluster: Cluster, mark: pytest.Mark) -> str | None:
    """Does what the mark asks for. Returns why this cluster won't have it, such as a listener that it has not."""
    from turnstile.admin_client import AdminRefused

    try:
        getattr(cluster, _SETTER[mark.name])(*mark.args, **mark.kwargs)
    except AdminRefused as fault:
        return str(fault)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds a section to the report of a test that has failed, in itself or in a fixture that uses `turnstile`."""
    report = yield
    cluster = item.stash.get(_USED, None)
    if report.failed and cluster is not None:
        report.sections.append(("turnstile", _account(cluster)))
    return report


def _account(cluster: Cluster) -> str:
    """The refusals and throttles of the cluster since the test began, each beside its limit, a line each."""
    from turnstile.admin_client import AdminError
    from turnstile.cluster import ClusterError
    from turnstile.journal_text import journal_lines
    from turnstile.quantities import count, duration

    try:
        refusals, throttled, open_now = cluster.refusals(), cluster.throttled(), cluster.connections()
        live = cluster.admin.get("/v1/live")
        notes = cluster.admin.get("/v1/notes")["notes"]
    except (AdminError, ClusterError) as fault:
        return str(fault)
    lines = [
        f"{count(refusals.admitted)} connections admitted, {count(open_now)} open, {count(refusals.total)} refused"
    ]
    for ip, reasons in [*refusals.by_ip.items()][:_ADDRESSES]:
        text = ", ".join(f"{reason} {count(number)}" for reason, number in reasons.items())
        lines.append(f"refused {ip}: {text}{_caps(live, ip)}")
    if len(refusals.by_ip) > _ADDRESSES:
        lines.append(f"refused {len(refusals.by_ip) - _ADDRESSES} addresses more: see Cluster.refusals()")
    for name, each in throttled.items():
        lines.append(f"throttled by {name}: {_requests(each.requests)}, {duration(each.throttle_ms)} in all")
    lines += [_throttled(live, row) for row in live["throttled"]]
    lines += [f"journal: {line}" for line in journal_lines(live["journal"])]
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def _requests(number: int) -> str:
    from turnstile.quantities import count, plural

    return f"{count(number)} {plural('request', number)}"


def _caps(live: LiveAnswer, ip: str) -> str:
    """The caps of a refused address, on the brokers that have it connected or are the only one."""
    from turnstile.use_text import use_text

    uses = [use for row in live["top_refused"] if row["ip"] == ip for use in row["uses"]]
    texts = [
        f"{use_text(use)} open now{_on(live, use)}, cap of {use['by']}" for use in uses if use["used"] or len(uses) == 1
    ]
    return "".join(f"; {each}" for each in texts)


def _throttled(live: LiveAnswer, row: QuotaClient) -> str:
    from broker.runtime.printable import printable
    from turnstile.quantities import duration
    from turnstile.use_text import client_text, quota_use_text

    client = printable(client_text(row["user"], row["client_id"]))
    text = f"{row['quota']} {quota_use_text(row)}, delayed by {duration(row['throttle_ms'])} on average"
    return f"throttled {client}{_on(live, row)}: {text}"


def _on(live: LiveAnswer, row: LimitUse | QuotaClient) -> str:
    return f" on broker {row['broker']}" if live["brokers"] > 1 else ""
