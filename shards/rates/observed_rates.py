"""Connection creation rates that are observed instead of enforced (shadow mode, dry run), across the shards of a broker.

Each rate has one home, as an enforced one has (rates.py). The shard that has admitted a connection asks it, once per pass and
home; nothing waits for the answer, and no listener stops.

other_rates_only  Only a rate that would be another one than that in force is asked.
windows_begin_empty  Windows begin empty when a first rate is observed, when no rate is any more, with their home, and at a reset.
each_answer_is_journaled  A home notes each answer in order, so that the arithmetic can be done again (observed_windows.py).
lost_homes_leave_it_open  What a home that is lost, or does not answer in time, would have said is UNAVAILABLE: neither within nor
    beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.observed_windows import ObservedWindows
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.ownership import home_of

METHOD: Final = "observe_rates"
MOST_IN_A_CALL: Final = 2000
LISTENER, BACK, ADDRESS = "listener", "back", "ip"
"""What is asked: an arrival at a listener, that it is taken back, an arrival from an address."""


class Ask(NamedTuple):
    """`name`: the listener or the address."""

    what: str
    name: str


class RateAnswer(NamedTuple):
    """How long an arrival would have been delayed: by the rate of the listener or the address, and by the broker's."""

    own_ms: int
    broker_ms: int = 0


WITHIN: Final = RateAnswer(0)
UNAVAILABLE: Final = RateAnswer(-1, -1)


class RateNotes(Protocol):
    """Hears of each answer of this home, and of windows that begin empty."""

    def answered(self, ask: Ask, answer: RateAnswer, *, asker: int, at_ms: int) -> None: ...
    def began(self, *, at_ms: int) -> None: ...


class _Waiting(NamedTuple):
    ask: Ask
    answer: Deferred[RateAnswer]


class ObservedRates:
    """The observed rates of one shard. `call`: mesh.call; `touch()` has flush() called soon, at the end of a pass."""

    def __init__(
        self,
        me: int,
        shards: int,
        listeners: tuple[str, ...],
        image: ClusterImage,
        *,
        call: Callable[..., Deferred[Any]],
        now_ms: Callable[[], int],
        touch: Callable[[], None],
        notes: RateNotes,
    ) -> None:
        self.is_on = False
        self._has_ip_rates = False
        self._quotas: dict[str, RateQuotas] = {}  # of the listeners that were asked for in this version
        self._me = me
        self._shards = shards
        self._has_others = len(listeners) > 1
        self._image = image
        self._call = call
        self._now_ms = now_ms
        self._touch = touch
        self._notes = notes
        self._windows = ObservedWindows(Window())
        self._to_ask: dict[int, list[_Waiting]] = {}
        self._listeners_home = home_of("rate:broker", shards)

    def serve_on(self, serve: Callable[[str, Callable[..., Any]], None]) -> None:
        """Offers the windows at home here to the other shards."""
        serve(METHOD, self._serve)

    def follow(self) -> None:
        """The image has another version."""
        self._quotas.clear()
        self._has_ip_rates = self._image.observes_ip_rates
        is_on = self._image.observes_rates
        if is_on is not self.is_on:
            self.is_on = is_on
            self.reset()

    def reset(self) -> None:
        """Every window begins empty (windows_begin_empty)."""
        samples, size_s = (self._image.get(f"quota.window.{name}") for name in ("num", "size.seconds"))
        self._windows = ObservedWindows(Window(samples, size_s * 1000))
        self._notes.began(at_ms=self._now_ms())

    def at_listener(self, name: str) -> MaybeDeferred[RateAnswer]:
        """A connection was admitted at a listener."""
        quotas = self.quotas_of(name)
        if quotas.own is None and quotas.broker is None:
            return WITHIN
        return self._ask(self._listeners_home, Ask(LISTENER, name))

    def take_back(self, name: str) -> None:
        """One that was asked about by `at_listener` would have been refused by the rate of its address."""
        quotas = self.quotas_of(name)
        if quotas.own is not None or quotas.broker is not None:
            self._ask(self._listeners_home, Ask(BACK, name))

    def from_address(self, ip: str) -> MaybeDeferred[RateAnswer]:
        """A connection of an address was admitted."""
        if not self._has_ip_rates or self._image.observed_rate_of(f"ip:{ip}").rate is None:
            return WITHIN
        return self._ask(home_of(f"rate:ip:{ip}", self._shards), Ask(ADDRESS, ip))

    def quotas_of(self, listener: str) -> RateQuotas:
        """The observed rates of a listener and of its broker; None for one that would be the same."""
        found = self._quotas.get(listener)
        if found is not None:
            return found
        exempt = self._has_others and listener == self._image.inter_broker_listener
        of_broker = None if exempt else self._image.observed_rate_of("broker").rate
        own = self._image.observed_rate_of(f"listener:{listener}").rate
        found = self._quotas[listener] = RateQuotas(own, of_broker, exempt)
        return found

    def flush(self) -> None:
        """Ends a pass: asks the homes."""
        while self._to_ask:
            home, waiting = self._to_ask.popitem()
            for start in range(0, len(waiting), MOST_IN_A_CALL):
                some = waiting[start : start + MOST_IN_A_CALL]
                told = self._call(home, METHOD, [each.ask for each in some])
                told.add_callback(partial(self._came, some))

    def _ask(self, home: int, ask: Ask) -> MaybeDeferred[RateAnswer]:
        if home == self._me:
            return self._decide(ask, self._me)
        answer: Deferred[RateAnswer] = Deferred()
        if not self._to_ask:
            self._touch()
        self._to_ask.setdefault(home, []).append(_Waiting(ask, answer))
        return answer

    def _came(self, waiting: list[_Waiting], told: Deferred[list[list[int]]]) -> None:
        try:
            answers = [RateAnswer(*each) for each in told.result()]
        except (PeerLost, DeadlineExceeded):
            answers = [UNAVAILABLE] * len(waiting)
        for each, answer in zip(waiting, answers, strict=True):
            each.answer.resolve(answer)

    def _serve(self, peer: int, asks: list[list[str]]) -> list[RateAnswer]:
        return [self._decide(Ask(*each), peer) for each in asks]

    def _decide(self, ask: Ask, asker: int) -> RateAnswer:
        now_ms = self._now_ms()
        if ask.what == ADDRESS:
            quota = self._image.observed_rate_of(f"ip:{ask.name}").rate
            answer = RateAnswer(self._windows.arrive_from(ask.name, quota, now_ms=now_ms))
        elif ask.what == LISTENER:
            answer = RateAnswer(*self._windows.arrive(ask.name, self.quotas_of(ask.name), now_ms=now_ms))
        else:
            self._windows.take_back(ask.name, self.quotas_of(ask.name), now_ms=now_ms)
            answer = WITHIN
        self._notes.answered(ask, answer, asker=asker, at_ms=now_ms)
        return answer
