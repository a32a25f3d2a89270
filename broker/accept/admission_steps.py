"""The steps of a connection from accept(2) to its decision, as one table; no I/O. Model: h11's `_state.py`.

    step           asks for, or waits for                                             Kafka's order: docs/semantics.md, 2
    CORE_RATE      a token of this shard's bucket (kafka_connection_rate_limit), at most 100 ms; its listener stops
    CLUSTER_RATE   a unit of the creation rate of all brokers
    LISTENER_RATE  a unit of the broker's and the listener's creation rate; the larger delay, while the listener stops
    SLOT           a token of the listener's and the broker's pool; its listener stops while a rule lets it wait (KIP-402)
    IP_RATE        a unit of the creation rate of the address
    IP_TOKENS      a token of the pool of the address, and the slot again if a change revoked it
    TOKENS         the tokens of SLOT and IP_TOKENS in one request: nothing has to be asked in between
    HELD           the delay of an address over its rate; the socket is not read
    IP_RATE_AGAIN  the same unit after that delay, with turnstile.ip.rate.recheck
    LATE_TOKENS    the tokens of TOKENS, but the listener goes on and a full pool refuses at once, also where others wait
    CLUSTER_TOKENS a token of the cluster's pool; a change may revoke its other tokens meanwhile. Left out while that has no cap
    ADMITTED       nothing: the connection is open
    REFUSED        nothing: the connection is closed

decisions_are_final  ADMITTED and REFUSED have no way out; from every other step REFUSED can be reached in one event.
held_without_tokens  No step before SLOT holds tokens, nor does HELD: an address over its rate gives them back before it is held.
changes_alone_lead_back  No way leads in a circle but by REVOKED and REVOKED_LATE, once for each change of the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Step(StrEnum):
    """The step that a pending connection is in."""

    ARRIVED = "arrived"
    CORE_RATE = "core rate"
    CLUSTER_RATE = "cluster rate"
    LISTENER_RATE = "listener rate"
    SLOT = "slot"
    IP_RATE = "ip rate"
    IP_TOKENS = "ip tokens"
    TOKENS = "tokens"
    HELD = "held"
    IP_RATE_AGAIN = "ip rate again"
    LATE_TOKENS = "late tokens"
    CLUSTER_TOKENS = "cluster tokens"
    ADMITTED = "admitted"
    REFUSED = "refused"


class Event(StrEnum):
    """The event that ends a step."""

    PASSED = "passed"
    """The step was granted its request, or there was nothing to ask for."""
    UNRATED = "unrated"
    """No rate applies that would have to be asked before the next token."""
    OVER = "over"
    """The address violates its rate."""
    RECHECK = "recheck"
    """The delay of a held connection is over, and its address may be within its rate again."""
    REVOKED = "revoked"
    """A change has revoked tokens that it held while it waited, and it has to wait for them again."""
    REVOKED_LATE = "revoked late"
    """As REVOKED, for a connection that was held for its rate."""
    REFUSE = "refuse"
    """A limit, a home that does not answer, or the end of the shard."""


TRANSITIONS: Final[Mapping[Step, Mapping[Event, Step]]] = {
    Step.ARRIVED: {Event.PASSED: Step.CORE_RATE, Event.UNRATED: Step.TOKENS, Event.REFUSE: Step.REFUSED},
    Step.CORE_RATE: {Event.PASSED: Step.CLUSTER_RATE, Event.REFUSE: Step.REFUSED},
    Step.CLUSTER_RATE: {Event.PASSED: Step.LISTENER_RATE, Event.REFUSE: Step.REFUSED},
    Step.LISTENER_RATE: {Event.PASSED: Step.SLOT, Event.REFUSE: Step.REFUSED},
    Step.SLOT: {Event.PASSED: Step.IP_RATE, Event.UNRATED: Step.TOKENS, Event.REFUSE: Step.REFUSED},
    Step.IP_RATE: {Event.PASSED: Step.IP_TOKENS, Event.OVER: Step.HELD, Event.REFUSE: Step.REFUSED},
    Step.IP_TOKENS: {Event.PASSED: Step.CLUSTER_TOKENS, Event.REFUSE: Step.REFUSED},
    Step.TOKENS: {Event.PASSED: Step.CLUSTER_TOKENS, Event.REFUSE: Step.REFUSED},
    Step.HELD: {Event.RECHECK: Step.IP_RATE_AGAIN, Event.REFUSE: Step.REFUSED},
    Step.IP_RATE_AGAIN: {Event.PASSED: Step.LATE_TOKENS, Event.OVER: Step.REFUSED, Event.REFUSE: Step.REFUSED},
    Step.LATE_TOKENS: {Event.PASSED: Step.CLUSTER_TOKENS, Event.REFUSE: Step.REFUSED},
    Step.CLUSTER_TOKENS: {
        Event.PASSED: Step.ADMITTED,
        Event.REVOKED: Step.TOKENS,
        Event.REVOKED_LATE: Step.LATE_TOKENS,
        Event.REFUSE: Step.REFUSED,
    },
    Step.ADMITTED: {},
    Step.REFUSED: {},
}

WAITS_FOR_TOKENS: Final = frozenset({Step.SLOT, Step.IP_TOKENS, Step.TOKENS, Step.LATE_TOKENS, Step.CLUSTER_TOKENS})
"""A connection that is in one of these steps at the end of a pass waits for a pool."""
ENDS: Final = frozenset(step for step, ways in TRANSITIONS.items() if not ways)
UNCAPPED: Final[Mapping[Step, Mapping[Event, Step]]] = {
    step: {
        event: TRANSITIONS[target][Event.PASSED] if target is Step.CLUSTER_TOKENS else target
        for event, target in ways.items()
    }
    for step, ways in TRANSITIONS.items()
}
"""TRANSITIONS while the cluster has no cap: no connection comes to CLUSTER_TOKENS; one that is in it goes on."""
