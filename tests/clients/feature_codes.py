"""A conversation about features, elections, log directories and the quorum, to be compared with Apache Kafka 4.3's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from harness import until
from wired import Dialogue, wired

UPGRADE, SAFE, UNSAFE = 1, 2, 3
TIMEOUT = timedelta(seconds=20)


class Conversation(Dialogue):
    def features(self, version: int = 4) -> list[Any]:
        """[supported, finalized]: {name: [least, most level]}."""
        named = {"client_software_name": "x", "client_software_version": "1"}
        answer = self.wire.ask("api_versions", version, **named)
        supported = {each.name: [each.min_version, each.max_version] for each in answer.supported_features}
        final = {each.name: [each.min_version_level, each.max_version_level] for each in answer.finalized_features}
        return [dict(sorted(each.items())) for each in (supported, final)]

    def update(self, *updates: tuple[str, int, int], dry: bool = False, version: int = 2) -> list[Any]:
        key = self.wire.types("update_features", version).FeatureUpdateKey
        keys = tuple(key(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates)
        more = {"validate_only": dry} if version else {}
        answer = self.wire.ask("update_features", version, timeout=TIMEOUT, feature_updates=keys, **more)
        results = getattr(answer, "results", ()) if version < 2 else ()
        return [answer.error_code, answer.error_message, [[e.feature, e.error_code, e.error_message] for e in results]]

    def finalized(self, name: str) -> int:
        return self.features()[1].get(name, [0, 0])[1]


def converse(bootstrap: str, topic: str) -> list[list[Any]]:
    with wired(bootstrap) as wire:
        talk = Conversation(wire)
        for part in (_features, _updates, _elections, _directories, _quorum):
            part(talk, topic)
        return talk.said


def _features(talk: Conversation, topic: str) -> None:
    for version in (3, 4):
        talk.say(f"features, version {version}", talk.features(version))


def _updates(talk: Conversation, topic: str) -> None:
    say, update = talk.say, talk.update
    say("no update", update())
    say("unknown", update(("no.such", 1, UPGRADE)))
    say("unknown to 0", update(("no.such", 0, SAFE)))
    say("negative", update(("transaction.version", -1, SAFE)))
    say("too high", update(("transaction.version", 3, UPGRADE)))
    say("kind of update", update(("transaction.version", 1, 4)))
    say("kind of update 0", update(("transaction.version", 1, 0)))
    say("same level", update(("transaction.version", 2, UPGRADE)))
    say("same level, as a downgrade", update(("transaction.version", 2, SAFE)))
    say("down without saying so", update(("transaction.version", 1, UPGRADE)))
    say("down, dry", update(("transaction.version", 1, SAFE), dry=True))
    say("down", update(("transaction.version", 1, SAFE)))
    until(lambda: talk.finalized("transaction.version") == 1, what="the level is known")
    say("features", talk.features())
    say("up as a downgrade", update(("transaction.version", 2, SAFE)))
    say("to 0", update(("transaction.version", 0, SAFE)))
    until(lambda: talk.finalized("transaction.version") == 0, what="the level is known")
    say("features without it", talk.features())
    say("one of two is wrong", update(("transaction.version", 2, UPGRADE), ("group.version", 9, UPGRADE)))
    say("up, by version 1", update(("transaction.version", 2, UPGRADE), version=1))
    until(lambda: talk.finalized("transaction.version") == 2, what="the level is known")
    say("wrong, by version 1", update(("transaction.version", 3, UPGRADE), version=1))
    say("twice", update(("transaction.version", 1, SAFE), ("transaction.version", 2, UPGRADE), dry=True))
    for name, levels in {
        "metadata.version": (6, 7, 14, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31),
        "kraft.version": (0, 1, 2),
        "group.version": (0, 1, 2),
        "eligible.leader.replicas.version": (0, 1, 2),
        "share.version": (0, 1, 2),
        "streams.version": (0, 1, 2),
    }.items():
        for level in levels:
            for kind in (UPGRADE, SAFE, UNSAFE):
                say(f"{name} {level} {kind}, dry", update((name, level, kind), dry=True))


def _elections(talk: Conversation, topic: str) -> None:
    types = talk.wire.types("elect_leaders", 2)
    made = talk.wire.types("create_topics", 7)
    wanted = made.CreatableTopic(name=topic, num_partitions=2, replication_factor=1, assignments=(), configs=())
    talk.wire.ask("create_topics", 7, topics=(wanted,), timeout=TIMEOUT)

    def elect(kind: int, *partitions: int, name: str = topic, every: bool = False) -> list[Any]:
        asked = None if every else (types.TopicPartitions(topic=name, partitions=partitions),)
        answer = talk.wire.ask("elect_leaders", 2, election_type=kind, topic_partitions=asked, timeout=TIMEOUT)
        told = [
            [result.topic == topic, [[e.partition_id, e.error_code, e.error_message] for e in result.partition_result]]
            for result in answer.replica_election_results
        ]
        return [answer.error_code, told if not every else [each for each in told if each[0]]]

    until(lambda: elect(0, 0)[1][0][1][0][1] == 84, what="the topic is there")
    for kind in (0, 1):
        talk.say(f"elect, {kind}", elect(kind, 0, 1))
        talk.say(f"elect a partition that is not there, {kind}", elect(kind, 7))
        talk.say(f"elect a topic that is not there, {kind}", elect(kind, 0, name="none"))
        talk.say(f"elect all, {kind}", elect(kind, every=True))
    talk.say("elect, of no kind", elect(2, 0)[0])


def _directories(talk: Conversation, topic: str) -> None:
    types = talk.wire.types("alter_replica_log_dirs", 2)
    own = talk.wire.ask("describe_log_dirs", 4, topics=None).results[0].log_dir

    def move(path: str, name: str, *partitions: int) -> list[list[int]]:
        topics = (types.AlterReplicaLogDirTopic(name=name, partitions=partitions),)
        answer = talk.wire.ask("alter_replica_log_dirs", 2, dirs=(types.AlterReplicaLogDir(path=path, topics=topics),))
        return sorted([e.partition_index, e.error_code] for result in answer.results for e in result.partitions)

    talk.say("move to where it is", move(own, topic, 0, 1))
    talk.say("move one that is not there", [move(own, topic, 7), move(own, "none", 0)])
    talk.say("move to nowhere", [move("/no/such", topic, 0), move("relative", topic, 0), move("/no/such", "none", 0)])


def _quorum(talk: Conversation, topic: str) -> None:
    def describe(name: str, *partitions: int, version: int = 2) -> list[Any]:
        types = talk.wire.types("describe_quorum", version)
        asked = tuple(types.PartitionData(partition_index=number) for number in partitions)
        answer = talk.wire.ask("describe_quorum", version, topics=(types.TopicData(topic_name=name, partitions=asked),))
        told = [
            [p.partition_index, p.error_code, p.error_message if version > 1 else None, p.leader_id, p.leader_epoch > 0,
             p.high_watermark > 0, [v.replica_id for v in p.current_voters], [o.replica_id for o in p.observers]]
            for t in answer.topics for p in t.partitions
        ]  # fmt: skip
        return [answer.error_code, answer.error_message if version > 1 else None, told]

    for version in (0, 1, 2):
        talk.say(f"quorum, version {version}", describe("__cluster_metadata", 0, version=version))
    talk.say("another partition", describe("__cluster_metadata", 1))
    talk.say("another topic", describe("none", 0))
