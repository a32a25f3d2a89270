"""What observed limits (rehearsal, shadow mode) would have done, in words: for `config observed`, `status` and `top`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnstile.entities import entity_text
from turnstile.observed_quota_text import observed_quotas_line
from turnstile.quantities import count


def would_have(told: Mapping[str, Any]) -> str:
    """`would have refused 1,204 connections of 9 addresses`, of the `summary` of /v1/refusals?observed=true."""
    refused, waited = told["refused"], told["waited"]
    parts = [f"would have refused {_connections(refused)}"] if refused or not waited else []
    parts += [f"would have made {_connections(waited)} wait"] if waited else []
    addresses = told["addresses"]
    least = "at least " if told["more"] else ""
    whose = f" of {least}{count(addresses)} address{'' if addresses == 1 else 'es'}" if addresses else ""
    undecided = f"; {_connections(told['undecided'])} could not be decided" if told["undecided"] else ""
    return f"{', and '.join(parts)}{whose}{undecided}"


def observed_line(told: Mapping[str, Any]) -> str:
    """What is observed, and what it would have done, in one line: caps, client quotas, or both."""
    of_clients = quotas_of(told, ip=False)
    caps = [_caps_line(told)] if limits_connections(told) else []
    return "; ".join([*caps, *([observed_quotas_line(told["quotas"])] if of_clients else [])])


def limits_connections(told: Mapping[str, Any]) -> bool:
    """Whether a cap, or a creation rate, is observed."""
    return bool(told["set"] or told["brokers"] or quotas_of(told, ip=True))


def quotas_of(told: Mapping[str, Any], *, ip: bool) -> list[tuple[str, float]]:
    """The observed quotas of addresses, or those of clients: `ip=10.0.0.1 connection_creation_rate`, and the value."""
    rows = told["quotas"]["set"] if told["quotas"] else []
    mine = [row for row in rows if ("ip" in row["entity"]) is ip]
    return [(f"{entity_text(row['entity'])} {quota}", value) for row in mine for quota, value in row["values"].items()]


def _caps_line(told: Mapping[str, Any]) -> str:
    of_brokers = sum(map(len, told["brokers"].values()))
    named = [f"{name} = {_text(value)}" for name, value in told["set"].items()]
    named += [f"{name} = {value:.15g}" for name, value in quotas_of(told, ip=True)]
    named += [f"{of_brokers} of single brokers"] if of_brokers else []
    return f"{', '.join(named)} {would_have(told)}"


def observed_lines(told: Mapping[str, Any]) -> list[str]:
    """One line for all of it, then one for each value that is observed and each that would have refused something."""
    lines = [would_have(told)]
    named: list[tuple[str, Any, str]] = [(name, value, "") for name, value in told["set"].items()]
    named += [(name, f"{value:.15g}", "") for name, value in quotas_of(told, ip=True)]
    named += [(name, v, f" (broker {broker})") for broker, own in told["brokers"].items() for name, v in own.items()]
    lines += [f"  observed: {name} = {_text(value)}{where}" for name, value, where in named]
    for cap in told["caps"]:
        would = "would have waited" if cap["waits"] else "would be refused"
        lines += [f"  {cap['limit']} = {cap['value']:.15g}: {_connections(cap['count'])} {would}"]
    return lines


def _connections(number: int) -> str:
    return f"{count(number)} connection{'' if number == 1 else 's'}"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
