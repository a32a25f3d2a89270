"""describe.py: what /v1/tokens shows of one shard."""

import msgpack

from shards.limits.caps import UNLIMITED, CapRule
from shards.ownership import home_of
from shards.tokens.tokens import Tokens

NAME = "kafka_connections_max_per_ip"
HERE = next(f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == 0)
AWAY = next(f"ip:10.0.0.{n}" for n in range(100) if home_of(f"ip:10.0.0.{n}", 2) == 1)


class Nobody:
    def decided(self, decision: object) -> None:
        return


def make_tokens(cap: int | None = 10) -> Tokens:
    rule = UNLIMITED if cap is None else CapRule(cap, NAME)
    tokens = Tokens(0, 2, epoch=1, send=lambda peer, message: None, rule_of=lambda pool: rule)
    tokens.peer_up(1, 2)
    tokens.receive(1, (2, [["sync", 0]]))
    tokens.flush()
    tokens.receive(1, (2, [["borrow", HERE, 1, 1, 1, 1, False]]))
    tokens.take((HERE,), Nobody())
    tokens.take((AWAY,), Nobody())
    tokens.flush()
    tokens.receive(1, (2, [["grant", AWAY, 3, True, 1]]))
    tokens.flush()
    return tokens


def test_a_pool_at_home_and_one_away() -> None:
    assert make_tokens().describe() == {
        "version": 0,
        "pools": 2,
        "truncated": False,
        "home": [
            {
                "pool": HERE,
                "cap": 10,
                "limit": NAME,
                "in_use": 1,
                "granted": {1: 3},
                "free": 6,
                "mode": "open",
                "waiting": 0,
            }
        ],
        "holds": [{"pool": AWAY, "home": 1, "in_use": 1, "cached": 2, "tight": False}],
    }


def test_no_cap_is_none_and_never_full() -> None:
    [pool] = make_tokens(None).describe()["home"]
    assert (pool["cap"], pool["limit"], pool["free"]) == (None, "", None)


def test_the_largest_pools_come_first_when_there_are_too_many() -> None:
    tokens = make_tokens()
    for _ in range(5):
        tokens.take(("listener:big",), Nobody())
    described = tokens.describe(limit=1)
    assert described["truncated"] and described["pools"] == 3
    assert [pool["pool"] for pool in (*described["home"], *described["holds"])] == ["listener:big"]


def test_it_can_be_sent_to_another_process() -> None:
    described = make_tokens().describe()
    assert msgpack.unpackb(msgpack.packb(described), strict_map_key=False) == described


def test_pools_that_are_named_are_described_whatever_their_size() -> None:
    tokens = make_tokens()
    for _ in range(5):
        tokens.take(("listener:big",), Nobody())
    described = tokens.describe([AWAY, HERE, "ip:10.9.9.9"], limit=1)
    assert [pool["pool"] for pool in (*described["home"], *described["holds"])] == [HERE, AWAY]
