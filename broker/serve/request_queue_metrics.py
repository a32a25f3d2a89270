"""The request queue of a shard in its counters and gauges; with the queue off all stand still.

Kafka's names, as the JMX exporter's example rules spell them: RequestQueueSize, and the mean of RequestHandlerAvgIdlePercent, which
is there while the queue is on. Of RequestQueueTimeMs there are sum and count, of all APIs together.
"""

from __future__ import annotations

from broker.metrics.shard_counters import ShardCounters
from broker.serve.request_queue import RequestQueue

_IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"


class RequestQueueMetrics:
    """The counters and gauges of one queue."""

    def __init__(self, queue: RequestQueue, counters: ShardCounters) -> None:
        self._queue = queue
        self._counters = counters
        self._counted: dict[str, int] = {}

    def set(self) -> None:
        """Brings the counters up to date; to be called a few times a second."""
        queue, counters = self._queue, self._counters
        counters.set("request_queue", queue.queued)
        counters.set("request_handlers", queue.size)
        for name, value in (
            ("requests_handled", queue.taken),
            ("request_queue_ns", queue.waited_ns),
            ("request_handlers_busy_ns", queue.busy_ns()),
            ("network_thread_blocked_ns", queue.blocked_ns),
        ):
            counters.add(name, value - self._counted.get(name, 0))
            self._counted[name] = value

    def describe(self) -> list[list[object]]:
        """[[metric name, {label: value}, number]]."""
        return [[_IDLE, {}, self._queue.part_of_idle_share()]] if self._queue.is_on else []
