"""Connection creation rates that are observed instead of enforced (shadow mode, dry run), across the shards of a broker.

Each rate has one home, as an enforced one has (rates.py). Nothing waits for an answer and no listener stops, so the shard that has
admitted connections gathers its questions: it asks each home, itself too, at the end of a pass, and what comes up within the next
GATHER_MS at the end of the first pass after that, or after LATEST_MS if there is none. While there is an observed world
(broker/accept/rehearsal.py) it asks after every pass, as the answers decide when connections come into it.

other_rates_only  An observed rate is asked only if it differs from the rate in force.
windows_begin_empty  Windows begin empty when the first rate begins to be observed, when the last one ends, when their home starts
    again, and at a reset.
each_answer_is_journaled  A home notes each answer in order, so that the arithmetic can be done again (observed_windows.py).
lost_homes_leave_it_open  If a home is lost, or does not answer in time, its answer is UNAVAILABLE: neither within nor beyond.
order_of_questions  The questions of one kind for one home are asked and answered in the order in which they came up.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol, cast

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.observed_windows import ADDRESS, BACK, LISTENER, USER, WITHIN, ObservedWindows, RateAnswer
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.loop.deferred import Deferred
from shards.ownership import home_of

METHOD: Final = "observe_rates"
MOST_IN_A_CALL: Final = 500
GATHER_MS: Final = 50
LATEST_MS: Final = 100
"""A timer costs more than ten questions, and where many connections arrive a pass is never far: so it is for the others."""
_MOST_KNOWN = 100_000

Placed = tuple[int, int, int]
"""The place of a question among those asked together, and its answer: RateAnswer's two delays."""
Beyond = Mapping[int, RateAnswer]
"""The answers to some questions, by their places, but for those that were WITHIN."""
OnAnswers = Callable[[Sequence[Any], Beyond], None]
"""Called with what some questions were asked for, in their order. It must not raise."""
UNAVAILABLE: Final = RateAnswer(-1, -1)


class RateNotes(Protocol):
    """Hears of each answer of this home, and of windows that begin empty."""

    def within(self, what: str, names: Sequence[str], *, asker: int, at_ms: int) -> None:
        """Arrivals from addresses, or logins of users, that were within their rates."""

    def answered(self, what: str, name: str, answer: RateAnswer, arrivals: int, *, asker: int, at_ms: int) -> None:
        """The same answer to `arrivals` that came one after the other."""

    def began(self, *, at_ms: int) -> None: ...


class _Questions:
    """The questions of one kind for one home: `names` of listeners, addresses or users, and what each is asked for."""

    __slots__ = ("about", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.about: list[object] = []

    def take(self) -> "_Questions":
        """All of them; there are none then."""
        taken = _Questions()
        taken.names, self.names = self.names, taken.names
        taken.about, self.about = self.about, taken.about
        return taken


class _KnownRate(NamedTuple):
    """A rate in this version. `questions`: those that its home is asked next; None: it is not observed."""

    questions: _Questions | None
    quotas: RateQuotas


class ObservedRates:
    """The observed rates of one shard. `call`: mesh.call; `touch()` has flush() called soon, at the end of a pass, and `after`
    calls a function some ms later, in a pass."""

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
        after: Callable[[float, Callable[[], None]], object],
        notes: RateNotes,
    ) -> None:
        self.is_on = False
        self._known: dict[str, dict[str, _KnownRate]] = {LISTENER: {}, ADDRESS: {}, USER: {}}  # of this version
        self._questions: dict[tuple[int, str], _Questions] = {}
        self._answered: dict[str, OnAnswers] = {BACK: lambda about, beyond: None}
        self._is_asking = False  # there are questions
        self._is_armed = False  # flush() will be called within LATEST_MS
        self._gather_ms = GATHER_MS
        self._due_ms = 0  # from when on questions are asked
        self._me = me
        self._shards = shards
        self._has_others = len(listeners) > 1
        self._image = image
        self._call = call
        self._now_ms = now_ms
        self._touch = touch
        self._after = after
        self._notes = notes
        self._windows = ObservedWindows(Window())
        self._listeners_home = home_of("rate:broker", shards)

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offers the windows at home here to the other shards."""
        serve(METHOD, self._serve)

    def answer_to(self, on_answers: Mapping[str, OnAnswers]) -> None:
        """Where the answers to questions of a kind go."""
        self._answered.update(on_answers)

    def follow(self) -> None:
        """The image has another version."""
        for known in self._known.values():
            known.clear()
        self._gather_ms = 0 if self._image.has_observed_world else GATHER_MS
        is_on = self._image.observes_rates or self._image.observes_user_rates
        if is_on is not self.is_on:
            self.is_on = is_on
            self.reset()

    def reset(self) -> None:
        """Every window begins empty (windows_begin_empty). What came up before is not recorded in them: it was within."""
        self._is_asking = False
        for (_, what), questions in [*self._questions.items()]:
            self._answered[what](questions.take().about, {})
        samples, size_s = (self._image.get(f"quota.window.{name}") for name in ("num", "size.seconds"))
        self._windows = ObservedWindows(Window(samples, size_s * 1000))
        self._notes.began(at_ms=self._now_ms())

    def observes(self, what: str, name: str) -> bool:
        """True if there is an observed rate: `ask` asks for it."""
        return self._look_up(what, name).questions is not None

    def ask(self, what: str, name: str, about: object) -> bool:
        """A connection was admitted at a listener or from an address, or a user has logged in. False: no rate is observed there,
        and nothing is asked."""
        known = self._known[what].get(name) or self._look_up(what, name)
        questions = known.questions
        if questions is None:
            return False
        questions.names.append(name)
        questions.about.append(about)
        if not self._is_asking:
            self._is_asking = True
            self._touch()
        return True

    def take_back(self, name: str) -> None:
        """An arrival at a listener that was asked about would have been refused by the rate of its address."""
        if self.observes(LISTENER, name):
            questions = self._questions_for(self._listeners_home, BACK)
            questions.names.append(name)
            questions.about.append(None)
            self._is_asking = True
            self._touch()

    def flush(self) -> None:
        """Ends a pass: asks the homes, if it is time."""
        while self._is_asking:
            now_ms = self._now_ms()
            if now_ms < self._due_ms:
                if not self._is_armed:
                    self._is_armed = True
                    self._after(LATEST_MS, self._fall_due)
                return
            self._due_ms = now_ms + self._gather_ms
            self._is_asking = False
            for (home, what), questions in [*self._questions.items()]:
                taken = questions.take()
                for start in range(0, len(taken.names), MOST_IN_A_CALL):
                    some = slice(start, start + MOST_IN_A_CALL)
                    self._ask_home(home, what, taken.names[some], taken.about[some])

    def _fall_due(self) -> None:
        self._is_armed = False
        self._touch()

    def _ask_home(self, home: int, what: str, names: list[str], about: list[object]) -> None:
        if home == self._me:
            self._answered[what](about, _by_place(self._decide(what, names, home)))
        else:
            self._call(home, METHOD, what, names).add_callback(partial(self._home_replied, what, about))

    def _home_replied(self, what: str, about: list[object], reply: Deferred[object]) -> None:
        """The home has replied to these questions with a list of Placed, or is lost."""
        try:
            beyond = _by_place(cast(list[Placed], reply.result()))
        except (PeerLost, DeadlineExceeded):
            beyond = dict.fromkeys(range(len(about)), UNAVAILABLE)
        self._answered[what](about, beyond)

    # What is known of a rate

    def _look_up(self, what: str, name: str) -> _KnownRate:
        found = self._known[what].get(name)
        if found is not None:
            return found
        if len(self._known[what]) >= _MOST_KNOWN:
            self._known[what].clear()
        quotas = self._listeners_quotas(name) if what == LISTENER else self._quotas(what, name)
        questions = None
        if quotas.own is not None or quotas.broker is not None:
            home = self._listeners_home if what == LISTENER else home_of(f"rate:{what}:{name}", self._shards)
            questions = self._questions_for(home, what)
        found = self._known[what][name] = _KnownRate(questions, quotas)
        return found

    def _quotas(self, what: str, name: str) -> RateQuotas:
        """The observed rate of an address or a user; None where it would be the same."""
        return RateQuotas(self._image.observed_rate_of(f"{what}:{name}").rate)

    def _listeners_quotas(self, listener: str) -> RateQuotas:
        """The observed rates of a listener and of its broker; None for one that would be the same."""
        exempt = self._has_others and listener == self._image.inter_broker_listener
        of_broker = None if exempt else self._image.observed_rate_of("broker").rate
        return RateQuotas(self._image.observed_rate_of(f"listener:{listener}").rate, of_broker, exempt)

    def _questions_for(self, home: int, what: str) -> _Questions:
        return self._questions.setdefault((home, what), _Questions())

    # At home

    def _serve(self, peer: int, what: str, names: list[str]) -> list[Placed]:
        return self._decide(what, names, peer)

    def _decide(self, what: str, names: list[str], asker: int) -> list[Placed]:
        """The answers that are not WITHIN."""
        now_ms = self._now_ms()
        if what in (LISTENER, BACK):
            return self._at_listeners(what, names, asker, now_ms)
        known, look_up = self._known[what], self._look_up
        quotas = [(known.get(name) or look_up(what, name)).quotas.own for name in names]
        arrive = self._windows.log_in if what == USER else self._windows.arrive_from
        beyond = arrive(names, quotas, now_ms=now_ms)
        within = names
        if beyond:
            places = {place for place, _ in beyond}
            within = [name for place, name in enumerate(names) if place not in places]
        if within:
            self._notes.within(what, within, asker=asker, at_ms=now_ms)
        for (name, delay_ms), alike in groupby((names[place], delay_ms) for place, delay_ms in beyond):
            count = sum(1 for _ in alike)
            self._notes.answered(what, name, RateAnswer(delay_ms), count, asker=asker, at_ms=now_ms)
        return [(place, delay_ms, 0) for place, delay_ms in beyond]

    def _at_listeners(self, what: str, names: list[str], asker: int, now_ms: int) -> list[Placed]:
        beyond: list[Placed] = []
        place = 0
        for name, group in groupby(names):
            arrivals = sum(1 for _ in group)
            quotas = self._look_up(LISTENER, name).quotas
            if what == BACK:
                self._windows.take_back(name, quotas, arrivals, now_ms=now_ms)
                runs = [(WITHIN, arrivals)]
            else:
                runs = self._windows.arrive(name, quotas, arrivals, now_ms=now_ms)
            for answer, count in runs:
                self._notes.answered(what, name, answer, count, asker=asker, at_ms=now_ms)
                if answer is not WITHIN:
                    beyond += [(each, *answer) for each in range(place, place + count)]
                place += count
        return beyond


def _by_place(beyond: Iterable[Placed]) -> Beyond:
    return {place: RateAnswer(own_ms, broker_ms) for place, own_ms, broker_ms in beyond}
