"""A conversation about client telemetry and the configs behind it, right and wrong, to be compared with Apache Kafka 4.3's.

Kafka takes telemetry while a plugin does: scripts/peers/kafka/TelemetryReceiver.java. Ids are told as whether they are there.
"""

from __future__ import annotations

import gzip
from typing import Any
from uuid import UUID, uuid4

from harness import until
from wired import Dialogue, wired

CLIENT_METRICS, GROUP = 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SETTINGS = {"telemetry.max.bytes": "1000"}
KAFKA = {**SETTINGS, "metric.reporters": "TelemetryReceiver"}
HOUR = "3600000"
OTHER_DEFAULT = "streams.initial.rebalance.delay.ms"
"""Its default here is not Kafka's: it is not compared."""
FOR_ME = "client_id=wired,client_software_name=turn.*"


class Conversation(Dialogue):
    # ---- configs

    def alter(self, kind: int, name: str, *edits: tuple[str, int, str | None]) -> list[Any]:
        types = self.wire.types("incremental_alter_configs", 1)
        configs = tuple(types.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in edits)
        resource = types.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        (found,) = self.wire.ask("incremental_alter_configs", 1, resources=(resource,)).responses
        return [found.error_code, found.error_message]

    def describe(self, kind: int, name: str) -> Any:
        types = self.wire.types("describe_configs", 4)
        asked = (types.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None),)
        answer = self.wire.ask(
            "describe_configs", 4, resources=asked, include_synonyms=True, include_documentation=True
        ).results[0]
        if answer.error_code:
            return [answer.error_code, answer.error_message]
        return {
            each.name: [
                each.value, each.config_source, each.config_type, each.read_only, each.is_sensitive,
                [[one.name, one.value, one.source] for one in each.synonyms], each.documentation[:40],
            ]
            for each in sorted(answer.configs, key=lambda each: each.name)
            if each.name != OTHER_DEFAULT
        }  # fmt: skip

    def listed(self, version: int, *kinds: int) -> Any:
        fields = {"resource_types": kinds} if version else {}
        answer = self.wire.ask("list_config_resources", version, **fields)
        found = answer.config_resources
        kinds = [each.resource_type if version else CLIENT_METRICS for each in found]
        return [answer.error_code, sorted([kind, each.resource_name] for kind, each in zip(kinds, found, strict=True))]

    def subscribe(self, name: str, **configs: str | None) -> None:
        """Has a subscription be asked of clients."""
        edits = [(key.replace("_", "."), DELETE if text is None else SET, text) for key, text in configs.items()]
        assert self.alter(CLIENT_METRICS, name, *edits)[0] == 0
        wanted = {key: text for key, _, text in edits if text is not None}

        def known() -> bool:
            told = {key: found[0] for key, found in self.describe(CLIENT_METRICS, name).items() if found[1] == 7}
            return told == wanted and ([CLIENT_METRICS, name] in self.listed(0)[1]) == bool(wanted)

        until(known, what="the subscription is known")

    # ---- telemetry

    def get(self, instance_id: UUID | None = None) -> tuple[list[Any], Any]:
        answer = self.wire.ask("get_telemetry_subscriptions", 0, client_instance_id=instance_id)
        told = [
            answer.error_code, answer.client_instance_id not in (None, UUID(int=0)), sorted(answer.requested_metrics),
            int(answer.push_interval.total_seconds() * 1000), [*answer.accepted_compression_types],
            answer.telemetry_max_bytes, answer.delta_temporality,
        ]  # fmt: skip
        return told, answer

    def push(
        self, instance_id: UUID | None, subscription_id: int, metrics: bytes = b"", codec: int = 0, last: bool = False
    ) -> int:
        answer = self.wire.ask(
            "push_telemetry", 0, client_instance_id=instance_id, subscription_id=subscription_id, terminating=last,
            compression_type=codec, metrics=metrics,
        )  # fmt: skip
        code: int = answer.error_code
        return code

    def client(self) -> tuple[UUID, int]:
        """A new instance that has asked for its subscriptions."""
        answer = self.get()[1]
        return answer.client_instance_id, answer.subscription_id


def converse(bootstrap: str) -> list[list[Any]]:
    with wired(bootstrap) as wire:
        wire.ask("api_versions", 3, client_software_name="turnstile-tests", client_software_version="1.0")
        talk = Conversation(wire)
        for part in (_resources, _subscriptions, _pushes, _changes, _groups):
            part(talk)
        return talk.said


def _resources(talk: Conversation) -> None:
    """Client metrics resources as configs."""
    say, alter = talk.say, talk.alter
    say("describe one without a name", talk.describe(CLIENT_METRICS, ""))
    say("describe one that is not there", talk.describe(CLIENT_METRICS, "none"))
    say("list none", [talk.listed(0), talk.listed(1, CLIENT_METRICS)])
    say("no name", alter(CLIENT_METRICS, "", ("metrics", SET, "*")))
    say("no such config", alter(CLIENT_METRICS, "a", ("metric", SET, "*")))
    say("interval too short", alter(CLIENT_METRICS, "a", ("interval.ms", SET, "99")))
    say("interval too long", alter(CLIENT_METRICS, "a", ("interval.ms", SET, "3600001")))
    say("interval that is no number", alter(CLIENT_METRICS, "a", ("interval.ms", SET, "often"))[0])
    for match in ("client_id", "nobody=x", "client_id=a=b", "client_id=[", "client_id=", "client_id=a,x=y"):
        say(f"match {match}", alter(CLIENT_METRICS, "a", ("match", SET, match)))
    say("null", alter(CLIENT_METRICS, "a", ("metrics", SET, None)))
    say("append to a number", alter(CLIENT_METRICS, "a", ("interval.ms", APPEND, "5")))
    say("delete what is not set", alter(CLIENT_METRICS, "a", ("interval.ms", DELETE, None)))
    say("list still none", talk.listed(0))
    talk.subscribe("a", metrics="org.one.,org.two.", interval_ms=HOUR, match="client_id=other")
    say("describe", talk.describe(CLIENT_METRICS, "a"))
    say("append", alter(CLIENT_METRICS, "a", ("metrics", APPEND, "org.three.,org.one.")))
    say("subtract", alter(CLIENT_METRICS, "a", ("metrics", SUBTRACT, "org.one.")))
    say("list", [talk.listed(0), talk.listed(1, CLIENT_METRICS)])
    say("list what is unknown", talk.listed(1, 3))
    say("list all", sorted({kind for kind, _ in talk.listed(1)[1]}))


def _subscriptions(talk: Conversation) -> None:
    """What is asked of a client."""
    say = talk.say
    say("nothing is asked", talk.get()[0])
    talk.subscribe("mine", metrics="org.mine.", interval_ms=HOUR, match=FOR_ME)
    say("one subscription", talk.get()[0])
    talk.subscribe("more", metrics="org.more.,org.mine.", interval_ms="60000", match="client_source_address=127.*")
    say("two subscriptions", talk.get()[0])
    talk.subscribe(
        "all", metrics="*", interval_ms="200000", match=r"client_software_version=1\.0,client_source_port=[0-9]+"
    )
    say("everything", talk.get()[0])
    talk.subscribe("none", interval_ms="100", match="client_id=wire")
    say("a pattern is of the whole", talk.get()[0])
    for name in ("more", "all", "none"):
        talk.subscribe(name, metrics=None, interval_ms=None, match=None)
    chosen = UUID("6f1f0cb2-5f0c-4c53-8f0c-0123456789ab")
    told, answer = talk.get(chosen)
    say("an id of its own", [told, answer.client_instance_id == chosen, answer.subscription_id])
    told, answer = talk.get(chosen)
    say("again at once", [told, answer.subscription_id])
    say("the id of topics", talk.get(UUID(int=1))[0])


def _pushes(talk: Conversation) -> None:
    """Of subscription `mine`, once an hour."""
    say, push = talk.say, talk.push
    say("push without an id", push(None, 0))
    say("push with a reserved id", push(UUID(int=1), 0))
    say("push of an unknown instance", push(uuid4(), 0, b"x"))
    instance, asked = talk.client()
    say("push", push(instance, asked, b"metrics"))
    say("push again at once", push(instance, asked, b"metrics"))
    say("ask again at once", talk.get(instance)[0])
    say("the last push, at once", push(instance, asked, b"metrics", last=True))
    say("after the last push", [push(instance, asked), push(instance, asked), push(instance, asked, last=True)])
    say("and then", [push(instance, asked), push(instance, asked, last=True), push(instance, asked, last=True)])
    instance, asked = talk.client()
    say("another subscription's id", push(instance, asked + 1, b"metrics"))
    say("then its own", push(instance, asked, b"metrics"))
    say("ask again after that", talk.get(instance)[0])
    for codec in (1, 2, 3, 4, 5, -1):
        instance, asked = talk.client()
        say(f"codec {codec}, no metrics", push(instance, asked, b"", codec))
        instance, asked = talk.client()
        say(f"codec {codec}, other bytes", push(instance, asked, b"no such thing", codec))
    instance, asked = talk.client()
    say("gzip", push(instance, asked, gzip.compress(b"metrics"), 1))
    for size in (1000, 1001):
        instance, asked = talk.client()
        say(f"{size} bytes", push(instance, asked, bytes(size)))
    instance, asked = talk.client()
    say("too much and wrong", [push(instance, asked + 1, bytes(2000), 9), push(instance, asked, bytes(2000), 9)])


def _changes(talk: Conversation) -> None:
    """A subscription that changes under a client, and goes."""
    say, push = talk.say, talk.push
    instance, asked = talk.client()
    say("push before", push(instance, asked, b"metrics"))
    talk.subscribe("mine", metrics="org.other.", interval_ms=HOUR, match=FOR_ME)
    say("push of the old one", push(instance, asked, b"metrics"))
    told, answer = talk.get(instance)
    say("asked for at once after that", told)
    say("asked for once more", talk.get(instance)[0])
    say("and pushed at once", push(instance, answer.subscription_id, b"metrics"))
    instance, asked = talk.client()
    say("an unknown codec", push(instance, asked, b"metrics", 9))
    say("asked for after that", talk.get(instance)[0])
    say("pushed at once", push(instance, asked, b"metrics"))
    instance, asked = talk.client()
    talk.subscribe("mine", metrics="org.mine.", interval_ms=HOUR, match=FOR_ME)
    told, answer = talk.get(instance)
    say("asked for at once", [told, answer.subscription_id != asked])
    say("push of the new one", push(instance, answer.subscription_id, b"metrics"))
    talk.subscribe("mine", metrics=None, interval_ms=None, match=None)
    talk.subscribe("a", metrics=None, interval_ms=None, match=None)
    say("nothing is asked any more", [talk.get(instance)[0], talk.listed(0)])


def _groups(talk: Conversation) -> None:
    """Configs of groups."""
    say = talk.say

    def alter(*edits: tuple[str, int, str | None], name: str = "g") -> list[Any]:
        return talk.alter(GROUP, name, *edits)

    say("describe a group without a name", talk.describe(GROUP, ""))
    say("describe a group", talk.describe(GROUP, "g"))
    say("list no group", talk.listed(1, GROUP))
    say("alter one without a name", alter(("consumer.session.timeout.ms", SET, "46000"), name=""))
    say("no such group config", alter(("session.timeout.ms", SET, "46000")))
    for name, values in {
        "consumer.session.timeout.ms": ("44999", "60001", "0", "x"),
        "consumer.heartbeat.interval.ms": ("4999", "15001"),
        "share.session.timeout.ms": ("1", "60001"),
        "share.heartbeat.interval.ms": ("4999", "15001"),
        "share.record.lock.duration.ms": ("999", "14999", "60001"),
        "share.delivery.count.limit": ("1", "11"),
        "share.partition.max.record.locks": ("99", "4001"),
        "share.assignment.interval.ms": ("-1", "15001"),
        "share.auto.offset.reset": ("none",),
        "share.isolation.level": ("none",),
        "streams.session.timeout.ms": ("44999", "60001"),
        "streams.heartbeat.interval.ms": ("4999", "15001"),
        "streams.num.standby.replicas": ("-1", "3"),
    }.items():
        for value in values:
            code, message = alter((name, SET, value))
            say(f"{name}={value}", [code, message if message.startswith(f"{name} must be") else ""])
    say("append to a group's number", alter(("consumer.session.timeout.ms", APPEND, "1")))
    say("delete a group's config that is not set", alter(("consumer.session.timeout.ms", DELETE, None)))
    wanted = {
        "consumer.session.timeout.ms": "50000",
        "share.auto.offset.reset": "earliest",
        "streams.num.standby.replicas": "2",
    }
    say("alter", alter(*((name, SET, value) for name, value in wanted.items())))
    _until_group(talk, wanted)
    say("describe the group", talk.describe(GROUP, "g"))
    say("list the group", talk.listed(1, GROUP))
    say("delete", alter(*((name, DELETE, None) for name in wanted)))
    _until_group(talk, {})


def _until_group(talk: Conversation, wanted: dict[str, str]) -> None:
    def known() -> bool:
        return {name: each[0] for name, each in talk.describe(GROUP, "g").items() if each[1] == 8} == wanted

    until(known, what="the group's configs are known")
