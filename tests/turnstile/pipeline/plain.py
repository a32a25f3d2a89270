"""The plain sequential replay that a plan must equal: one loop over the log, through `limits/`, nothing clever."""

from shards.limits.replay_gate import IncomingConnection, ReplayGate
from turnstile.pipeline.plan.candidates import Candidate
from turnstile.pipeline.plan.what_if import NEVER

Row = tuple[str, int, int, str]
"""Entity (an address, of candidates by user a user), opened_us, closed_us, listener."""


def replay(log: list[Row], candidate: Candidate) -> dict[int, str]:
    """Index -> "refused" or "delayed", for connections that weren't admitted at once. `log` in any order."""
    if candidate.broker_rate is None:
        return _counted(log, candidate)
    return _gated(log, candidate)


def _counted(log: list[Row], candidate: Candidate) -> dict[int, str]:
    """Counts and rates kept by hand."""
    from shards.limits.rate import Rate

    limits = candidate.connection_limits()
    open_now: list[tuple[int, str]] = []
    rates: dict[str, Rate] = {}
    answers = {}
    for index in sorted(range(len(log)), key=lambda each: (log[each][1], each)):
        ip, opened, closed, _ = log[index]
        open_now = [(until, other) for until, other in open_now if until > opened]
        cap = limits.rule_of(f"{candidate.by.name}:{ip}").cap
        if candidate.broker_cap is not None and len(open_now) >= candidate.broker_cap:
            answers[index] = "refused"
            continue
        if candidate.rate is not None:
            rate = rates.setdefault(ip, Rate())
            now_ms = opened // 1000
            if rate.charge(1, candidate.rate, now_ms=now_ms, max_ms=1000):
                rate.record(-1, now_ms=now_ms)
                answers[index] = "refused"
                continue
        if cap is not None and sum(other == ip for _, other in open_now) >= cap:
            answers[index] = "refused"
            continue
        open_now.append((closed, ip))
    return answers


def _gated(log: list[Row], candidate: Candidate) -> dict[int, str]:
    """Every open and close as an event of the reference gate, in order of time."""
    names = sorted({row[3] for row in log})
    gate = ReplayGate(candidate.connection_limits(), names)
    if candidate.rate is not None:
        gate.ip_quotas.update(None, candidate.rate)
    start = min(row[1] for row in log) // 1000
    opens = [(row[1], 1, index) for index, row in enumerate(log)]
    closes = [(row[2], 0 if row[2] > row[1] else 1, index + 0.5) for index, row in enumerate(log) if row[2] < NEVER]
    connections = {}
    for at_us, _, place in sorted(opens + closes):
        now_ms = at_us // 1000 - start
        gate.advance(now_ms=now_ms)
        index = int(place)
        if place == index:
            connections[index] = (now_ms, IncomingConnection(gate.acceptors[log[index][3]], log[index][0]))
            gate.connect(connections[index][1], now_ms=now_ms)
        else:
            gate.close(connections[index][1], now_ms=now_ms)
    gate.finish()
    answers = {}
    for index, (now_ms, connection) in connections.items():
        if connection.outcome == "refused":
            answers[index] = "refused"
        elif connection.outcome != "admitted" or connection.at_ms > now_ms:
            answers[index] = "delayed"
    return answers
