"""Clients that exceed quotas on purpose: `insist` produces in spite of its throttle times, `mutate` creates topic after topic."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from secrets import token_hex

from turnstile.load import unthrottled_client
from turnstile.load.throttles import Throttles
from turnstile.load.traffic_order import TrafficCounts, TrafficOrder
from turnstile.load.unthrottled_client import UnthrottledClient

THROTTLING_QUOTA_EXCEEDED = 89
_RETRY_S = 0.2
_PATIENCE_S = 0.2


def insist(order: TrafficOrder, stop_asked: Callable[[], bool]) -> TrafficCounts:
    """Produces without end. A throttled client comes back at once on a new connection, which is not muted."""
    client = UnthrottledClient(order["bootstrap"], order["client_id"], order["user"], order["password"])
    throttles, done, batch, number = Throttles(), Counter[str](), unthrottled_client.one_record(order["size_bytes"]), 0
    began = time.monotonic()
    while not stop_asked():
        _pace(began, number, order["records_per_s"])
        try:
            error, throttle_ms = unthrottled_client.produce(client, order["topic"], number % order["partitions"], batch)
        except OSError:
            done["failed"] += 1
            time.sleep(_RETRY_S)
            continue
        number += 1
        done["failed" if error else "produced"] += 1
        throttles.add(throttle_ms)
        if throttle_ms:
            client.close()
    client.close()
    throttled = {order["label"]: throttles.as_json()}
    return {"produced": done["produced"], "failed": done["failed"], "connections": client.made, "throttled": throttled}


def mutate(order: TrafficOrder, stop_asked: Callable[[], bool]) -> TrafficCounts:
    """Creates topics at the ordered rate. A throttled client goes on at once, on a new connection, which is not muted."""
    client = UnthrottledClient(order["bootstrap"], order["client_id"], order["user"], order["password"])
    of_this_run = token_hex(4)  # the topics of an earlier run may still be there
    throttles, done, number = Throttles(), Counter[str](), 0
    began = time.monotonic()
    while not stop_asked():
        _pace(began, number, order["topics_per_s"])
        number += 1
        try:
            name = f"{order['topic']}-{of_this_run}-{number}"
            error, throttle_ms = unthrottled_client.create_topic(client, name, order["partitions"])
        except OSError:
            done["failed"] += 1
            time.sleep(_RETRY_S)
            continue
        done[{0: "created", THROTTLING_QUOTA_EXCEEDED: "rejected"}.get(error, "failed")] += 1
        throttles.add(throttle_ms)
        if throttle_ms:
            client.close()
    client.close()
    return {
        "created": done["created"],
        "rejected": done["rejected"],
        "failed": done["failed"],
        "connections": client.made,
        "throttled": {order["label"]: throttles.as_json()},
    }


def _pace(began: float, number: int, per_s: float) -> None:
    """Sleeps until request `number` is due, for _PATIENCE_S at most: then the caller looks whether it has to stop."""
    due_s = began + number / per_s - time.monotonic()
    if due_s > 0:
        time.sleep(min(due_s, _PATIENCE_S))
