"""Makes Kafka's internal topics when a client first asks for a coordinator of that kind, as Kafka does.

Kafka answers COORDINATOR_NOT_AVAILABLE until the topic is there. Here the answer waits for the topic, and comes without it if
it can't be made now: groups and transactions do not need it, and the next client that asks is another occasion.
Source: KafkaApis.getCoordinator, AutoTopicCreationManager of Kafka 4.1.
"""

from __future__ import annotations

from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by
from broker.runtime.logger import Logger
from broker.serve.call import Call
from shards.config.image import ClusterImage
from shards.config.internal_topics import CONFIGS
from shards.loop.deferred import Deferred, MaybeDeferred, Spawn

log = Logger()


class InternalTopics:
    """Creates internal topics for one shard's clients; all that wait for a topic wait for one request to the coordinator."""

    def __init__(self, image: ClusterImage, mesh: CoordinatorCalls, spawn: Spawn) -> None:
        self._image = image
        self._mesh = mesh
        self._spawn = spawn
        self._waiting: dict[str, list[Deferred[None]]] = {}

    def make(self, name: str, call: Call) -> MaybeDeferred[None]:
        """The topic is there, or can't be made now."""
        if name in self._image.topics:
            return None
        first = name not in self._waiting
        answer: Deferred[None] = Deferred()
        self._waiting.setdefault(name, []).append(answer)
        if first:
            self._spawn(self._make(name, changed_by(call)))
        return answer

    async def _make(self, name: str, who: str) -> None:
        try:
            await ask_coordinator(self._mesh, "create_topics", who, [[name, -1, CONFIGS[name]]], False)
        except ChangeFailed as fault:
            log.warning("an internal topic was not made; it will be tried again", topic=name, error=str(fault))
        finally:
            for answer in self._waiting.pop(name):
                answer.resolve(None)
