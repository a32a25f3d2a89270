"""A quota plan in words: for a terminal, and what its page says as well."""

from datetime import UTC, datetime

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from turnstile.pipeline.plan.plan_text import columns, counted
from turnstile.pipeline.quota_plan.quota_plan import Judged, QuotaPlan, number, value
from turnstile.pipeline.quota_plan.what_if import Throttled
from turnstile.quantities import duration

TITLES = {
    "turnstile": "Turnstile",
    "kafka": "Kafka",
    "redpanda": "Redpanda",
    "rehearsal": "Turnstile, rehearsed first: observed, no client is throttled",
}
UNITS = {PRODUCE: "bytes/s", FETCH: "bytes/s", REQUEST: "% of a thread", MUTATION: "partitions/s"}
SAYS = {
    "simple": "one default quota, above all clients",
    "tight": "a lower default, and overrides for those few that need more",
}
NAMED = 5


def lines(plan: QuotaPlan) -> list[str]:
    """The lines for a terminal. Each has to go through `printable`, as names of clients are in them."""
    parts = [facts(plan), *(f"  {count:>9,}  {reason}" for reason, count in plan.usage.put_aside.most_common())]
    table = [HEADINGS, *(row(one, kind) for one in plan.candidates for kind in kinds_of(one))]
    parts += ["", *columns(table).split("\n")]
    hit = [one for one in plan.candidates if one.outcome.clients]
    if hit:
        parts += ["", "Clients that would have been throttled:"]
    for one in hit:
        parts += [f"  {one.name}", *(f"    {said(each)}" for each in one.outcome.clients[:NAMED]), *_more(one)]
    parts += [
        "",
        f"Recommended, with {plan.headroom:.0%} headroom above what this log shows:",
        "",
        *columns(advised(plan)).split("\n"),
    ]
    parts += [f"{each.name} would have throttled {effect(each.judged)}" for each in plan.recommended]
    for variant in plan.recommended:
        for vocabulary, commands in variant.commands.items():
            parts += ["", f"# {variant.name}, {TITLES[vocabulary]}", *commands]
    return [*parts, "", *plan.notes]


def _more(one: Judged) -> list[str]:
    rest = len(one.outcome.clients) - NAMED
    return [f"    and {rest:,} more"] if rest > 0 else []


def facts(plan: QuotaPlan) -> str:
    """The contents of the log."""
    usage = plan.usage
    first, last = usage.span
    users, clients, brokers = (len(usage.names(name)) for name in ("user", "client_id", "broker"))
    return (
        f"{len(usage.uses):,} charges of {counted(users, 'user')} and {counted(clients, 'client id')} on "
        f"{counted(brokers, 'broker')}, {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC; "
        f"{counted(sum(usage.put_aside.values()), 'line')} put aside"
    )


HEADINGS = ["quotas", "charges", "throttled", "share", "clients", "longest", "in all", "worst minute"]


def kinds_of(one: Judged) -> list[str]:
    """The kinds that a candidate limits and the log has."""
    return [kind for kind in UNITS if one.outcome.charges[kind]]


def row(one: Judged, kind: str) -> list[str]:
    """The effect of a candidate on a kind."""
    clients, charges = one.outcome.of(kind), one.outcome.charges[kind]
    throttles = sum(each.throttles for each in clients)
    minutes = one.outcome.minutes.get(kind, {})
    worst = max(minutes.items(), key=lambda each: (each[1], -each[0]), default=None)
    only = len(kinds_of(one)) == 1
    return [
        one.name if only else f"{one.name} ({kind})",
        f"{charges:,}",
        f"{throttles:,}",
        f"{throttles / charges:.4%}",
        f"{len(clients):,}",
        duration(max(each.longest_ms for each in clients)) if clients else "-",
        duration(sum(each.throttle_ms for each in clients)) if clients else "-",
        f"{duration(worst[1])} at {minute(worst[0])}" if worst else "-",
    ]


def said(each: Throttled) -> str:
    """A client that would have been throttled: how often, for how long, and when most."""
    refused = f", {each.refusals:,} of them refused" if each.refusals else ""
    return (
        f"{who(each)}: {each.throttles:,} of {each.charges:,} charges by {each.kind}{refused}, "
        f"{duration(each.throttle_ms)} in all, {duration(each.longest_ms)} at most, "
        f"longest in the minute of {minute(each.worst_minute_ms)}"
    )


def who(each: Throttled) -> str:
    """A client by its names."""
    names = [f"{kind}={name}" for kind, name in (("user", each.user), ("client-id", each.client_id)) if name]
    return " ".join(names) or "a client without names"


def minute(epoch_ms: int) -> str:
    """An instant to the minute, UTC."""
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def advised(plan: QuotaPlan) -> list[list[str]]:
    """The variants as columns, each kind a row."""
    rows = [["", *(each.name for each in plan.recommended)]]
    for place, one in enumerate(plan.recommended[0].advice):
        advice = [each.advice[place] for each in plan.recommended]
        rows.append([f"{one.kind} of each {plan.by}, {UNITS[one.kind]}", *(_shown(each.default) for each in advice)])
        if any(each.overrides for each in advice):
            rows.append(["  overrides", *(f"{len(each.overrides):,}" if each.overrides else "-" for each in advice)])
        rows.append(["  without headroom", *(_shown(each.observed) for each in advice)])
    return rows


def _shown(each: float) -> str:
    return f"{int(each):,}" if each == int(each) else number(each)


def effect(one: Judged) -> str:
    """The effect of quotas, in a sentence."""
    clients = {(each.user, each.client_id) for each in one.outcome.clients}
    if not clients:
        return "no client"
    throttles = sum(each.throttles for each in one.outcome.clients)
    total = sum(each.throttle_ms for each in one.outcome.clients)
    return (
        f"{counted(len(clients), 'client')}, {throttles:,} of {one.outcome.charges.total():,} charges, {duration(total)} in all: "
        + "; ".join(who(each) for each in one.outcome.clients[:NAMED])
    )


def peak_of(kind: str, level: int) -> str:
    """A level as text."""
    return _shown(value(kind, level))
