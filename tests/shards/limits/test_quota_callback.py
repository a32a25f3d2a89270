"""Client quotas by the operator's class: its invariants, and the classes that can't be one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenants import TenantQuotas

from shards.limits.client_quota_managers import PRODUCE, ProduceQuotaManager
from shards.limits.quota_callback import MOST_TAGS, NO_KEY, CallbackQuotaTable, _key_of, _tags_of, make_callback
from shards.settings.errors import ConfigInvalid


class Quotas:
    """The quotas of one kind, and the faults of the class."""

    def __init__(self) -> None:
        self.callback = TenantQuotas()
        self.faults: list[BaseException] = []
        self.table = CallbackQuotaTable(PRODUCE, self.callback, self.faults.append)


@pytest.fixture
def quotas() -> Quotas:
    return Quotas()


def test_clients_of_equal_tags_share_a_meter_and_its_limit(quotas: Quotas) -> None:
    quotas.table.update({"client-id": "acme"}, 100.0)
    manager = ProduceQuotaManager(quotas.table)
    assert manager.record("u", "acme-1", 1500, now_ms=1000).throttle_ms > 0
    assert manager.record("v", "acme-2", 1, now_ms=1001).throttle_ms > 0
    assert manager.record("v", "other-2", 10**9, now_ms=1001).throttle_ms == 0
    assert list(manager.sensors) == [("", "tenant=acme"), ("", "tenant=other")]
    quotas.table.update({"client-id": "acme"}, None)
    assert manager.record("v", "acme-2", 1, now_ms=1002).throttle_ms == 0


def test_tags_of_user_and_client_id_are_a_key_of_kafkas(quotas: Quotas) -> None:
    assert quotas.table.key("alice", "user-1") == ("alice", "user-1")
    assert quotas.table.match("alice", "user-1").entity == {"user": "alice", "client-id": "user-1"}


def test_a_limit_is_asked_again_only_after_a_reset_or_a_change(quotas: Quotas) -> None:
    key = quotas.table.key("u", "acme-1")
    quotas.callback.limits["PRODUCE", "acme"] = 7.0
    assert quotas.table.limit(key) == 7.0
    quotas.callback.limits["PRODUCE", "acme"] = 8.0
    assert quotas.table.limit(quotas.table.key("u", "acme-1")) == 7.0
    quotas.callback.is_reset = True
    assert quotas.table.limit(quotas.table.key("u", "acme-1")) == 8.0
    quotas.table.update({"client-id": "other"}, 3.0)
    quotas.callback.limits["PRODUCE", "acme"] = 9.0
    assert quotas.table.limit(key) == 9.0


def test_the_limit_of_a_key_is_known_to_a_table_that_never_saw_its_client(quotas: Quotas) -> None:
    quotas.table.update({"client-id": "acme"}, 100.0)
    assert quotas.table.limit(("", "tenant=acme")) == 100.0


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["user", "client-id", "a=b", "{", "a,b", ""]
)


@given(st.dictionaries(names, names, max_size=3))
def test_a_key_tells_its_tags_to_a_shard_that_never_saw_the_client(tags: dict[str, str]) -> None:
    key = _key_of(tags)
    assert key != NO_KEY and _tags_of(key) == tags


@given(st.dictionaries(names, names, max_size=3), st.dictionaries(names, names, max_size=3))
def test_other_tags_have_another_key(one: dict[str, str], other: dict[str, str]) -> None:
    assert (_key_of(one) == _key_of(other)) == (one == other)


def test_a_key_that_is_a_digest_has_the_limit_of_its_tags_once_a_client_comes() -> None:
    class ByLength(TenantQuotas):
        def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
            return {"tenant": client_id * 300}

        def quota_limit(self, quota_type: str, metric_tags: Mapping[str, str]) -> float | None:
            return float(len(metric_tags["tenant"]))

    faults: list[BaseException] = []
    seen, new = (CallbackQuotaTable(PRODUCE, ByLength(), faults.append) for _ in range(2))
    key = seen.key("u", "a")
    assert (new.limit(key), new.key("u", "a"), new.limit(key), faults) == (None, key, 300.0, [])


def test_a_class_that_fails_once_is_asked_again(quotas: Quotas) -> None:
    quotas.table.update({"client-id": "acme"}, 100.0)
    sound = quotas.callback.quota_limit
    quotas.callback.quota_limit = lambda quota_type, metric_tags: exit(3)  # type: ignore[method-assign]
    key = quotas.table.key("u", "acme-1")
    assert quotas.table.limit(key) is None and len(quotas.faults) == 1
    quotas.callback.quota_limit = sound  # type: ignore[method-assign]
    assert quotas.table.limit(key) == 100.0


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "many"])
def test_what_a_class_gets_wrong_limits_nobody(quotas: Quotas, wrong: object) -> None:
    quotas.table.update({"client-id": None}, 5.0)
    assert quotas.table.key("u", "fault") == NO_KEY and quotas.table.limit(NO_KEY) is None
    quotas.callback.limits["PRODUCE", "acme"] = wrong  # type: ignore[assignment]
    assert quotas.table.limit(quotas.table.key("u", "acme-1")) is None
    assert len(quotas.faults) == 2


def test_what_is_remembered_is_bounded(quotas: Quotas) -> None:
    for number in range(MOST_TAGS + 10):
        quotas.table.limit(quotas.table.key("u", f"{number}-1"))
    assert len(quotas.table._tags) <= MOST_TAGS and len(quotas.table._limits) <= MOST_TAGS


@pytest.mark.parametrize(
    ("path", "why"),
    [("Tenants", "must be module.Class"), ("no.such.Class", "No module named"), ("tenants.None_", "could not be made"),
     ("tenants.Half", "has no method quota_limit, update_quota"), ("com.acme.Quotas", "it is a Python class here")],
)  # fmt: skip
def test_what_can_not_be_a_class_is_said(path: str, why: str) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        make_callback(path)
