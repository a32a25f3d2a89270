"""A cluster for a Python program: started by `with`, asked and changed while it runs, gone at the end.

in_force_when_returned  When `start` returns, every shard accepts connections; when a change returns, it is enforced on
    every shard.
nothing_left_after_stop  When `stop` returns, or `start` raises, no process of the cluster is left, and no file unless
    `data_dir` was given. If this process is killed, the cluster ends too.
counts_since_reset  `refusals` and `throttled` count from the last `reset` on, or from the start.

The cluster is the one that `turnstile up` starts, in processes of its own; nothing of it runs in this one.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from turnstile.admin_client import AdminClient, AdminError
from turnstile.cluster_changes import ClusterChanges
from turnstile.cluster_process import ClusterError, ClusterProcess
from turnstile.settings import as_setting, as_text

if TYPE_CHECKING:
    from broker.admin.cluster_answers import Explanation, ShardRow
    from turnstile.verdict.run import Verdict, VerdictOptions

_RESTART_WITHIN_S = 10.0


@dataclass(frozen=True)
class Refusals:
    """Refused connections. `by_ip` has the addresses refused most: {address: {reason: count}}."""

    total: int
    admitted: int
    by_reason: Mapping[str, int] = field(default_factory=dict)
    by_ip: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Throttled:
    """The requests that a client quota throttled, and the sum of their throttle times in milliseconds."""

    requests: int
    throttle_ms: int


class ClusterWarning(UserWarning):
    """The cluster has started, but differs from the options in one thing, such as a topic of `data_dir` with more partitions."""


class Cluster(ClusterChanges):
    """Brokers of a Kafka-compatible cluster on free ports of 127.0.0.1.

    `limits`: settings by name, such as {"max.connections": 100}, or by one of the short names of `settings.SHORT`.
    `quotas`: {"user=alice,client-id=app": {"producer_byte_rate": 1e6}}. `topics`: {name: partitions}, or names.
    `users`: {name: password}. `listeners`: as `turnstile up --listener` takes them. `observe`: limits on connections that are
    observed instead of enforced. `reset` brings all of them back.
    `like`: the name of a managed cluster, whose published limits hold unless `limits` has others (`turnstile presets`).
    `as_version`: the Kafka release that the cluster poses as, such as "3.6" (docs/configuration.md).
    All options override what an earlier run has stored in `data_dir`, as `turnstile up --override-stored` does.
    """

    def __init__(
        self,
        *,
        limits: Mapping[str, object] | None = None,
        quotas: Mapping[str, Mapping[str, float]] | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        brokers: int = 1,
        shards: int = 2,
        listeners: Iterable[str] = (),
        observe: Mapping[str, object] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        like: str | None = None,
        as_version: str | None = None,
    ) -> None:
        self._quotas = dict(quotas or {})
        self._users = dict(users or {})
        self._options = ["--brokers", str(brokers), "--shards", str(shards), "--admin-port", "0"]
        chosen = [word for listener in _texts(listeners) for word in ("--listener", listener)]
        self._options += [*(chosen or ["--port", "0"]), "--override-stored"]
        for name, value in (limits or {}).items():
            if value is not None:
                self._options += ["--set", f"{as_setting(name)}={as_text(value)}"]
        for name, value in (observe or {}).items():
            if value is not None:
                self._options += ["--observe", f"{as_setting(name)}={as_text(value)}"]
        for name, count in (topics if isinstance(topics, Mapping) else dict.fromkeys(_texts(topics), 1)).items():
            self._options += ["--topic", f"{name}:{count}"]
        if like is not None:
            self._options += ["--like", like]
        if as_version is not None:
            self._options += ["--as-version", as_version]
        self._keeps_data = data_dir is not None
        if data_dir is not None:
            self._options += ["--data-dir", os.fspath(data_dir)]
        self._process: ClusterProcess | None = None
        self._admin: AdminClient
        self._before: dict[str, int] = {}
        self._listeners: dict[str, list[str]] = {}
        self.data_dir: Path
        """The folder of logs, offsets and the journal while the cluster runs."""
        self.notes: list[str]
        """Sentences about limits in force, such as one that admits no connection, and about stored values that were replaced."""

    # Start and end

    def start(self) -> Cluster:
        """Starts the cluster; returns when it answers. Raises ClusterError, and AdminError for an invalid quota or user."""
        if self._process is not None:
            return self
        self._process = ClusterProcess(self._options, keeps_data=self._keeps_data)
        report = self._process.told
        self.data_dir = Path(report["data_dir"])
        self.notes = report["notes"]
        for sentence in report["overruled"]:
            warnings.warn(sentence, ClusterWarning, stacklevel=2)
        self._admin = AdminClient(report["admin"], who="turnstile.Cluster")
        self._listeners = {}
        for each in report["listeners"]:
            self._listeners.setdefault(each["name"], []).append(each["address"])
        try:
            self._add_quotas_and_users()
            self._before = self._counted()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends the cluster in order; kills it if that takes too long. In a fork of the program it does nothing."""
        if self._process is not None:
            self._process.stop()
            self._process = None
            self._admin.close()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Where it is

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers on the first listener, for `bootstrap.servers`. Raises ClusterError."""
        self._running()
        return ",".join(next(iter(self._listeners.values())))

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of all brokers on another listener, for `bootstrap.servers`. Raises ClusterError, KeyError."""
        self._running()
        return ",".join(self._listeners[listener.upper()])

    @property
    def admin(self) -> AdminClient:
        """A client of the admin API, for all that this class has no method for. Raises ClusterError."""
        self._running()
        return self._admin

    @property
    def is_running(self) -> bool:
        """True if the cluster was started and has not ended."""
        return self._process is not None and self._process.ended() is None

    def _running(self) -> None:
        if self._process is None:
            raise ClusterError("the cluster is not running: start it, or use it in a `with` block")
        why = self._process.ended()
        if why is not None:
            raise ClusterError(f"the cluster has ended: {why}")

    # Change it

    def reset(self) -> None:
        """Brings the cluster back to its start, in milliseconds: no records, groups or connections, and all counts here at 0."""
        self.admin.post("/v1/reset")
        self._add_quotas_and_users()
        self._before = self._counted()

    def kill_shard(self, shard: int = 0, broker: int = 0) -> None:
        """Kills a shard process (kill -9); returns when its successor accepts connections. Raises ClusterError, AdminError."""
        before = self._shard(broker, shard)
        os.kill(before["pid"], signal.SIGKILL)
        deadline = time.monotonic() + _RESTART_WITHIN_S
        while time.monotonic() < deadline:
            now = self._shard(broker, shard)
            if now["epoch"] != before["epoch"] and now["state"] == "up":
                return
            time.sleep(0.005)
        raise ClusterError(f"shard {shard} of broker {broker} did not come back within {_RESTART_WITHIN_S:.0f} s")

    def _shard(self, broker: int, shard: int) -> ShardRow:
        rows: list[ShardRow] = self.admin.get("/v1/shards")["shards"]
        found = [row for row in rows if (row["broker"], row["shard"]) == (broker, shard)]
        if not found:
            raise ClusterError(f"there is no shard {shard} of broker {broker}")
        return found[0]

    def _add_quotas_and_users(self) -> None:
        for entity, rates in self._quotas.items():
            self.quota(entity, **rates)
        for name, password in self._users.items():
            self.user(name, password)

    # Ask it

    def refusals(self) -> Refusals:
        """The connections that were refused since the last reset, by reason and by address."""
        # The counters last: a shard counts a refusal just after it has closed the socket, which the client may see at once.
        rows = self.admin.get("/v1/refusals", by="ip")["refusals"]
        now = self._counted()
        reasons = {
            name.removeprefix("refused "): now[name] - self._before.get(name, 0)
            for name in now
            if name.startswith("refused ")
        }
        return Refusals(
            total=sum(reasons.values()),
            admitted=now["admitted"] - self._before.get("admitted", 0),
            by_reason={reason: count for reason, count in reasons.items() if count},
            by_ip={row["ip"]: row["reasons"] for row in rows},
        )

    def throttled(self) -> dict[str, Throttled]:
        """The requests that were throttled since the last reset, by quota, such as `producer_byte_rate`."""
        now, before = self._counted(), self._before
        found = {}
        for name in now:
            if name.startswith("requests "):
                kind = name.removeprefix("requests ")
                requests, delay = (now[each] - before.get(each, 0) for each in (name, f"ms {kind}"))
                if requests:
                    found[kind] = Throttled(requests, delay)
        return found

    def connections(self, ip: str | None = None) -> int:
        """The number of open connections, of all addresses or of one."""
        if ip is None:
            return sum(row["connections"] for row in self.admin.get("/v1/shards")["shards"])
        pools = [pool for broker in self.explain(ip=ip)["brokers"] for pool in broker["connections"]]
        return sum(pool["in_use"] for pool in pools if pool["pool"].startswith("ip:"))

    def explain(self, *, ip: str | None = None, user: str | None = None, client_id: str | None = None) -> Explanation:
        """The limits that hold for an address or a client: the setting that each comes from, and its use now."""
        found: Explanation = self.admin.get("/v1/explain", **{"ip": ip, "user": user, "client-id": client_id})
        return found

    def _counted(self) -> dict[str, int]:
        """The cluster's counters, which a reset leaves alone."""
        totals = self.admin.get("/v1/live")["totals"]
        return {
            "admitted": totals["admitted"],
            **{f"refused {reason}": count for reason, count in totals["refused"].items()},
            **{f"requests {kind}": each["requests"] for kind, each in totals["throttled"].items()},
            **{f"ms {kind}": each["throttle_ms"] for kind, each in totals["throttled"].items()},
        }

    # Judge a client

    def verdict(self, client: Sequence[str], **options: Unpack[VerdictOptions]) -> Verdict:
        """Judges how a client behaves when this cluster throttles and refuses it. `client`: the command of a program.

        `options`: `checks`, their names; `times`, a turnstile.verdict.times.Times; `seed`. Raises CannotJudge.
        """
        from turnstile.verdict.run import run

        self._running()
        return run(self, self.data_dir / "journal", client, **options)

    # As testcontainers' KafkaContainer has it

    def get_bootstrap_server(self) -> str:
        """`bootstrap`."""
        return self.bootstrap


def _texts(given: Iterable[str]) -> list[str]:
    """A text by itself is one name, not a name for each of its letters."""
    return [given] if isinstance(given, str) else list(given)


__all__ = ["AdminError", "Cluster", "ClusterError", "ClusterWarning", "Refusals", "Throttled"]
