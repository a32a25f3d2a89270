"""The use of each limit on connections, one row for each limit on each broker. Pure.

A cap or a rate holds on each broker by itself; only the uses of the whole cluster's are sums over brokers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from broker.admin.images import Images
from broker.admin.live_answers import LimitedUse, LimitUse
from broker.admin.sampler import Sample, Sampler
from broker.metrics.shard_counters import RECORDED
from shards.limits.caps import CLUSTER, OF_CLUSTER
from shards.limits.utilisation import utilisation
from shards.ownership import BrokerShard
from shards.settings.broker_config import EVERY_BROKER
from shards.settings.config_def import LISTENER_PREFIX

CONNECTIONS: Final = "connections"
NEW_CONNECTIONS: Final = "new_connections"
_ACCEPT_RATES: Final = {
    "kafka_server_socket_server_metrics_connection_accept_rate": "ip", "turnstile_user_connection_accept_rate": "user",
}  # fmt: skip
"""Gauges of the shards, and the label that names whose rate it is."""


class Use(NamedTuple):
    """`what`: connections that are open, or new ones a second, averaged over the quota window. `of`: `broker`,
    `listener:NAME`, `ssl`, `ip:ADDRESS`, `user:NAME`, `broker:all`, in which the inter-broker listener counts, too, or `cluster`,
    whose `broker` is EVERY_BROKER. `by`: the setting or quota that sets the limit."""

    broker: int
    what: LimitedUse
    of: str
    used: float
    limit: float
    by: str

    def told(self) -> LimitUse:
        """The use as JSON."""
        return {
            "broker": told_broker(self.broker), "what": self.what, "of": self.of, "used": self.used, "limit": self.limit,
            "by": self.by,
        }  # fmt: skip


def told_broker(broker: int) -> int | None:
    """A broker in answers of the admin API: None for the whole cluster."""
    return None if broker == EVERY_BROKER else broker


def in_use(answers: Mapping[BrokerShard, Mapping[str, Any]]) -> Counter[tuple[int, str]]:
    """Open connections by (broker, pool), from what a pool's home and holders answer to describe_tokens. Those of the pool
    `cluster`, and of its observed pool, are of all brokers, by EVERY_BROKER."""
    found: Counter[tuple[int, str]] = Counter()
    for (broker, _), answer in answers.items():
        for row in (*answer["home"], *answer["holds"]):
            found[EVERY_BROKER if row["pool"] in OF_CLUSTER else broker, row["pool"]] += row["in_use"]
    return found


def connection_uses(
    images: Images, brokers: int, pools: Iterable[str], used: Mapping[tuple[int, str], int]
) -> list[Use]:
    """The uses of the pools that have a cap; of listeners only those with a cap of their own."""
    found = []
    for pool in dict.fromkeys(pools):
        for broker in (EVERY_BROKER,) if pool == CLUSTER else range(brokers):
            rule, count = images.of(max(broker, 0)).rule_of(pool), used.get((broker, pool), 0)
            if rule.cap is not None and has_own_row(pool, rule.name):
                found.append(Use(broker, CONNECTIONS, pool, count, rule.cap, rule.name))
    return found


def has_own_row(pool: str, setting: str) -> bool:
    """True if a limit has a row of its own: a listener without a limit of its own has its broker's
    (connection_limits.listeners_inherit_from_broker), which the broker reaches first; connections over TLS, and those of the
    cluster, have a row where they have a cap."""
    if pool in ("ssl", CLUSTER):
        return bool(setting)
    return not pool.startswith("listener:") or setting.startswith(LISTENER_PREFIX)


def is_of_many(of: str) -> bool:
    """True if a limit is one of an address or a user, of which there may be very many."""
    return of.startswith(("ip:", "user:"))


class ConnectionRate(NamedTuple):
    """Connections a second of an address or user on one broker; `pool`: `ip:ADDRESS` or `user:NAME`."""

    broker: int
    pool: str
    per_s: float


def connection_rates(gauges: Mapping[BrokerShard, Iterable[Sequence[Any]]]) -> Iterator[ConnectionRate]:
    """The rates in what shards answer to describe_gauges."""
    for (broker, _), reported in gauges.items():
        for name, labels, rate in reported:
            kind = _ACCEPT_RATES.get(name)
            if kind is not None:
                yield ConnectionRate(broker, f"{kind}:{labels[kind]}", rate)


def rate_uses(
    images: Images, sampler: Sampler, window: tuple[Sample, Sample], of_many: Iterable[ConnectionRate]
) -> list[Use]:
    """The uses of creation rates: of the cluster and the brokers, of listeners with a rate of their own, and of addresses and users
    with a rate that connected lately."""
    brokers = sorted({broker for broker, _ in sampler.now().slots})
    found = [use for broker in brokers for use in _broker_rates(images, sampler, window, broker)]
    found += _cluster_rate(images, sampler, window)
    for broker, pool, per_s in of_many:
        rule = images.of(broker).rate_of(pool)
        if rule.rate is not None and per_s > 0:
            found.append(Use(broker, NEW_CONNECTIONS, pool, round(per_s, 2), rule.rate, rule.name))
    return found


def _broker_rates(images: Images, sampler: Sampler, window: tuple[Sample, Sample], broker: int) -> Iterable[Use]:
    """As KIP-612 has it, the broker's rate does not count the inter-broker listener, unless that is the only one."""
    image, listeners = images.of(broker), sampler.layout.listeners
    arrived = _arrived(sampler, window, [member for member in window[1].slots if member[0] == broker])
    own = [rate for listener, rate in arrived.items() if listener != image.inter_broker_listener or len(listeners) == 1]
    for pool, rate in (("broker", sum(own)), *((f"listener:{name}", rate) for name, rate in arrived.items())):
        rule = image.rate_of(pool)
        if rule.rate is not None and has_own_row(pool, rule.name):
            yield Use(broker, NEW_CONNECTIONS, pool, round(rate, 2), rule.rate, rule.name)


def _cluster_rate(images: Images, sampler: Sampler, window: tuple[Sample, Sample]) -> Iterable[Use]:
    """The use of the cluster's rate. Connections that the rate of an address refuses count: they are not taken back from it."""
    rule = images.of(0).rate_of(CLUSTER)
    if rule.rate is not None:
        rate = sum(_arrived(sampler, window, list(window[1].slots), (*RECORDED, "refused_ip_rate")).values())
        yield Use(EVERY_BROKER, NEW_CONNECTIONS, CLUSTER, round(rate, 2), rule.rate, rule.name)


def observed_cluster_rate(images: Images, sampler: Sampler, window: tuple[Sample, Sample]) -> Use | None:
    """The use of the cluster's observed rate: admitted connections, without those that this rate, or the rate of a core before it,
    would have refused; None: none is observed."""
    rule = images.of(0).observed_rate_of(CLUSTER)
    if rule.rate is None:
        return None
    members = list(window[1].slots)
    counters = ("admitted", "observed_core_rate", "observed_cluster_rate")
    came, *out = (sum(_arrived(sampler, window, members, (name,)).values()) for name in counters)
    return Use(EVERY_BROKER, NEW_CONNECTIONS, CLUSTER, round(max(came - sum(out), 0.0), 2), rule.rate, rule.name)


def _arrived(
    sampler: Sampler, window: tuple[Sample, Sample], members: Sequence[BrokerShard], counters: Sequence[str] = RECORDED
) -> dict[str, float]:
    """Connections a second on these shards, by listener."""
    seconds = max(window[1].mono_s - window[0].mono_s, 1.0)
    return {
        listener: sum(sampler.rise(window, counter, listener, members) for counter in counters) / seconds
        for listener in sampler.layout.listeners
    }


def fullest_first(uses: Iterable[Use], most: int) -> list[Use]:
    """All uses of brokers and listeners, and the fullest of addresses and users up to `most` rows in all; the closest to their
    limit come first. Addresses and users without a connection are left out. The same limit on several brokers stands together."""

    def order(use: Use) -> tuple[float, bool, str, int]:
        return -min(utilisation(use.used, use.limit), 1.0), is_of_many(use.of), use.of, use.broker

    many = sorted((use for use in uses if use.used and is_of_many(use.of)), key=order)
    others = [use for use in uses if not is_of_many(use.of)]
    return sorted([*others, *many[: max(0, most - len(others))]], key=order)
