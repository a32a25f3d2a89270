"""Creates the internal topics that a topology lacks, in the name of the member that heartbeats.

created_once  A topic that is being created is not asked for again until that is over; it is asked for by the next heartbeat that
    misses it.

Source: KafkaApis.handleStreamsGroupHeartbeat, AutoTopicCreationManager.createStreamsInternalTopics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.kafka.groups.streams.status import MISSING_INTERNAL_TOPICS, Status
from broker.kafka.groups.streams.topology import InternalTopic
from broker.kafka.remote import ChangeFailed, CoordinatorCalls, ask_coordinator, changed_by
from broker.kafka.security.access import Access
from broker.kafka.security.acl import Operation, ResourceType
from broker.runtime.logger import Logger
from broker.serve.call import Call
from shards.loop.turns import Turns

log = Logger()


class InternalTopics:
    """The internal topics that the members of this shard's connections lack."""

    def __init__(self, mesh: CoordinatorCalls, access: Access, turns: Turns) -> None:
        self._mesh = mesh
        self._access = access
        self._turns = turns
        self._under_way: set[str] = set()

    def create(self, call: Call, topics: Iterable[InternalTopic]) -> Status | None:
        """Begins to create what the client may create; a status that names the others, None: it may create all."""
        missing = list(topics)
        if self._access.is_on and not self._access.may_cluster(call, Operation.CREATE):
            denied = [
                each for each in missing if not self._access.may(call, Operation.CREATE, ResourceType.TOPIC, each.name)
            ]
            if denied:
                names = ",".join(sorted(each.name for each in denied))
                return Status(MISSING_INTERNAL_TOPICS, f"Unauthorized to CREATE on topics {names}.")
        wanted = [each for each in missing if each.name not in self._under_way]
        if wanted:
            self._under_way |= {each.name for each in wanted}
            self._turns.spawn(self._create(changed_by(call), wanted))
        return None

    async def _create(self, who: str, topics: Sequence[InternalTopic]) -> None:
        wanted = [
            [each.name, each.partitions, dict(each.configs), None, each.replication_factor or -1] for each in topics
        ]
        try:
            results = await ask_coordinator(self._mesh, "create_topics", who, wanted, False)
            failed = {each.name: message for each, (error, message) in zip(topics, results, strict=True) if error}
            if failed:
                log.warning("internal topics of a streams group were not created", topics=failed)
        except ChangeFailed as fault:
            log.warning("internal topics of a streams group were not created", error=fault.message)
        finally:
            self._under_way -= {each.name for each in topics}
