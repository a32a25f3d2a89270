"""A damaged store: what can be read is used, what can't be is said, and no number is given out twice."""

import random
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest
from direct import Cluster

from shards.config.config_state import Change
from shards.config.store import Store
from shards.config.store_recovery import open_store, usable_records

NOW_S = 1_800_000_000.0
TOPIC = {"id": uuid.UUID(int=7).hex, "leaders": [0, 1], "configs": {"retention.ms": "5"}}
GOOD: list[Change] = [
    ("setting", "/kafka_connections_max", "5"),
    ("setting", "/a.setting.of.a.later.release", "x"),
    ("quota", '{"client-id":null,"user":"a"}', {"producer_byte_rate": 5.0}),
    ("user", "alice", {"SCRAM-SHA-256": {"salt": "x"}}),
    ("topic", "orders", TOPIC),
]


def aside(path: Path, why: str) -> str:
    target = f"{path}.damaged-1"
    path.rename(target)
    return target


def opened(path: Path, topics: dict[str, dict[str, Any]] | None = None) -> tuple[Store, list[str]]:
    return open_store(path, now_s=NOW_S, set_aside=aside, topics_on_disk=lambda: topics or {})


def filled(path: Path, count: int = 2000) -> None:
    store = Store(path)
    topics = [("topic", f"t{n}", None, {**TOPIC, "id": uuid.uuid4().hex}) for n in range(count)]
    store.commit(1.0, "me", [(kind, key, None, value) for kind, key, value in GOOD] + topics)
    store.allocate("producer_id", 5000)
    store.close()


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("setting", "/metric.reporters", "[x"),
        ("setting", "/turnstile.request.cost", "Produce=" + "9" * 400 + "us"),
        ("setting", "/kafka_connections_max", 5),
        ("quota", '{"user":"a"}', {"request_percentage": float("inf")}),
        ("quota", '{"user":"a"}', {"request_percentage": float("nan")}),
        ("quota", '{"user":["a"]}', {"producer_byte_rate": 5.0}),
        ("quota", '{"user":"a"', {"producer_byte_rate": 5.0}),
        ("quota", '{"user":"a"}', [5]),
        ("user", "alice", ["x"]),
        ("topic", "t", {"id": "no uuid", "leaders": [0], "configs": {}}),
        ("topic", "t", {"leaders": [0], "configs": {}}),
        ("topic", "t", {**TOPIC, "leaders": ["0"]}),
        ("topic", "t", {**TOPIC, "replicas": [[0]]}),
        ("topic", "t", {**TOPIC, "replicas": [[0], [0]]}),
        ("topic", "t", {**TOPIC, "replicas": [0, 1]}),
        ("topic", "t", {**TOPIC, "configs": {"retention.ms": "many"}}),
        ("topic", "a/b", TOPIC),
        ("gadget", "x", {}),
    ],
)
def test_a_record_that_cannot_be_used_is_left_out_and_said(kind: str, key: str, value: Any) -> None:
    good, faults = usable_records([*GOOD, (kind, key, value)])
    assert good == GOOD
    assert len(faults) == 1 and faults[0].startswith(f"{kind} ") and "counts as not set" in faults[0]


async def test_a_coordinator_starts_without_the_part_that_it_cannot_use(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    store.commit(1.0, "me", [(kind, key, None, value) for kind, key, value in GOOD])
    store._db.execute("INSERT INTO record VALUES ('setting', '/metric.reporters', '\"[x\"')")
    store._db.execute("INSERT INTO record VALUES ('quota', '{\"user\":\"b\"}', 'no JSON')")
    cluster = Cluster(store)
    await cluster.start()
    assert cluster.shards[0, 0].image.rule_of("broker").cap == 5
    assert len(cluster.coordinator.lost) == 2
    assert await cluster.coordinator.alter_settings("me", [["", "metric.reporters", "a,b"]])
    assert Cluster(store).coordinator.state.settings["/metric.reporters"] == "a,b"
    store.close()


def test_a_setting_whose_other_was_lost_counts_as_not_set(tmp_path):
    store = Store(tmp_path / "cluster.sqlite")
    store.commit(1.0, "me", [("setting", "/max.connections.per.ip", None, "0")])
    store._db.execute("INSERT INTO record VALUES ('setting', '/max.connections.per.ip.overrides', 'no JSON')")
    coordinator = Cluster(store).coordinator
    assert coordinator.state.settings == {}
    assert any("max.connections.per.ip counts as not set" in sentence for sentence in coordinator.lost)
    store.close()


def damages(path: Path) -> dict[str, bytes]:
    whole, chance = path.read_bytes(), random.Random(1)
    flipped = bytearray(whole)
    for _ in range(200):
        flipped[chance.randrange(200, len(whole))] ^= 255
    return {
        "empty": b"",
        "one page": whole[:4096],
        "a third": whole[: len(whole) // 3],
        "all but a page": whole[:-4096],
        "no header": b"garbage!" * 20 + whole[160:],
        "flipped": bytes(flipped),
        "random": chance.randbytes(len(whole)),
    }


@pytest.mark.parametrize("how", ["empty", "one page", "a third", "all but a page", "no header", "flipped", "random"])
def test_a_damaged_file_is_set_aside_and_the_cluster_starts(tmp_path, how):
    path = tmp_path / "cluster.sqlite"
    filled(path)
    damaged = damages(path)[how]
    path.write_bytes(damaged)
    store, lost = opened(path, {"orders": TOPIC, "t0": TOPIC, "only-files": TOPIC})
    assert (tmp_path / "cluster.sqlite.damaged-1").exists()
    assert "cluster.sqlite.damaged-1" in lost[0] and "damaged" in lost[0]
    topics = {key for kind, key, _ in store.records() if kind == "topic"}
    assert topics >= {"orders", "t0", "only-files"}
    assert store.version > NOW_S
    assert store.allocate("producer_id", 10) > 5000
    store.close()
    again, nothing = opened(path)
    assert nothing == [] and again.version > NOW_S
    again.close()


def test_what_a_damaged_file_still_gives_is_in_the_new_one(tmp_path):
    path = tmp_path / "cluster.sqlite"
    filled(path)
    path.write_bytes(path.read_bytes()[:-4096])
    store, _ = opened(path)
    records = store.records()
    assert [record for record in records if record[0] != "topic"] == sorted(GOOD[:4])
    assert len(records) > 1000
    store.close()


def test_a_missing_store_is_a_loss_only_where_topics_have_files(tmp_path):
    store, lost = opened(tmp_path / "new.sqlite")
    assert lost == [] and store.version == 0
    store.close()
    store, lost = opened(tmp_path / "gone.sqlite", {"orders": TOPIC})
    assert store.records() == [("topic", "orders", TOPIC)]
    assert "gone.sqlite is missing" in lost[0]
    store.close()


def test_a_store_that_is_well_is_opened_as_it_is(tmp_path):
    path = tmp_path / "cluster.sqlite"
    filled(path, 3)
    store, lost = opened(path, {"other": TOPIC})
    assert lost == []
    assert [record for record in store.records() if record[0] != "topic"] == sorted(GOOD[:4])
    store.close()


def test_a_failing_check_is_not_taken_for_damage(tmp_path):
    path = tmp_path / "cluster.sqlite"
    filled(path, 3)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        store, lost = opened(path)
        store.close()
    except Exception as error:
        assert "can't be used" in str(error) and "locked" in str(error)
    else:
        assert lost == []
    finally:
        other.close()
    assert path.exists()
