"""The effects of observed client quotas (rehearsal, shadow mode), in words: for `quota observed`, `status` and `top`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.entities import entity_text
from turnstile.quantities import count, plural

if TYPE_CHECKING:
    from broker.admin.cluster_answers import ObservedQuotasAnswer


def would_have_throttled(observed: ObservedQuotasAnswer) -> str:
    """`would have throttled 1,204 requests of 3 clients, for 84.0 s`, of the answer of /v1/quotas/observed."""
    clients = len(observed["clients"])
    least = "at least " if observed["more"] else ""
    whose = f" of {least}{count(clients)} {plural('client', clients)}" if clients else ""
    refused = sum(row["refused"] for row in observed["quotas"])
    also = f", and refused {count(refused)} {plural('mutation', refused)}" if refused else ""
    lasting = f", for {observed['throttle_ms'] / 1000:,.1f} s" if observed["requests"] else ""
    return f"would have throttled {_requests(observed['requests'])}{whose}{lasting}{also}"


def observed_quotas_line(observed: ObservedQuotasAnswer) -> str:
    """The observed quotas, and their effects, in one line."""
    named = sum(len(row["values"]) for row in observed["set"] if "ip" not in row["entity"])
    return f"{count(named)} {plural('client quota', named)} {would_have_throttled(observed)}"


def observed_quota_lines(observed: ObservedQuotasAnswer) -> list[str]:
    """One line for all of them, then one for each quota that is observed and each that would have throttled a request."""
    lines = [would_have_throttled(observed)]
    for row in observed["set"]:
        lines += [
            f"  observed: {entity_text(row['entity'])} {name}={value:.15g}" for name, value in row["values"].items()
        ]
    for quota in observed["quotas"]:
        refused = (
            f", {count(quota['refused'])} {plural('mutation', quota['refused'])} refused" if quota["refused"] else ""
        )
        lasting = f"for {quota['throttle_ms'] / 1000:,.1f} s"
        lines += [
            f"  {quota['quota']}={quota['value']:.15g}: {_requests(quota['requests'])} throttled, {lasting}{refused}"
        ]
    return lines


def _requests(number: int) -> str:
    return f"{count(number)} {plural('request', number)}"
