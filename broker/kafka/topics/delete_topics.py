"""DeleteTopics 1-6, by name or, from version 6, by id (KIP-516). Source: ControllerApis of Kafka 4.1."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from broker.kafka.api_error import NO_ERROR, ApiError
from broker.kafka.remote import spawned
from broker.kafka.security.guarded_route import GuardedRoute
from broker.kafka.topics import guards
from broker.kafka.topics.topic_mutations import DUPLICATE, TopicMutations, repeated
from broker.serve.call import Call
from broker.wire import codes
from broker.wire.codec import Message
from shards.config.image import ClusterImage
from shards.loop.deferred import Spawn

if TYPE_CHECKING:
    from broker.wire.requests import DeleteTopicsRequest
    from broker.wire.responses import DeleteTopicsTypes


def routes(image: ClusterImage, mutations: TopicMutations, spawn: Spawn) -> list[GuardedRoute]:
    return [GuardedRoute(20, spawned(spawn, _DeleteTopics(image, mutations).delete), guards.delete_topics)]


class _NamedTopic(NamedTuple):
    """A topic to delete. `name`: "" if `error` is an error."""

    name: str
    error: ApiError


class _DeleteTopics:
    def __init__(self, image: ClusterImage, mutations: TopicMutations) -> None:
        self._image = image
        self._mutations = mutations

    async def delete(self, request: DeleteTopicsRequest, call: Call[DeleteTopicsTypes]) -> Message:
        types = call.types
        if call.api_version >= 6:
            asked = [(topic.name, topic.topic_id) for topic in request.topics]
        else:
            asked = [(name, None) for name in request.topic_names]
        named = [self._name(name, topic_id) for name, topic_id in asked]
        twice = repeated(name for name, error in named if not error.code)
        names = [name for name, error in named if not error.code and name not in twice]
        ids = {name: topic.id for name in names if (topic := self._image.topics.get(name)) is not None}
        sizes = {name: len(topic.leaders) for name in names if (topic := self._image.topics.get(name)) is not None}
        if not self._image.get("delete.topic.enable"):
            sizes = {}
        errors = await self._mutations.mutate("delete_topics", call, dict.fromkeys(names), sizes) if names else {}
        errors |= dict.fromkeys(twice, DUPLICATE)
        results = []
        answered = set()
        for (asked_name, topic_id), (name, error) in zip(asked, named, strict=True):
            if not error.code:
                if name in answered:
                    continue
                answered.add(name)
                error = errors.get(name, NO_ERROR)
            found_id = topic_id or (ids.get(name) if not error.code else None)
            shown = asked_name if error.code else name
            results.append(
                types.DeletableTopicResult(
                    name=shown, topic_id=found_id, error_code=error.code, error_message=error.message
                )
            )
        return types.DeleteTopicsResponse(responses=tuple(results))

    def _name(self, name: str | None, topic_id: uuid.UUID | None) -> _NamedTopic:
        """The topic that a request names by name or by id."""
        if name is not None and topic_id:
            return _NamedTopic("", ApiError(codes.INVALID_REQUEST, "You may not specify both topic name and topic id."))
        if name is not None:
            return _NamedTopic(name, NO_ERROR)
        if not topic_id:
            return _NamedTopic("", ApiError(codes.INVALID_REQUEST, "Neither topic name nor id were specified."))
        topic = self._image.topics.by_id(topic_id)
        if topic is None:
            return _NamedTopic("", ApiError(codes.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."))
        return _NamedTopic(topic.name, NO_ERROR)
