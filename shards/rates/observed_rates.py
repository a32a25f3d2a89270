"""Connection creation rates that are observed instead of enforced (shadow mode, dry run), across the shards of a broker.

Each rate has one home, as an enforced one has (rates.py). The shard that has admitted connections asks it, once per pass and
rate, with how many there were; nothing waits for the answer, and no listener stops. Where each connection asks one rate alone, the
home asks itself once per pass, too (`at_listener_later`): a call and a row for all that arrived.

other_rates_only  An observed rate is asked only if it differs from the rate in force.
windows_begin_empty  Windows begin empty when the first rate begins to be observed, when the last one ends, when their home starts
    again, and at a reset.
each_answer_is_journaled  A home notes each answer in order, so that the arithmetic can be done again (observed_windows.py).
lost_homes_leave_it_open  If a home is lost, or does not answer in time, its answer is UNAVAILABLE: neither within nor beyond.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby, islice
from typing import Final, NamedTuple, Protocol

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.observed_windows import ObservedWindows, RateAnswer
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.ownership import home_of

METHOD: Final = "observe_rates"
MOST_IN_A_CALL: Final = 2000
LISTENER, BACK, ADDRESS, USER = "listener", "back", "ip", "user"
"""The kinds of questions: an arrival at a listener, that it is taken back, an arrival from an address, a login of a user."""


class Ask(NamedTuple):
    """`name`: the listener, the address or the user."""

    what: str
    name: str


OnAnswer = Callable[[RateAnswer], None]
"""Called with the answer to one arrival."""
WITHIN: Final = RateAnswer(0)
UNAVAILABLE: Final = RateAnswer(-1, -1)


class AnswerRun(NamedTuple):
    """The same answer to `arrivals` that came one after the other."""

    own_ms: int
    broker_ms: int
    arrivals: int

    @property
    def answer(self) -> RateAnswer:
        """The answer to each of them."""
        return RateAnswer(self.own_ms, self.broker_ms)


class RateNotes(Protocol):
    """Hears of each answer of this home, and of windows that begin empty."""

    def answered(self, ask: Ask, run: AnswerRun, *, asker: int, at_ms: int) -> None: ...
    def began(self, *, at_ms: int) -> None: ...


class ObservedRates:
    """The observed rates of one shard. `call`: mesh.call; `touch()` has flush() called soon, at the end of a pass."""

    def __init__(
        self,
        me: int,
        shards: int,
        listeners: tuple[str, ...],
        image: ClusterImage,
        *,
        call: Callable[..., Deferred[object]],
        now_ms: Callable[[], int],
        touch: Callable[[], None],
        notes: RateNotes,
    ) -> None:
        self.is_on = False
        self._has_ip_rates = self._has_user_rates = False
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
        self._to_ask: dict[int, dict[Ask, list[OnAnswer]]] = {}  # by home
        self._listeners_home = home_of("rate:broker", shards)

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offers the windows at home here to the other shards."""
        serve(METHOD, self._serve)

    def follow(self) -> None:
        """The image has another version."""
        self._quotas.clear()
        self._has_ip_rates = self._image.observes_ip_rates
        self._has_user_rates = self._image.observes_user_rates
        is_on = self._image.observes_rates or self._has_user_rates
        if is_on is not self.is_on:
            self.is_on = is_on
            self.reset()

    def reset(self) -> None:
        """Every window begins empty (windows_begin_empty)."""
        samples, size_s = (self._image.get(f"quota.window.{name}") for name in ("num", "size.seconds"))
        self._windows = ObservedWindows(Window(samples, size_s * 1000))
        self._to_ask.pop(self._me, None)  # of arrivals before that
        self._notes.began(at_ms=self._now_ms())

    def at_listener(self, name: str) -> MaybeDeferred[RateAnswer]:
        """A connection was admitted at a listener."""
        return self._ask(self._listeners_home, Ask(LISTENER, name)) if self._observes(name) else WITHIN

    def at_listener_later(self, name: str, on_answer: OnAnswer) -> None:
        """As `at_listener`, but the answer comes from flush() on where this shard is the home, too; none if no rate is observed
        there."""
        if self._observes(name):
            self._ask_later(self._listeners_home, Ask(LISTENER, name), on_answer)

    def take_back(self, name: str) -> None:
        """One that was asked about by `at_listener` would have been refused by the rate of its address."""
        if self._observes(name):
            self._ask(self._listeners_home, Ask(BACK, name))

    def from_address(self, ip: str) -> MaybeDeferred[RateAnswer]:
        """A connection of an address was admitted."""
        if not self._has_ip_rates or self._image.observed_rate_of(f"ip:{ip}").rate is None:
            return WITHIN
        return self._ask(home_of(f"rate:ip:{ip}", self._shards), Ask(ADDRESS, ip))

    def of_user(self, user: str) -> MaybeDeferred[RateAnswer]:
        """A connection has logged in as a user."""
        if not self._has_user_rates or self._image.observed_rate_of(f"user:{user}").rate is None:
            return WITHIN
        return self._ask(home_of(f"rate:user:{user}", self._shards), Ask(USER, user))

    def _observes(self, listener: str) -> bool:
        quotas = self.quotas_of(listener)
        return quotas.own is not None or quotas.broker is not None

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
            home, asked = self._to_ask.popitem()
            rows = list(asked.items())
            if home == self._me:
                for ask, waiting in rows:
                    _answer(waiting, self._decide(ask, len(waiting), home))
                continue
            for start in range(0, len(rows), MOST_IN_A_CALL):
                some = rows[start : start + MOST_IN_A_CALL]
                answers = self._call(home, METHOD, [[*ask, len(waiting)] for ask, waiting in some])
                answers.add_callback(partial(self._answer_all, [waiting for _, waiting in some]))

    def _ask(self, home: int, ask: Ask) -> MaybeDeferred[RateAnswer]:
        if home == self._me:
            (run,) = self._decide(ask, 1, self._me)
            return run.answer
        answer: Deferred[RateAnswer] = Deferred()
        self._ask_later(home, ask, answer.resolve)
        return answer

    def _ask_later(self, home: int, ask: Ask, on_answer: OnAnswer) -> None:
        if not self._to_ask:
            self._touch()
        self._to_ask.setdefault(home, {}).setdefault(ask, []).append(on_answer)

    def _answer_all(self, asked: list[list[OnAnswer]], reply: Deferred[list[list[list[int]]]]) -> None:
        """The home has replied to these questions, or is lost."""
        try:
            answers = [[AnswerRun(*run) for run in runs] for runs in reply.result()]
        except (PeerLost, DeadlineExceeded):
            answers = [[AnswerRun(*UNAVAILABLE, len(waiting))] for waiting in asked]
        for waiting, runs in zip(asked, answers, strict=True):
            _answer(waiting, runs)

    def _serve(self, peer: int, asks: list[tuple[str, str, int]]) -> list[list[AnswerRun]]:
        return [self._decide(Ask(what, name), arrivals, peer) for what, name, arrivals in asks]

    def _decide(self, ask: Ask, arrivals: int, asker: int) -> list[AnswerRun]:
        now_ms = self._now_ms()
        if ask.what == BACK:
            self._windows.take_back(ask.name, self.quotas_of(ask.name), arrivals, now_ms=now_ms)
            runs = [AnswerRun(*WITHIN, arrivals)]
        else:
            each = groupby(self._arrive(ask, now_ms) for _ in range(arrivals))
            runs = [AnswerRun(*answer, sum(1 for _ in alike)) for answer, alike in each]
        for run in runs:
            self._notes.answered(ask, run, asker=asker, at_ms=now_ms)
        return runs

    def _arrive(self, ask: Ask, now_ms: int) -> RateAnswer:
        if ask.what == LISTENER:
            return self._windows.arrive(ask.name, self.quotas_of(ask.name), now_ms=now_ms)
        quota = self._image.observed_rate_of(f"{ask.what}:{ask.name}").rate
        arrive = self._windows.log_in if ask.what == USER else self._windows.arrive_from
        return RateAnswer(arrive(ask.name, quota, now_ms=now_ms))


def _answer(waiting: Iterable[OnAnswer], runs: Iterable[AnswerRun]) -> None:
    """Answers the arrivals that wait by `runs`, in order."""
    each = iter(waiting)
    for run in runs:
        answer = run.answer
        for on_answer in islice(each, run.arrivals):
            on_answer(answer)
