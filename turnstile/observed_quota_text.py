"""What observed client quotas (rehearsal, shadow mode) would have done, in words: for `quota observed`, `status` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnstile.entities import entity_text
from turnstile.quantities import count


def would_have_throttled(told: Mapping[str, Any]) -> str:
    """`would have throttled 1,204 requests of 3 clients, for 84.0 s`, of the answer of /v1/quotas/observed."""
    clients = len(told["clients"])
    least = "at least " if told["more"] else ""
    whose = f" of {least}{count(clients)} client{'' if clients == 1 else 's'}" if clients else ""
    refused = sum(row["refused"] for row in told["quotas"])
    also = f", and refused {count(refused)} mutation{'' if refused == 1 else 's'}" if refused else ""
    lasting = f", for {told['throttle_ms'] / 1000:,.1f} s" if told["requests"] else ""
    return f"would have throttled {_requests(told['requests'])}{whose}{lasting}{also}"


def observed_quotas_line(told: Mapping[str, Any]) -> str:
    """What is observed, and what it would have done, in one line."""
    named = sum(len(row["values"]) for row in told["set"] if "ip" not in row["entity"])
    return f"{count(named)} client quota{'' if named == 1 else 's'} {would_have_throttled(told)}"


def observed_quota_lines(told: Mapping[str, Any]) -> list[str]:
    """One line for all of them, then one for each quota that is observed and each that would have throttled a request."""
    lines = [would_have_throttled(told)]
    for row in told["set"]:
        lines += [
            f"  observed: {entity_text(row['entity'])} {quota}={value:.15g}" for quota, value in row["values"].items()
        ]
    for row in told["quotas"]:
        refused = f", {count(row['refused'])} mutations refused" if row["refused"] else ""
        lasting = f"for {row['throttle_ms'] / 1000:,.1f} s"
        lines += [f"  {row['quota']}={row['value']:.15g}: {_requests(row['requests'])} throttled, {lasting}{refused}"]
    return lines


def _requests(number: int) -> str:
    return f"{count(number)} request{'' if number == 1 else 's'}"
