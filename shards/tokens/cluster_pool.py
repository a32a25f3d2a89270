"""The pool `cluster` as one shard sees it: a token of it for each connection to any broker, while it has a cap; and beside it the
pool `observed/cluster`, for the connections of the observed world (broker/accept/observed_world.py) while a cap is observed.

Their tokens are those of any other pool (tokens.py), but their members are the shards of all brokers, each of which follows the
same coordinator. So a shard has two sets of tokens: that of its broker's pools, which no other broker's shard can hold up, and this
one of two pools. Member `broker * shards + shard` is a shard of a broker; messages of members begin with NAME.

counted_while_capped  While the pool has a cap each open connection holds one token of it, and without one none does: a version
    that brings a cap finds all open connections forced in before it is applied, so that the home hears of them before that
    version is done. So the pool costs nothing while no cap is set. The same holds of the observed pool and of the connections of
    the observed world.
awaited_while_capped  A version with a cap, enforced or observed, is done when the members have confirmed it, too, or when a version
    without a cap has followed it. A version without a cap waits for no other broker, and is told to none unless it removes a cap.
    When the coordinator answers a change that sets a cap, each shard that it knows has applied it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from shards.limits.caps import CLUSTER, OBSERVED, CapRule
from shards.ownership import BrokerShard, member_of, shard_of_member
from shards.tokens.full_pools import ASKING, ReturnCounts
from shards.tokens.home_ledger import Lost, Returned
from shards.tokens.home_pools import OnGrant
from shards.tokens.tokens import Admitted, Refused, Tokens, TokenWaiter

NAME: Final = "cluster"
"""The first field of its messages."""
POOLS: Final = (CLUSTER,)
OBSERVED_POOLS: Final = (OBSERVED + CLUSTER,)


class ClusterPool:
    """The pools of the whole cluster on the shard at `place`, in its incarnation `epoch`.

    `send(place, message)` hands over a message for another shard, in order; `rule_of`: as of Tokens. `is_on`: whether the pool has
    a cap in the version last followed, `is_observed`: whether one is observed that is not the one in force. `member`: the number
    of this shard among those of all brokers.
    """

    def __init__(
        self,
        place: BrokerShard,
        brokers: int,
        shards: int,
        *,
        epoch: int,
        send: Callable[[BrokerShard, tuple[object, ...]], None],
        rule_of: Callable[[str], CapRule],
        on_grant: OnGrant | None = None,
        on_return: Returned | None = None,
        on_loss: Lost | None = None,
        on_wait: Callable[[Any, str, CapRule], None] | None = None,
        returns: ReturnCounts | None = None,
        asking: int = ASKING,
    ) -> None:
        self.is_on = self.is_observed = False
        self.member: Final = member_of(place, shards)
        self._shards: Final = shards
        self._rule_of = rule_of
        self._had_caps = False  # in the version last applied
        self._done = 0  # the last version that is done, or was followed by one without a cap
        self._to_tell: deque[tuple[int, Callable[[], None]]] = deque()  # by version, in order
        self._is_idle = True
        self.tokens = Tokens(
            self.member,
            brokers * shards,
            epoch=epoch,
            send=lambda member, message: send(shard_of_member(member, shards), (NAME, *message)),
            rule_of=rule_of,
            on_grant=on_grant,
            on_return=on_return,
            on_loss=on_loss,
            on_wait=on_wait,
            returns=returns,
            asking=asking,
        )

    # Connections

    def take(self, waiter: TokenWaiter) -> Admitted | Refused | None:
        """A token for a connection: see Tokens.take."""
        return self.tokens.take(POOLS, waiter)

    def observe_at_hand(self) -> bool:
        """Takes a token of the observed pool for a connection that was admitted, if one is at hand. False: `observe` follows at
        once."""
        return self.tokens.observe_at_hand(OBSERVED_POOLS) > 0

    def observe(self, waiter: TokenWaiter) -> Admitted | Refused | None:
        """As observe_at_hand, where no token was at hand: see Tokens.observe_rest."""
        return self.tokens.observe_rest(OBSERVED_POOLS, 0, waiter)

    def cancel(self, waiter: TokenWaiter) -> None:
        """The connection does not wait any more."""
        self.tokens.cancel(waiter)

    def release(self) -> None:
        """A connection gives its token back: one that has ended while `is_on` (counted_while_capped), or that was not let in."""
        self.tokens.release(POOLS)

    def release_observed(self) -> None:
        """A connection leaves the observed world while `is_observed`, or was not let in there."""
        self.tokens.release(OBSERVED_POOLS)

    # Configuration, peers, time

    def follow(self, connections: int) -> None:
        """The image has another version, and so many connections are open here; `apply` follows."""
        is_on = self._rule_of(CLUSTER).cap is not None
        if is_on is not self.is_on:
            self.is_on = is_on
            self._count(CLUSTER, connections, is_on=is_on)

    def follow_observed(self, members: Callable[[], int]) -> None:
        """As `follow`, of the observed pool; `members()` of this shard are in the observed world, or were until this version."""
        is_on = self._rule_of(OBSERVED + CLUSTER).cap is not None
        if is_on is not self.is_observed:
            self.is_observed = is_on
            self._count(OBSERVED + CLUSTER, members(), is_on=is_on)

    def _count(self, pool: str, connections: int, *, is_on: bool) -> None:
        if is_on:
            self.tokens.force(pool, connections)
        else:
            self.tokens.release((pool,) * connections)

    @property
    def _has_caps(self) -> bool:
        return self.is_on or self.is_observed

    def apply_both(
        self, of_broker: Tokens, version: int, done: Callable[[], None], changed: Collection[str] | None
    ) -> None:
        """Tokens.apply of both sets, `of_broker` those of this shard's broker; `done` follows when it is done in both."""
        self._is_idle = False
        if self._has_caps or self._had_caps:
            self.tokens.apply(version, partial(self._note_done, version), changed)
        self._had_caps = self._has_caps
        if not self._has_caps:
            self._done = version
        of_broker.apply(version, partial(self._when_done, version, done), changed)

    @property
    def peer_is_ahead(self) -> bool:
        """True if there is a cap, and a shard that lives has told of a later version (tokens.py, no_asking_behind_a_peer)."""
        return self._has_caps and self.tokens.peer_is_ahead

    def receive(self, place: BrokerShard, message: Sequence[Any]) -> None:
        """A message of another shard, as it gave it to its `send`."""
        self._is_idle = False
        self.tokens.receive(member_of(place, self._shards), message[1:])

    def peer_up(self, place: BrokerShard, epoch: int) -> None:
        """Another shard can be sent to."""
        self._is_idle = False
        self.tokens.peer_up(member_of(place, self._shards), epoch)

    def peer_lost(self, place: BrokerShard) -> None:
        """The links to another shard broke; its process may live."""
        self._is_idle = False
        self.tokens.peer_lost(member_of(place, self._shards))

    def peer_dead(self, place: BrokerShard) -> None:
        """The process of another shard has ended."""
        self._is_idle = False
        self.tokens.peer_dead(member_of(place, self._shards))

    def tick(self, now_s: float) -> None:
        """Deadlines, and idle tokens."""
        self._is_idle = False
        self.tokens.tick(now_s)

    def flush(self) -> bool:
        """Ends a pass, as Tokens.flush; True if a connection was told its decision."""
        if self._is_idle and not (self.is_on or self.is_observed):
            return False
        self._is_idle = True
        before = self.tokens.decisions_told
        self.tokens.flush()
        while self._to_tell and self._to_tell[0][0] <= self._done:
            self._to_tell.popleft()[1]()
        return self.tokens.decisions_told != before

    def describe_with(self, answer: dict[str, Any], pools: Sequence[str] | None) -> dict[str, Any]:
        """The answer of Tokens.describe for `pools`, with those of these pools added that are among them and have a cap: their
        rows have this shard's `member`."""
        capped = [*(POOLS if self.is_on else ()), *(OBSERVED_POOLS if self.is_observed else ())]
        named = [pool for pool in capped if pools is None or pool in pools]
        if named:
            own = self.tokens.describe(named)
            for kind in ("home", "holds"):
                answer[kind] += [{**row, "member": self.member} for row in own[kind]]
        return answer

    def _when_done(self, version: int, done: Callable[[], None]) -> None:
        if self._has_caps and self._done < version:
            self._to_tell.append((version, done))
        else:
            done()

    def _note_done(self, version: int) -> None:
        self._done = max(self._done, version)
