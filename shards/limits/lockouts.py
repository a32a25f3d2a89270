"""Limits that let no connection in: allowed, since tests want to be refused, but never without a word.

A cap of 0 for every address or user, of the cluster, of the broker, of a listener or of all with TLS; and overrides that
are 0 for all they list, beside a general 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from shards.limits.caps import CLUSTER
from shards.limits.connection_limits import ConnectionLimits
from shards.settings.broker_config import CAP, of_listener

_OVERRIDES = "overrides"
_UNLISTED = {"IPv4": "192.0.2.1", "IPv6": "2001:db8::1"}
"""An address for documents of each family (RFC 5737, RFC 3849): no client has it, so only networks and the general cap rule it."""


def lockouts(limits: ConnectionLimits, listeners: Iterable[str] = (), *, at: str = "") -> list[str]:
    """One sentence for each limit of a broker that lets no connection in, with the command that ends it. `at`: the option by
    which the command finds the cluster, with a space before it."""
    broker, cluster = limits.rule_of("broker"), limits.rule_of(CLUSTER)
    if cluster.cap == 0:
        return [_sentence(cluster.name, "refuses every connection", at)]
    if broker.cap == 0 and not broker.wait:
        return [_sentence(broker.name, "refuses every connection", at)]
    notes = []
    for listener in listeners:
        name, value = of_listener(limits.given, listener, CAP)
        if value == 0:
            notes.append(_sentence(name, f"lets no connection of listener {listener} in: each waits for a slot", at))
    shut = [family for family, address in _UNLISTED.items() if not _admits(limits, family, address)]
    rules = {family: limits.rule_of(f"ip:{_UNLISTED[family]}").name for family in shut}
    if len(shut) == len(_UNLISTED):
        notes.append(_sentence(next(iter(rules.values())), "refuses every connection", at))
    else:  # a general 0 beside overrides is how to let the listed addresses in alone
        by_network = {family: name for family, name in rules.items() if name.endswith(_OVERRIDES)}
        notes += [_sentence(name, f"refuses every connection over {family}", at) for family, name in by_network.items()]
    if (ssl := limits.rule_of("ssl")).cap == 0:
        notes.append(_sentence(ssl.name, "refuses every connection over TLS", at))
    users = limits.user_default
    if users.cap == 0 and not limits.admits_a_user:
        notes.append(_sentence(users.name, "refuses every login", at))
    return notes


def _admits(limits: ConnectionLimits, family: str, unlisted: str) -> bool:
    """True if some address of the family may have a connection: one that no override names, or one that an override does."""
    named = (entry.partition("/")[0] for entry in limits.listed() if (":" in entry) == (family == "IPv6"))
    return any(limits.rule_of(f"ip:{address}").cap != 0 for address in (unlisted, *named))


def _sentence(name: str, does: str, at: str) -> str:
    other = "''" if name.endswith(_OVERRIDES) else "100"
    return f"{name}{'' if other != '100' else '=0'} {does}; to let them in: turnstile config set {name} {other}{at}"
