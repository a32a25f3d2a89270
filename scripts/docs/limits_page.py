"""The page of limits, from the code that enforces them: what each limit bounds, what passes at once, why a refusal says what."""

from __future__ import annotations

from broker.journal.schema import REASONS
from scripts.docs import settings_page
from scripts.docs.markdown import code, plain, table
from shards.limits.bursts import Burst, burst_of
from shards.limits.connection_limits import ConnectionLimits
from shards.limits.quota_entities import CLIENT_KEYS, IP_KEYS
from shards.settings.config_key import REDPANDA
from shards.settings.limiting_settings import LIMITING
from turnstile.quantities import duration
from turnstile.settings import SHORT

PLACE = "reference/limits.md"
_HEAD = """# Every limit

Look up which limits there are, what each bounds, how much of a rate passes at once, and what the reason of a refusal means. This
page is made from the code that enforces them. [Limits and settings](../configuration.md) and [Client quotas](../quotas.md) say how
they work together.
"""
_QUOTAS = {
    "connection_creation_rate": "new connections a second",
    "producer_byte_rate": "bytes a second that are produced",
    "consumer_byte_rate": "bytes a second that are fetched",
    "request_percentage": "handler time, in per cent of one thread",
    "controller_mutation_rate": "partitions a second that are created or deleted",
}
_REASONS = {
    "broker_cap": "as many connections are open on the broker as `kafka_connections_max` allows",
    "listener_cap": "`max.connections` of the listener is reached. It lets wait, so it refuses only a connection that was held for "
    "its rate and is checked again (`turnstile.ip.rate.recheck`)",
    "cluster_cap": "as many connections are open on all brokers as `turnstile.cluster.max.connections` allows",
    "cluster_rate": "all brokers together meet connections faster than `turnstile.cluster.max.connection.creation.rate`",
    "ssl_cap": "as many connections over TLS are open as `turnstile.max.ssl.connections` allows",
    "ip_cap": "as many connections of the address are open as `kafka_connections_max_per_ip`, `max.connections.per.ip` or an "
    "override allows",
    "user_cap": "as many connections of the user are open as `turnstile.max.connections.per.user` or an override allows. It was "
    "admitted, and is refused when it has logged in",
    "user_rate": "the user opens connections faster than `turnstile.max.connection.creation.rate.per.user` or an override allows. "
    "It was admitted, and is refused when it has logged in",
    "ip_rate": "the address opens connections faster than its quota `connection_creation_rate`",
    "core_rate": "a core meets connections faster than `kafka_connection_rate_limit`, and this one waited for 100 ms",
    "fd_limit": "the process has no file descriptor left for it: `ulimit -n`",
    "shard_unavailable": "the process that decides about the address did not answer",
    "proxy_header": "a trusted proxy connected and sent no PROXY header, or a wrong one",
}
_ANY_RATE = 10.0
"""Bursts are told in seconds of a rate, which is the same for every rate."""


def limits_page() -> str:
    """The page."""
    return "\n".join(
        [
            _HEAD,
            "## Limits of connections\n",
            "They are settings: `turnstile config set NAME VALUE`. Python, the pytest plugin and the image take the short name, "
            "too.\n",
            table(
                ["setting", "short", "bounds", "passes at once"],
                [_setting(row.name) for row in LIMITING if _bounds(row.name)],
            ),
            "## Client quotas\n",
            "They are set for an entity: `turnstile quota set ENTITY KEY=VALUE`. The entity `ip` takes the first; `user`, "
            "`client-id`, or both take the others. The name `<default>` is everyone who has none of his own.\n",
            table(["quota", "bounds", "passes at once"], [_quota(key) for key in (*IP_KEYS, *CLIENT_KEYS)]),
            "## Why a connection is refused\n",
            "A refusal has one of these reasons, in the journal, in `/v1/refusals`, in `turnstile_connections_refused_total` "
            "and in what `turnstile load` prints.\n",
            table(["reason", "means that"], [(code(reason), _REASONS[reason]) for reason in REASONS]),
        ]
    )


def _bounds(name: str) -> bool:
    return not name.startswith("turnstile.")


def _setting(name: str) -> tuple[str, str, str, str]:
    row = next(row for row in LIMITING if row.name == name)
    short = next((code(each) for each, full in SHORT.items() if full == name), "")
    over = "Redpanda" if row.vocabulary == REDPANDA else "Kafka"
    passes = _passes(name) if "rate" in name and "overrides" not in name else ""
    targets = {each: f"settings.md{anchor}" for each, anchor in settings_page.targets().items()}
    return f"{plain(name, targets)}, {over}'s", short, plain(row.doc, targets), passes


def _quota(key: str) -> tuple[str, str, str]:
    return code(key), _QUOTAS[key], _passes(key)


def _passes(name: str) -> str:
    burst: Burst = burst_of(name, _ANY_RATE, ConnectionLimits())
    less = f"; {code(f'{burst.setting}={burst.small_num}')} makes it small" if burst.setting else ""
    return f"{duration(burst.seconds * 1000)} of it{less}"
