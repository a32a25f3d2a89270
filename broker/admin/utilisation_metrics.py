"""The use of each limit, on `/metrics`.

bounded_labels  No label has an address or a client: each broker and listener has a sample; of addresses and clients there are the
    fullest of each kind, and how many are close.
"""

from __future__ import annotations

from typing import Final

from broker.admin.text_format import Kind, Page
from broker.admin.uses import is_of_many
from broker.admin.utilisation import Utilised
from shards.limits.utilisation import FULL_FROM, HIGH_FROM, NEAR_FROM, utilisation

_SHARE: Final = "turnstile_limit_utilisation_ratio"
_SHARE_HELP: Final = (
    "Used share of a limit of a broker, a listener or the whole cluster; of addresses, users and clients, the fullest."
)
_CLOSE: Final = "turnstile_limits_close"
_CLOSE_HELP: Final = (
    "Limits of which at least this share is used; of the cluster, brokers, listeners, addresses, users or clients."
)
_AT_LEAST: Final = (("high", HIGH_FROM), ("near", NEAR_FROM), ("full", FULL_FROM))


def add_utilisation(page: Page, known: Utilised) -> None:
    """`known`: the fullest first."""
    shares: dict[tuple[str, str, str], float] = {}
    for row in known.limits:
        of = row["of"].partition(":")[0] if is_of_many(row["of"]) else row["of"]
        shares.setdefault((_label(row["broker"]), row["what"], of), utilisation(row["used"], row["limit"]))
    for (broker, what, of), share in sorted(shares.items()):
        page.add(Kind.GAUGE, _SHARE, _SHARE_HELP, {"broker": broker, "limit": what, "of": of}, share)
    for close in known.close:
        labels = {"broker": _label(close["broker"]), "limit": close["what"], "of": close["of"]}
        counts = {"high": close["high"], "near": close["near"], "full": close["full"]}
        for name, at_least in _AT_LEAST:
            page.add(Kind.GAUGE, _CLOSE, _CLOSE_HELP, {**labels, "at_least": f"{at_least:g}"}, counts[name])


def _label(broker: int | None) -> str:
    return "all" if broker is None else str(broker)
