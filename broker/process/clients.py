"""The clients' side of one shard: its listeners, and what these share, from the dispatcher to the memory for answers.

`Clients` is made with the shard. Its listeners open later, when the shard knows its configuration, as that says whether
requests are guarded, how much memory they may take, and which faults are set.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable
from functools import partial

from broker.accept.shard_listeners import ShardListeners
from broker.faults.injection import Faults
from broker.metrics.outcomes import Outcomes
from broker.metrics.source_counts import SourceCounts
from broker.process.kafka import Kafka
from broker.runtime.shard_context import ShardContext
from broker.serve.authentication import Authentication
from broker.serve.credential_shapes import CredentialShapes
from broker.serve.delegation_token_cache import DelegationTokenCache
from broker.serve.dispatch import Dispatcher
from broker.serve.key_derivation import KeyDerivation
from broker.serve.muted import Muted
from broker.serve.observation import Observation
from broker.serve.open_connections import OpenConnections
from broker.serve.prepared_answers import PreparedAnswers
from broker.serve.redpanda_quotas import RedpandaQuotas
from broker.serve.refused_connection import RefusedServing
from broker.serve.request_memory import AnswerMemory, RequestMemory
from broker.serve.request_queue import RequestQueue
from broker.serve.request_queue_metrics import RequestQueueMetrics
from broker.serve.sasl import Users
from broker.serve.serving import Serving
from broker.serve.throttling import Throttling
from broker.serve.throughput_limit import ThroughputLimit
from broker.serve.tls import context_of
from broker.serve.user_admission import UserAdmission
from shards.config.cluster_plan import ClusterPlan, ListenerEndpoint
from shards.config.proxy_option import proxy_option
from shards.config.stored_records import UserRecord
from shards.loop.turns import Turns
from shards.mesh.mesh import COORDINATOR, Mesh
from shards.quotas.shared_throughput import SharedThroughput


class Clients:
    """`connections`: those that are open. `tokens`: the delegation tokens that clients may log in by."""

    def __init__(
        self,
        plan: ClusterPlan,
        context: ShardContext,
        *,
        throttling: Throttling,
        throughput: SharedThroughput,
        buckets: RedpandaQuotas,
        tokens: DelegationTokenCache,
    ) -> None:
        self._context = context
        self._throttling = throttling
        self._throughput = ThroughputLimit(throughput, buckets, context)
        self.connections = OpenConnections(context.image, context.poller)
        self.muted = Muted(context.timers)
        self.sources = SourceCounts()
        self._users = Users(self._find_user, plan.scram_secret, CredentialShapes(context.image).of, tokens.login)
        self._queue: RequestQueue | None = None  # `open` makes this and the next four
        self._queue_metrics: RequestQueueMetrics | None = None
        self._requests: RequestMemory | None = None
        self._faults: Faults | None = None
        self._answers: AnswerMemory

    def open(
        self,
        sockets: Iterable[tuple[ListenerEndpoint, socket.socket]],
        listeners: ShardListeners,
        kafka: Kafka,
        mesh: Mesh,
        turns: Turns,
        keys: KeyDerivation,
    ) -> None:
        """Begins to accept connections on the listening sockets. Called once, when the image has the configuration."""
        context = self._context
        image, timers = context.image, context.timers
        self._answers = AnswerMemory(image.get("turnstile.queued.max.response.bytes"))
        requests = self._requests = RequestMemory(
            image.get("queued.max.request.bytes"), partial(timers.after, 0), lambda: context.poller.now_ns
        )
        queue = self._open_queue(requests)
        dispatcher = Dispatcher(
            kafka.routes_of_clients(),
            kafka.versions_of_clients().unsupported,
            self._throttling,
            turns,
            PreparedAnswers(image),
            self._throughput,
            most_items=image.get("turnstile.request.max.items"),
        )
        observation = Observation(context)
        faults = self._faults = Faults(
            context,
            self.connections,
            dispatcher.answer,
            partial(mesh.call, COORDINATOR, "fault_fires"),
            lambda answer: observation.around(queue.around(answer)),
        )
        faults.image_changed({"fault"})
        for endpoint, sock in sockets:
            outcomes = Outcomes(endpoint.listener, context.journal, context.counters, context.top_talkers, self.sources)
            admission = UserAdmission(context, listeners.rates, outcomes, listeners.observed_world.users.came_in)
            serving = Serving(
                context,
                outcomes,
                sock.family,
                dispatcher,
                open_connections=self.connections,
                muted=self.muted,
                requests=requests,
                answers=self._answers,
                max_frame_bytes=image.get("socket.request.max.bytes"),
                authentication=partial(self._authentication, keys, admission) if "sasl" in endpoint.options else None,
                tls=context_of(endpoint),
            )
            faults.attach(serving)
            refusing = RefusedServing(serving, dispatcher, image, turns, sock.family).open
            option = proxy_option(endpoint.listener, endpoint.options)
            if option is None:
                listeners.open(outcomes, sock, serving.open, answering=refusing)
            else:
                listeners.open_behind_proxies(
                    outcomes, sock, option, serving.open, serving.open_announced, answering=refusing
                )

    def _open_queue(self, requests: RequestMemory) -> RequestQueue:
        queue = self._queue = RequestQueue(self._context, self.muted, requests)
        queue.follow()
        self._queue_metrics = RequestQueueMetrics(queue, self._context.counters)
        return queue

    def image_changed(self, kinds: Collection[str]) -> None:
        """Follows a new version of the image. Before `open` there are no faults to change: `open` reads all of them."""
        self._throughput.follow()
        if self._queue is not None:
            self._queue.follow()
        if self._faults is not None:
            self._faults.image_changed(kinds)

    def room(self, most_bytes: int) -> int:
        """The size that an answer may have now, `most_bytes` or less, in bytes. Only after `open`."""
        return self._answers.most_bytes(most_bytes)

    def tick(self) -> None:
        """Ends requests whose bytes do not arrive, and updates the metrics of the queue. Called a few times a second."""
        if self._requests is not None and self._queue_metrics is not None:
            self._requests.tick()
            self._queue_metrics.set()

    def describe_gauges(self) -> list[list[object]]:
        """[[metric name, {label: value}, number]]."""
        return [] if self._queue_metrics is None else self._queue_metrics.describe()

    def reset(self) -> None:
        """Drops the requests of connections that were closed."""
        if self._queue is not None:
            self._queue.reset()

    def describe_faults(self) -> dict[str, int]:
        """The number of times each fault fired here."""
        return {} if self._faults is None else self._faults.describe()

    def _find_user(self, name: str) -> UserRecord | None:
        return self._context.image.users.get(name)

    def _authentication(self, keys: KeyDerivation, admission: UserAdmission) -> Authentication:
        context = self._context
        return Authentication(context.image, context.counters, context.timers, self._users, keys, admission)
