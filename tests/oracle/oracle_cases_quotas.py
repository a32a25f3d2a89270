"""ClientQuotaManagerTest, ControllerMutationQuotaManagerTest, TokenBucketTest and KIP-599's example as scenarios.

Each record carries, in fields that replay and the oracle ignore, what Kafka's test asserts of its answer: `throttled`
(true or false), `throttle_ms` (exactly), or `refused`.
"""

import json
from typing import Any

from oracle_scenarios import Scenario

_SAMPLES = 11  # ClientQuotaManagerConfig's default, which the tests multiply their amounts by
_MUTATION = "controller_mutation_rate"


class QuotaStory:
    """Quotas of one key, and records of it, at a time that `sleep` moves."""

    def __init__(self, key: str, kind: str) -> None:
        self.at = 0
        self.key = key
        self.kind = kind
        self.lines: Scenario = []

    def add(self, do: str, **fields: Any) -> None:
        self.lines.append(json.dumps({"at": self.at, "do": do, **fields}, separators=(",", ":"), ensure_ascii=False))

    def set(self, name: str, value: int) -> None:
        self.add("set", name=name, value=str(value))

    def sleep(self, ms: int) -> None:
        self.at += ms

    def quota(self, entity: dict[str, str | None], value: float | None) -> None:
        self.add("quota", entity=entity, key=self.key, value=value)

    def record(self, user: str, client_id: str, amount: float, **fields: Any) -> None:
        self.add("record", quota=self.kind, user=user, client_id=client_id, amount=amount, **fields)

    def check(self, user: str, client_id: str, value: int, throttled: bool) -> None:
        """The test's checkQuota: `value` per second for all samples at once."""
        self.record(user, client_id, value * _SAMPLES, throttled=throttled)


def _produce() -> QuotaStory:
    return QuotaStory("producer_byte_rate", "produce")


def _both(user: str | None, client_id: str | None) -> dict[str, str | None]:
    return {"user": user, "client-id": client_id}


def quota_parsing(users: tuple[str, str], clients: tuple[str, str], shape: str) -> Scenario:
    """testQuotaParsing, at the level of `shape`: own quotas, changed twice, removed under a high default."""

    def entity(user: str | None, client_id: str | None) -> dict[str, str | None]:
        return {"client": {"client-id": client_id}, "user": {"user": user}, "both": _both(user, client_id)}[shape]

    story = _produce()
    story.quota(entity(users[0], clients[0]), 2000)
    story.quota(entity(users[1], clients[1]), 4000)
    story.check(users[0], clients[0], 2500, True)
    story.quota(entity(users[0], clients[0]), 3000)
    story.check(users[0], clients[0], 0, False)
    story.quota(entity(users[0], clients[0]), 500)
    story.check(users[0], clients[0], 0, True)
    story.quota(entity(users[0], clients[0]), None)
    story.quota(entity(None, None), 4000)
    story.check(users[0], clients[0], 1000, False)
    return story.lines


def set_and_remove(entity: dict[str, str | None]) -> Scenario:
    """No quota, one of 10, and none again."""
    story = _produce()
    story.check("userA", "client1", 1000, False)
    story.quota(entity, 10)
    story.check("userA", "client1", 1000, True)
    story.quota(entity, None)
    story.check("userA", "client1", 1000, False)
    return story.lines


def precedence() -> Scenario:
    """testQuotaConfigPrecedence, check for check."""
    story = _produce()
    quotas: list[tuple[dict[str, str | None], int]] = [
        ({"user": None}, 1000), ({"client-id": None}, 2000), (_both(None, None), 3000), ({"user": "userA"}, 4000),
        (_both("userA", "client1"), 5000), ({"user": "userB"}, 6000), (_both("userB", "client1"), 7000),
        (_both("userB", None), 8000), ({"user": "userC"}, 10000), ({"client-id": "client1"}, 9000),
    ]  # fmt: skip
    for entity, value in quotas:
        story.quota(entity, value)
    for user, client_id, value, throttled in (
        ("userA", "client1", 4500, False), ("userA", "client2", 4500, True), ("userA", "client3", 0, True),
        ("userA", "client1", 0, False), ("userB", "client1", 8000, True), ("userB", "client2", 7000, False),
        ("userB", "client3", 7000, False), ("userD", "client1", 3500, True), ("userD", "client2", 2500, False),
        ("userE", "client1", 2500, False),
    ):  # fmt: skip
        story.check(user, client_id, value, throttled)
    story.quota(_both(None, None), None)
    story.check("userD", "client1", 0, False)
    story.check("userE", "client4", 1500, True)
    story.check("userF", "client4", 800, False)
    story.check("userF", "client5", 800, True)
    story.quota({"user": None}, None)
    story.check("userF", "client4", 0, False)
    story.check("userF", "client5", 0, False)
    story.check("userF", "client5", 2500, True)
    story.check("userG", "client5", 0, True)
    story.quota({"user": "userA"}, 8000)
    story.quota(_both("userA", "client1"), 10000)
    story.check("userA", "client2", 0, False)
    story.check("userA", "client2", 4500, True)
    story.check("userA", "client1", 0, False)
    story.check("userA", "client1", 6000, True)
    story.quota(_both("userA", "client1"), None)
    story.check("userA", "client6", 0, True)
    story.quota(_both("userA", "client6"), 11000)
    story.check("userA", "client6", 8500, False)
    story.quota(_both("userA", None), 12000)
    story.quota(_both("userA", "client6"), None)
    story.check("userA", "client6", 4000, True)
    return story.lines


def quota_violation() -> Scenario:
    """testQuotaViolation: a spike of 600/s over 500/s costs 2,100 ms, and is gone when its sample is."""
    story = _produce()
    story.quota({"client-id": None}, 500)
    for _ in range(10):
        story.record("ANONYMOUS", "unknown", 400, throttle_ms=0)
        story.sleep(1000)
    story.sleep(500)
    story.record("ANONYMOUS", "unknown", 2300, throttle_ms=2100)
    story.sleep(2100)
    for _ in range(10):
        story.record("ANONYMOUS", "unknown", 400)
        story.sleep(1000)
    story.record("ANONYMOUS", "unknown", 0, throttle_ms=0)
    return story.lines


def largest_value_in_window() -> Scenario:
    """testGetMaxValueInQuotaWindow...: with 4 samples and 10/s, 30 pass at once and 31 do not; twice over as fetches."""
    story = QuotaStory("consumer_byte_rate", "fetch")
    story.set("quota.window.num", 4)
    story.record("userA", "client1", 10**9, throttle_ms=0)
    story.quota({"user": None}, 10)
    story.record("userA", "client1", 31, throttled=True)
    story.record("userA", "client1", 30, throttle_ms=0)
    story.record("userA", "client1", 1, throttled=True)
    return story.lines


def unsanitised_client_id() -> Scenario:
    """testClientIdNotSanitized: the raw client-id is the key; a spike over the default is throttled."""
    story = _produce()
    story.quota({"client-id": None}, 500)
    story.record("ANONYMOUS", "client@#$%", 100, throttle_ms=0)
    story.record("ANONYMOUS", "client@#$%", 10000, throttled=True)
    story.record("ANONYMOUS", "client%40%23%24%25", 100, throttle_ms=0)
    return story.lines


def _mutations(samples: int, size_s: int, quota: float) -> QuotaStory:
    story = QuotaStory(_MUTATION, "mutation")
    story.set("controller.quota.window.num", samples)
    story.set("controller.quota.window.size.seconds", size_s)
    story.quota(_both("ANONYMOUS", "test-client"), quota)
    return story


def _mutate(story: QuotaStory, amount: int, *, strict: bool, throttle_ms: int, refused: bool = False) -> None:
    story.record("ANONYMOUS", "test-client", amount, strict=strict, throttle_ms=throttle_ms, refused=refused)


def strict_mutations() -> Scenario:
    """StrictControllerMutationQuotaTest: 90, 90, and the third 90 is refused for 8 s, or 3 s when 5 have passed."""
    story = _mutations(10, 1, 10)
    _mutate(story, 90, strict=True, throttle_ms=0)
    _mutate(story, 90, strict=True, throttle_ms=0)
    _mutate(story, 90, strict=True, throttle_ms=8000, refused=True)
    story.sleep(5000)
    _mutate(story, 90, strict=True, throttle_ms=3000, refused=True)
    return story.lines


def permissive_mutations() -> Scenario:
    """PermissiveControllerMutationQuotaTest: 90 for nothing, 90 for 8 s, 90 for 17 s; 12 s are left after 5."""
    story = _mutations(10, 1, 10)
    _mutate(story, 90, strict=False, throttle_ms=0)
    _mutate(story, 90, strict=False, throttle_ms=8000)
    _mutate(story, 90, strict=False, throttle_ms=17000)
    story.sleep(5000)
    _mutate(story, 0, strict=False, throttle_ms=12000)
    return story.lines


def mutation_violation() -> Scenario:
    """testControllerMutationQuotaViolation: a spike of 110 on 100 tokens is accepted, the next one costs 1 s."""
    story = _mutations(10, 1, 10)
    for _ in range(10):
        _mutate(story, 10, strict=True, throttle_ms=0)
        story.sleep(1000)
    _mutate(story, 110, strict=True, throttle_ms=0)
    _mutate(story, 110, strict=True, throttle_ms=1000, refused=True)
    story.sleep(1000)
    _mutate(story, 110, strict=True, throttle_ms=0)
    return story.lines


def mutation_throttle_times() -> Scenario:
    """testThrottleTime: at 10/s, no tokens cost nothing, -5 cost 500 ms, -10 cost a second."""
    story = _mutations(10, 1, 10)
    _mutate(story, 100, strict=False, throttle_ms=0)
    _mutate(story, 5, strict=False, throttle_ms=500)
    _mutate(story, 5, strict=False, throttle_ms=1000)
    return story.lines


def mutations_without_quota() -> Scenario:
    """testNew...ReturnsUnboundedQuotaWhenQuotaIsDisabled, and with a quota of another client."""
    story = QuotaStory(_MUTATION, "mutation")
    for strict in (True, False):
        _mutate(story, 1_000_000, strict=strict, throttle_ms=0)
    story.quota(_both("ANONYMOUS", "other-client"), 10)
    for strict in (True, False):
        _mutate(story, 1_000_000, strict=strict, throttle_ms=0)
    return story.lines


def bucket_record() -> Scenario:
    """TokenBucketTest.testRecord: 100 tokens, less 60, 2 s, less 5, 2 s, less 60: five short, which is a second."""
    story = _mutations(10, 2, 5)
    _mutate(story, 60, strict=False, throttle_ms=0)
    story.sleep(2000)
    _mutate(story, 5, strict=False, throttle_ms=0)
    story.sleep(2000)
    _mutate(story, 60, strict=False, throttle_ms=1000)
    return story.lines


def bucket_never_above_burst() -> Scenario:
    """TokenBucketTest.testUnrecord, as far as a scenario can: however long it rests, it holds 100 and no more."""
    story = _mutations(10, 2, 5)
    _mutate(story, 0, strict=False, throttle_ms=0)
    story.sleep(2000)
    _mutate(story, 60, strict=False, throttle_ms=0)
    story.sleep(1_000_000)
    _mutate(story, 100, strict=False, throttle_ms=0)
    _mutate(story, 5, strict=False, throttle_ms=1000)
    return story.lines


def kip_599_burst() -> Scenario:
    """KIP-599: a burst of 560 at Q=5, S=100, W=1 leaves -60, which is 12 s; the next one is refused until then."""
    story = _mutations(100, 1, 5)
    _mutate(story, 560, strict=True, throttle_ms=0)
    _mutate(story, 1, strict=True, throttle_ms=12_000, refused=True)
    story.sleep(11_999)
    _mutate(story, 1, strict=True, throttle_ms=1, refused=True)
    story.sleep(1)
    _mutate(story, 1, strict=True, throttle_ms=0)
    return story.lines


_ANONYMOUS = ("ANONYMOUS", "ANONYMOUS")
_USERS = ("User1", "User2")
_CLIENTS = ("p1", "p2")

QUOTA_CASES: dict[str, Scenario] = {
    "ClientQuotaManagerTest.testClientIdQuotaParsing": quota_parsing(_ANONYMOUS, _CLIENTS, "client"),
    "ClientQuotaManagerTest.testUserQuotaParsing": quota_parsing(_USERS, _CLIENTS, "user"),
    "ClientQuotaManagerTest.testUserClientIdQuotaParsing": quota_parsing(_USERS, _CLIENTS, "both"),
    "ClientQuotaManagerTest.testGetMaxValueInQuotaWindowWithNonDefaultQuotaWindow": largest_value_in_window(),
    "ClientQuotaManagerTest.testSetAndRemoveDefaultUserQuota": set_and_remove({"user": None}),
    "ClientQuotaManagerTest.testSetAndRemoveUserQuota": set_and_remove({"user": "userA"}),
    "ClientQuotaManagerTest.testSetAndRemoveUserClientQuota": set_and_remove(_both("userA", "client1")),
    "ClientQuotaManagerTest.testQuotaConfigPrecedence": precedence(),
    "ClientQuotaManagerTest.testQuotaViolation": quota_violation(),
    "ClientQuotaManagerTest.testClientIdNotSanitized": unsanitised_client_id(),
    "StrictControllerMutationQuotaTest.testControllerMutationQuotaViolation": strict_mutations(),
    "PermissiveControllerMutationQuotaTest.testControllerMutationQuotaViolation": permissive_mutations(),
    "ControllerMutationQuotaManagerTest.testControllerMutationQuotaViolation": mutation_violation(),
    "ControllerMutationQuotaManagerTest.testThrottleTime": mutation_throttle_times(),
    "ControllerMutationQuotaManagerTest.testNewQuotaReturnsUnboundedQuotaWhenDisabled": mutations_without_quota(),
    "TokenBucketTest.testRecord": bucket_record(),
    "TokenBucketTest.testUnrecord": bucket_never_above_burst(),
    "KIP-599.560-mutations": kip_599_burst(),
}
