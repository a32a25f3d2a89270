"""The effects of observed limits (rehearsal, shadow mode), in words: for `config observed`, `status` and `top`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstile.entities import entity_text
from turnstile.observed_quota_text import observed_quotas_line
from turnstile.quantities import count, plural

if TYPE_CHECKING:
    from broker.admin.answers import SettingValue
    from broker.admin.cluster_answers import ObservedAnswer


def would_have(observed: ObservedAnswer) -> str:
    """`would have refused 1,204 connections of 9 addresses`, of the `summary` of /v1/refusals?observed=true."""
    refused, waited = observed["refused"], observed["waited"]
    addresses = observed["addresses"]
    least = "at least " if observed["more"] else ""
    whose = f" of {least}{count(addresses)} {plural('address', addresses)}" if addresses else ""
    undecided = f"; {_connections(observed['undecided'])} could not be decided" if observed["undecided"] else ""
    if not waited:
        return f"would have refused {_connections(refused)}{whose}{undecided}"
    if not refused:
        return f"would have made {_connections(waited)}{whose} wait{undecided}"
    both = f"would have refused {_connections(refused)}, and would have made {count(waited)} wait"
    return f"{both}{',' if whose else ''}{whose}{undecided}"


def observed_line(observed: ObservedAnswer) -> str:
    """The observed limits, and their effects, in one line: caps, client quotas, or both."""
    quotas = observed["quotas"]
    caps = [_caps_line(observed)] if limits_connections(observed) else []
    return "; ".join([*caps, *([observed_quotas_line(quotas)] if quotas and quotas_of(observed, ip=False) else [])])


def limits_connections(observed: ObservedAnswer) -> bool:
    """True if a cap, or a creation rate, is observed."""
    return bool(observed["set"] or observed["brokers"] or quotas_of(observed, ip=True))


def quotas_of(observed: ObservedAnswer, *, ip: bool) -> list[tuple[str, float]]:
    """The observed quotas of addresses, or those of clients: `ip=10.0.0.1 connection_creation_rate`, and the value."""
    rows = observed["quotas"]["set"] if observed["quotas"] else []
    chosen = [row for row in rows if ("ip" in row["entity"]) is ip]
    return [
        (f"{entity_text(row['entity'])} {quota}", value) for row in chosen for quota, value in row["values"].items()
    ]


def _caps_line(observed: ObservedAnswer) -> str:
    of_brokers = sum(map(len, observed["brokers"].values()))
    named = [f"{name} = {_text(value)}" for name, value in observed["set"].items()]
    named += [f"{name} = {value:.15g}" for name, value in quotas_of(observed, ip=True)]
    named += [f"{of_brokers} of single brokers"] if of_brokers else []
    return f"{', '.join(named)} {would_have(observed)}"


def observed_lines(observed: ObservedAnswer) -> list[str]:
    """One line for all of it, then one for each value that is observed and each that would have refused something."""
    lines = [would_have(observed)]
    named: list[tuple[str, SettingValue, str]] = [(name, value, "") for name, value in observed["set"].items()]
    named += [(name, f"{value:.15g}", "") for name, value in quotas_of(observed, ip=True)]
    named += [
        (name, v, f" (broker {broker})") for broker, own in observed["brokers"].items() for name, v in own.items()
    ]
    lines += [f"  observed: {name} = {_text(value)}{where}" for name, value, where in named]
    for cap in observed["caps"]:
        would = "would have waited" if cap["waits"] else "would be refused"
        lines += [f"  {cap['limit']} = {cap['value']:.15g}: {_connections(cap['count'])} {would}"]
    return lines


def _connections(number: int) -> str:
    return f"{count(number)} {plural('connection', number)}"


def _text(value: SettingValue) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
