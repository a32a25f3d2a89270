"""Client quotas across the shards of a broker: where each client is metered, and what a request is charged.

Each (user, client-id) that is metered under one key has one sensor, at the home of that key. Every other shard asks the
home for each request it charges, so a client on many connections of many shards is limited as one, to the byte. No
grants are handed out ahead: they would have to be taken back before the throttle that is reported could be the right one.
All that a pass of the loop charges at one home is one call.

**Stand-ins.** While a home is away (away_homes.py: its link is lost, or it did not answer within ANSWER_WITHIN_MS), the shard
that a request came to decides the charge itself: with its own sensor of that key, by the same arithmetic. That sensor has the
others' decisions from their charge histories (history_replication.py): a home publishes to all other shards once 1/UNTOLD_SHARE
of what a quota lets pass at once is untold, a stand-in publishes each charge. A home that is back is sent the history before it
is asked again, so its window goes on from what the stand-ins recorded. A shard that starts is sent all histories before it decides
anything, but waits no longer than STARTING_MS for that: its own charges are held, those that it is asked are decided by their
askers.

The most that one Kafka meter lets pass without a throttle in any span of `quota.window.num` windows is
M = quota * (num + 1) * size (mutations: quota * 2 * num * size).

never_unlimited     a charge under a quota is recorded, and answered within ANSWER_WITHIN_MS, or STARTING_MS after a start
one_meter           while no home is away, and each was sent the histories after its start, what passes is what one meter lets
                    pass: M
knows_the_others    what a shard decides by lacks of another's decisions at most that one's untold share, M / UNTOLD_SHARE, and
                    what is on its way to it; so what passes in a span is at most M + (shards - 1) * M / UNTOLD_SHARE, and
                    what several shards decide within one message's time of each other
one_more_each       whatever is stopped, killed or cut off: no shard lets more than M pass in a span, so all together no more
                    than M for each shard; a shard that starts is told what it let pass before, if another shard is up
counted_at_least    an amount is recorded once; twice only if a home's answer took longer than ANSWER_WITHIN_MS - STALE_AFTER_MS
                    to arrive, or its link broke between. Lost with a shard that dies is only what it had not told.

When all shards of a broker end at once, windows start empty, as a Kafka broker's do. Before a key has a quota, its use is
known to its home alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from shards.errors import DeadlineExceeded, PeerLost
from shards.limits.client_quota_managers import MUTATION
from shards.limits.precedence import Key, QuotaTable
from shards.limits.quota_callback import Mistaken
from shards.limits.quota_replay import UNTOLD_SHARE
from shards.limits.rate import Window
from shards.limits.short_names import short_name
from shards.loop.deferred import Deferred, MaybeDeferred
from shards.quotas.away_homes import AwayHomes, PendingBatch
from shards.quotas.charge_history import ChargeHistory, MeterKey
from shards.quotas.charge_notes import Charge, ChargeNotes
from shards.quotas.history_replication import REPLICATE, Call, HistoryReplication
from shards.quotas.meters import EXPIRED_AT_ONCE, Meters, QuotaImage

_CHARGE: Final = "charge"
MOST_IN_A_CALL: Final = 500
"""Charges: with the longest names of clients they are far from the length of a frame."""
STARTING_MS: Final = 500
"""A shard that starts waits so long at most to be told by the others."""
_LATE_MS: Final = 50
"""A timer that comes so late says that this shard was held up, not the home: what has arrived meanwhile is read first."""


class RecordedCharge(NamedTuple):
    """The answer to a charge: when it was recorded (ms; 0: nothing was), and whether by a stand-in."""

    accepted: bool
    throttle_ms: int
    at_ms: int
    stand_in: bool = False


NOTHING_RECORDED: Final = RecordedCharge(True, 0, 0)


class _Waiting(NamedTuple):
    """A charge that is not decided yet."""

    answer: Deferred[RecordedCharge]
    charge: Charge


class ShardedQuotas(Meters):
    """The sensors at home here, calls to the homes of the others, and stand-ins for them. `touch()` has flush() called soon,
    at the end of a pass; `after(ms, function)` calls it later; `mistaken(error)` is told of mistakes in deciding a charge,
    `callback_mistaken(error)` of those of the operator's class; `notes` have all that is recorded under a quota."""

    def __init__(
        self,
        me: int,
        shards: int,
        image: QuotaImage,
        *,
        call: Call,
        now_ms: Callable[[], int],
        touch: Callable[[], None],
        after: Callable[[float, Callable[[], None]], object],
        mistaken: Callable[[Exception], None],
        callback_mistaken: Mistaken = lambda fault: None,
        notes: ChargeNotes | None = None,
    ) -> None:
        self._notes = notes
        self._noted: set[MeterKey] = set()  # keys of whose sensors the notes have all that counts
        self._others = [shard for shard in range(shards) if shard != me]
        self._homes: AwayHomes[list[_Waiting]] = AwayHomes(self._others)
        self._history = ChargeHistory(me, {})
        super().__init__(me, shards, image, now_ms=now_ms, callback_mistaken=callback_mistaken)
        self.replication = HistoryReplication(
            self._history, self._homes, self._others, call=call, touch=touch, lose=self.peer_lost
        )
        self._call = call
        self._touch = touch
        self._after = after
        self._mistaken = mistaken
        self._to_send: dict[int, list[_Waiting]] = {}  # the charges of this pass at each home
        self._is_timer_set = False
        self._awaited: set[int] = set()  # shards whose history this one, which starts, has yet to receive
        self._held: list[_Waiting] = []

    def _build(self, window: Window, mutations: Window) -> None:
        super()._build(window, mutations)
        if self.is_by_callback:
            self._notes = None  # the audit knows nothing of what the class says
        self._history.start(self.keep_ms)
        self._noted.clear()

    def _dropped(self, kind: str, key: Key) -> None:
        super()._dropped(kind, key)
        self._history.forget(MeterKey(kind, *key))
        if kind == MUTATION and self._notes is not None and MeterKey(kind, *key) in self._noted:
            self._notes.began(
                MeterKey(kind, *key), {}, at_ms=self._now_ms()
            )  # a debt is forgotten after an hour, as in Kafka
        self._noted.discard(MeterKey(kind, *key))

    def serve_on(self, serve: Callable[[str, Callable[..., object]], None]) -> None:
        """Offers the sensors at home here to the other shards, and receives their charge histories."""
        serve(_CHARGE, self._serve_charges)
        serve(REPLICATE, self._receive_history)

    def reset(self) -> None:
        """Forgets what every client used, as a broker that starts."""
        self.replication.reset(now_ms=self._now_ms())
        super().reset()
        if self._notes is not None:
            self._notes.reset(at_ms=self._now_ms())

    # Charges

    def charge(
        self, kind: str, user: str, client_id: str, amount: float, *, strict: bool = False
    ) -> MaybeDeferred[RecordedCharge]:
        """Records `amount` (bytes, handler ms, partitions); it is answered later if its home is elsewhere or this shard starts."""
        table: QuotaTable = self._managers[kind].table
        if not table.in_use:
            return NOTHING_RECORDED
        charge = Charge(kind, user, short_name(client_id), amount, strict)
        home = self._metered(kind, user, client_id).home
        if home != self._me and home not in self._homes.away:
            return self._ask_home(home, charge)
        if not self._awaited:
            return self._decide(charge, self._me)
        held = _Waiting(Deferred(), charge)
        self._held.append(held)
        return held.answer

    def _decide(self, charge: Charge, asker: int) -> RecordedCharge:
        """Decides a charge of a shard here, at its home or as a stand-in, and publishes it when it is time."""
        kind, user, client_id, amount, strict = charge
        now_ms = self._now_ms()
        home, limit, place = self._metered(kind, user, client_id)
        if limit is not None and place not in self._noted and self._notes is not None:
            self._begin_notes(self._notes, place, now_ms)
        decision = self.decide(kind, user, client_id, amount, strict=strict, now_ms=now_ms)
        accepted, throttle_ms, recorded = decision
        if limit is None:
            self._noted.discard(place)
        else:
            is_kept = self.is_kept(place)
            if self._notes is not None:
                stand_in = home != self._me
                self._notes.charged(
                    charge, decision, limit, asker=asker, at_ms=now_ms, stand_in=stand_in, shares=not is_kept
                )
            for units in recorded if self._others and is_kept else ():
                untold = self._history.record(place, units, now_ms=now_ms)
                if home != self._me or untold >= limit * self.window_s[kind] / UNTOLD_SHARE:
                    self.replication.publish(place, now_ms=now_ms)
        return RecordedCharge(accepted, throttle_ms, now_ms, home != self._me)

    def _begin_notes(self, notes: ChargeNotes, place: MeterKey, now_ms: int) -> None:
        """Notes what a sensor holds already; from then on each charge is noted, and what others tell."""
        sensor = self._managers[place.kind].places.take(place[1:], now_ms=now_ms)
        if self.is_kept(place):
            state = sensor.state()
            if state is not None:
                notes.began(place, state, at_ms=now_ms)
            self._noted.add(place)

    def _ask_home(self, home: int, charge: Charge) -> Deferred[RecordedCharge]:
        answer: Deferred[RecordedCharge] = Deferred()
        waiting = self._to_send.setdefault(home, [])
        waiting.append(_Waiting(answer, charge))
        if len(waiting) == 1:
            self._touch()
        elif len(waiting) >= MOST_IN_A_CALL:
            self._send_charges(home)
        return answer

    def flush(self) -> None:
        """Sends updates of the history to the others, and then charges; at the end of each pass, before the mesh writes."""
        self.replication.flush()
        while self._to_send:
            self._send_charges(next(iter(self._to_send)))
        self.replication.flush()  # charges that were decided here after all

    def _send_charges(self, home: int) -> None:
        waiting = self._to_send.pop(home)
        if home in self._homes.away:
            self._decide_all(waiting)
            return
        now_ms = self._now_ms()
        asked = self._homes.ask(home, waiting, now_ms=now_ms)
        self._watch_deadline()
        reply = self._call(home, _CHARGE, [charge for _, charge in waiting], now_ms)
        reply.add_callback(partial(self._home_answered, home, asked))

    def _home_answered(
        self, home: int, asked: PendingBatch[list[_Waiting]], reply: Deferred[list[list[object] | None]]
    ) -> None:
        """The answers of a home. None, or no answer at all: it did not decide."""
        try:
            answers: list[list[Any] | None] = reply.result()
        except (PeerLost, DeadlineExceeded):
            self.peer_lost(home)
            return
        except Exception:  # a mistake there, which was reported there
            answers = [None] * len(asked.batch)
        if self._homes.answered(home, asked):
            for waiting, answer in zip(asked.batch, answers, strict=True):
                if answer is None:
                    self._decide_all([waiting])
                else:
                    waiting.answer.resolve(RecordedCharge(*answer))

    def _decide_all(self, charges: list[_Waiting]) -> None:
        """Decides charges here, each by itself: an error is that of one client. A shard that starts holds them."""
        if self._awaited:
            self._held += charges
            return
        for answer, charge in charges:
            try:
                recorded = self._decide(charge, self._me)
            except Exception as error:
                answer.fail(error)
            else:
                answer.resolve(recorded)

    def _serve_charges(self, peer: int, charges: list[list[Any]], asked_ms: int) -> list[RecordedCharge | None]:
        """Decides what another shard charges here; None for what it is to decide itself: late, while this one starts, a mistake."""
        if self._homes.is_stale(peer, asked_ms, now_ms=self._now_ms()) or self._awaited:
            return [None] * len(charges)
        answers: list[RecordedCharge | None] = []
        for charge in charges:
            try:
                answers.append(self._decide(Charge(*charge), peer))
            except Exception as error:
                self._mistaken(error)
                answers.append(None)
        return answers

    # Homes that don't answer

    def _watch_deadline(self) -> None:
        if not self._is_timer_set:
            due_ms = self._homes.next_due_ms()
            if due_ms is not None:
                self._wake_at(due_ms)

    def _wake_at(self, due_ms: int) -> None:
        self._is_timer_set = True
        self._after(max(due_ms - self._now_ms(), 1), partial(self._deadline_passed, due_ms))

    def _deadline_passed(self, due_ms: int) -> None:
        self._is_timer_set = False
        now_ms = self._now_ms()
        if now_ms - due_ms >= _LATE_MS:
            self._wake_at(now_ms + _LATE_MS // 2)
            return
        for waiting in self._homes.overdue(now_ms=now_ms):
            self._decide_all(waiting)
        self.replication.retry()
        self._watch_deadline()

    def peer_lost(self, shard: int) -> None:
        """The link to a shard broke, or it does not answer: it is away, and what it was asked is decided here."""
        for waiting in self._homes.mark_away(shard):
            self._decide_all(waiting)

    # A shard that starts

    def await_peers(self) -> None:
        """This shard starts, beside others that may have decided what it is to go on from: it decides nothing before it has
        received their histories, or STARTING_MS have passed."""
        self._awaited = set(self._others)
        if self._awaited:
            self._after(STARTING_MS, self._decide_held)

    def _receive_history(self, peer: int, rows: list[list[object]], complete: bool) -> None:
        """An update of another shard's history; `complete`: with it, all that the shard knows has been received."""
        now_ms = self._now_ms()
        for place, at_ms, amount in self.replication.receive(rows):
            self.insert(place, amount, at_ms=at_ms, now_ms=now_ms)
            if self._notes is not None and place in self._noted:
                self._notes.inserted(place, amount, recorded_ms=at_ms, at_ms=now_ms)
            if not self.is_kept(place):  # it shares a sensor, which keeps that (sensor_table.py)
                self._history.forget(place)
        if complete and self._awaited == {peer}:
            self._decide_held()
        elif complete:
            self._awaited.discard(peer)

    def _decide_held(self) -> None:
        self._awaited.clear()
        held, self._held = self._held, []
        self._decide_all(held)

    def expire(self, most: int = EXPIRED_AT_ONCE) -> None:
        """Forgets what counts no more, of `most` keys at a time, in turn; and asks shards that are away whether they are back."""
        super().expire(most)
        self.replication.expire(most, now_ms=self._now_ms())
        self.replication.retry()
