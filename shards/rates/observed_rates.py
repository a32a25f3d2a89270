"""Connection creation rates that are observed instead of enforced (shadow mode, dry run), across the shards of a broker; and the
questions to that of the whole cluster.

Each rate has one home, as an enforced one has (rates.py). Nothing waits for an answer and no listener stops, so the shard that has
admitted connections gathers its questions: it asks each home, itself too, at the end of a pass. Questions that come up within the
next GATHER_MS are asked at the end of the first pass after that time; there is a pass four times a second at least
(shard_process.py). While there is an observed world (broker/accept/observed_world.py) it asks after every pass, as the answers
decide when connections come into it.

other_rates_only  An observed rate is asked only if it differs from the rate in force.
windows_begin_empty  Windows begin empty when the first rate begins to be observed, when the last one ends, when their home starts
    again, and at a reset.
each_answer_is_journaled  A home notes each answer in order, so that the arithmetic can be done again (observed_windows.py).
lost_homes_leave_it_open  If a home is lost, or does not answer in time, its answer is UNAVAILABLE: neither within nor beyond.
order_of_questions  The questions of one kind for one home are asked and answered in the order in which they came up.
the_clusters_is_kept_elsewhere  The observed rate of the cluster is asked about here with the others, but its window is one of
    cluster_rate.py: it outlives its home, and its changes are journaled instead of answers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from shards.config.image import ClusterImage
from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.caps import CLUSTER
from shards.limits.observed_windows import ADDRESS, BACK, LISTENER, USER, WITHIN, ObservedWindows, RateAnswer
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas
from shards.loop.deferred import Deferred
from shards.ownership import home_of
from shards.rates.rate_queues import RateWaiter

METHOD: Final = "observe_rates"
MOST_IN_A_CALL: Final = 2000
GATHER_MS: Final = 100
"""A message to another shard costs as much as a hundred questions."""
_MOST_KNOWN = 100_000

T = TypeVar("T")
Ask = Callable[[Any], object]
"""Asks about something, as soon as it is time; cheap, as each connection calls it."""
Placed = tuple[int, int, int]
"""The place of a question among those asked together, and its answer: RateAnswer's two delays."""
Beyond = Mapping[int, RateAnswer]
"""The answers to some questions, by their places, but for those that were WITHIN."""
OnAnswers = Callable[[Sequence[Any], Beyond], None]
"""Called with the subjects of some questions, in their order, and the answers. It must not raise."""
UNAVAILABLE: Final = RateAnswer(-1, -1)


class RateNotes(Protocol):
    """Hears of each answer of this home, and of windows that begin empty."""

    def within(self, what: str, names: Sequence[str], *, asker: int, at_ms: int) -> None:
        """Arrivals from addresses, or logins of users, that were within their rates."""

    def answered(self, what: str, name: str, answer: RateAnswer, arrivals: int, *, asker: int, at_ms: int) -> None:
        """One answer to `arrivals` that came one after the other."""

    def began(self, *, at_ms: int) -> None: ...


class Asker(NamedTuple):
    """The part of a shard that asks questions of a kind. `name_of` what is asked about: the listener, address or user;
    `answered` is called with the answers, `unasked` at once where no rate is observed."""

    name_of: Callable[[Any], str]
    answered: OnAnswers
    unasked: Ask


class ClusterHome(Protocol):
    """ClusterRate, for the observed rate of the cluster."""

    def observe(self, connections: int, waiter: RateWaiter) -> None: ...


class ClusterAnswers:
    """A RateWaiter of connections that were asked about together: hands on all answers once the last has come."""

    __slots__ = ("_about", "_beyond", "_heard", "_on_answers")

    def __init__(self, about: Sequence[object], on_answers: OnAnswers) -> None:
        self._about = about
        self._on_answers = on_answers
        self._beyond: dict[int, RateAnswer] = {}
        self._heard = 0

    def recorded(self, key: str, wait_ms: int) -> None:
        if wait_ms:
            self._beyond[self._heard] = RateAnswer(wait_ms)
        self._heard += 1
        if self._heard == len(self._about):
            self._on_answers(self._about, self._beyond)


class _Questions:
    """The questions of one kind that one home is asked next. `ask` adds to them."""

    __slots__ = ("about", "ask")

    def __init__(self) -> None:
        self.about: list[Any] = []
        self.ask = self.about.append

    def take(self) -> list[Any]:
        """Removes all of them, and returns them."""
        taken = self.about.copy()
        self.about.clear()
        return taken


class _Remembered(dict[str, T], Generic[T]):
    """The values of a function by name, of _MOST_KNOWN names at most, until it is cleared."""

    def __init__(self, function: Callable[[str], T]) -> None:
        self._function = function

    def __missing__(self, name: str) -> T:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        found = self[name] = self._function(name)
        return found


class ObservedRates:
    """The observed rates of one shard. `cluster`: where that of the cluster is; `call`: mesh.call. flush() is to be called at the
    end of each pass, and four times a second at least. `is_on`: whether any is observed. `asks`: see asking."""

    def __init__(
        self,
        me: int,
        shards: int,
        listeners: tuple[str, ...],
        image: ClusterImage,
        *,
        cluster: ClusterHome,
        call: Callable[..., Deferred[object]],
        now_ms: Callable[[], int],
        notes: RateNotes,
    ) -> None:
        self.is_on = False
        self._listeners = _Remembered(self._listeners_quotas)
        self._rates = {what: _Remembered(partial(self._rate_of, what)) for what in (CLUSTER, ADDRESS, USER)}
        kinds = (CLUSTER, LISTENER, ADDRESS, USER)
        self.asks = {what: _Remembered(partial(self._find_ask, what)) for what in kinds}
        self._questions: dict[tuple[int, str], _Questions] = {}
        self._askers = {BACK: Asker(itemgetter(0), lambda about, beyond: None, lambda about: None)}
        self._gather_ms = GATHER_MS
        self._due_ms = 0  # from when on questions are asked
        self._me = me
        self._shards = shards
        self._has_others = len(listeners) > 1
        self._image = image
        self._cluster = cluster
        self._call = call
        self._now_ms = now_ms
        self._notes = notes
        self._windows = ObservedWindows(Window())
        self._listeners_home = home_of("rate:broker", shards)

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offers the windows at home here to the other shards."""
        serve(METHOD, self._serve)

    def asking(self, what: str, asker: Asker) -> Mapping[str, Ask]:
        """For each name, the function that asks about it, in the version that is followed. `what`, the kind of question: CLUSTER
        (its only name is CLUSTER, too), LISTENER or ADDRESS, about a connection that was admitted; USER, about a login."""
        self._askers[what] = asker
        return self.asks[what]

    def follow(self) -> None:
        """The image has another version."""
        self._listeners.clear()
        for rates in self._rates.values():
            rates.clear()
        for asks in self.asks.values():
            asks.clear()
        self._gather_ms = 0 if self._image.has_observed_world else GATHER_MS
        is_on = self._image.observes_rates or self._image.observes_user_rates
        if is_on is not self.is_on:
            self.is_on = is_on
            self.reset()

    def reset(self) -> None:
        """Every window begins empty (windows_begin_empty). Questions that came up before are not recorded in them, and are answered
        as within."""
        for (_, what), questions in [*self._questions.items()]:
            self._askers[what].answered(questions.take(), {})
        samples, size_s = (self._image.get(f"quota.window.{name}") for name in ("num", "size.seconds"))
        self._windows = ObservedWindows(Window(samples, size_s * 1000))
        self._notes.began(at_ms=self._now_ms())

    def take_back(self, name: str) -> None:
        """An arrival at a listener that was asked about would have been refused by the rate of its address."""
        if self._is_observed(LISTENER, name):
            self._questions_for(self._listeners_home, BACK).ask((name,))

    def flush(self) -> None:
        """Ends a pass: asks the homes, if it is time."""
        while self.is_on and (now_ms := self._now_ms()) >= self._due_ms and self._has_questions():
            self._due_ms = now_ms + self._gather_ms
            for (home, what), questions in [*self._questions.items()]:
                taken = questions.take()
                for start in range(0, len(taken), MOST_IN_A_CALL):
                    self._ask_home(home, what, taken[start : start + MOST_IN_A_CALL])

    def _has_questions(self) -> bool:
        for questions in self._questions.values():  # noqa: SIM110  any() takes longer, in each pass
            if questions.about:
                return True
        return False

    def _ask_home(self, home: int, what: str, about: list[Any]) -> None:
        asker = self._askers[what]
        if what == CLUSTER:
            self._cluster.observe(len(about), ClusterAnswers(about, asker.answered))
            return
        names = [*map(asker.name_of, about)]
        if home == self._me:
            asker.answered(about, _by_place(self._decide(what, names, home)))
        else:
            self._call(home, METHOD, what, names).add_callback(partial(self._home_replied, asker, about))

    def _home_replied(self, asker: Asker, about: list[Any], reply: Deferred[object]) -> None:
        """The home has replied to these questions with a list of Placed, or is lost."""
        try:
            beyond = _by_place(cast(list[Placed], reply.result()))
        except (PeerLost, DeadlineExceeded):
            beyond = dict.fromkeys(range(len(about)), UNAVAILABLE)
        asker.answered(about, beyond)

    # What is known of a rate

    def _find_ask(self, what: str, name: str) -> Ask:
        if not self._is_observed(what, name):
            return self._askers[what].unasked
        return self._questions_for(self._home(what, name), what).ask

    def _home(self, what: str, name: str) -> int:
        if what == CLUSTER:
            return self._me  # ClusterRate knows which shard of all brokers it is
        return self._listeners_home if what == LISTENER else home_of(f"rate:{what}:{name}", self._shards)

    def _is_observed(self, what: str, name: str) -> bool:
        if what == LISTENER:
            return self._listeners[name][:2] != (None, None)
        return self._rates[what][name] is not None

    def _rate_of(self, what: str, name: str) -> float | None:
        """The observed rate of the cluster, a listener, an address or a user; None where it would be the same."""
        return self._image.observed_rate_of(what if what == CLUSTER else f"{what}:{name}").rate

    def _listeners_quotas(self, listener: str) -> RateQuotas:
        exempt = self._has_others and listener == self._image.inter_broker_listener
        of_broker = None if exempt else self._image.observed_rate_of("broker").rate
        return RateQuotas(self._rate_of(LISTENER, listener), of_broker, exempt)

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
        arrive = self._windows.log_in if what == USER else self._windows.arrive_from
        beyond = arrive(names, self._rates[what], now_ms=now_ms)
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
            arrivals = len([*group])
            quotas = self._listeners[name]
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
