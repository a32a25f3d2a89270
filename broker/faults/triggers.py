"""At which calls a fault fires. The coordinator counts, so that `once` is once in the whole cluster. Pure: no clock.

triggers_are_deterministic  The calls of a fault are decided in the order in which they reach the coordinator; the same
    calls and the same seed give the same decisions.
readded_faults_start_anew  A fault that was removed, and is added again, starts anew.
"""

from __future__ import annotations

from random import Random

from shards.config.stored_records import FaultRecord


class Trigger:
    """Decides the calls of one fault: the requests that it matches, or the connections if it ends these."""

    def __init__(self, record: FaultRecord) -> None:
        self._record = record
        self._calls = 0
        self._fired_ms: float | None = None
        self._random = Random(record.get("seed", 0))

    def fires(self, now_ms: float) -> bool:
        """True if the fault is for this call."""
        self._calls += 1
        record = self._record
        if "once" in record:
            return self._calls == 1
        if "on_call" in record:
            return bool(self._calls == record["on_call"])
        if "times" in record:
            return bool(self._calls <= record["times"])
        if "every_ms" in record:
            if self._fired_ms is not None and now_ms - self._fired_ms < record["every_ms"]:
                return False
            self._fired_ms = now_ms
            return True
        return bool(self._random.random() < record.get("probability", 1.0))


class Triggers:
    """The triggers of all faults, by name."""

    def __init__(self) -> None:
        self._triggers: dict[str, Trigger] = {}

    def fires(self, name: str, record: FaultRecord | None, now_ms: float) -> bool:
        """True if the fault `name` is for this call; `record` None: there is no such fault any more."""
        if record is None:
            return False
        if name not in self._triggers:
            self._triggers[name] = Trigger(record)
        return self._triggers[name].fires(now_ms)

    def forget(self, name: str) -> None:
        """The fault was changed or removed."""
        self._triggers.pop(name, None)
