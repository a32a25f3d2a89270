"""A cluster under traffic while faults and changes happen at random by seed, and the judgement of what it did.

What must hold throughout:
1  No process ends but by a fault, and the cluster serves again when the faults are over.
2  No cap is exceeded: the audit of the journal never says `exceeded`. Afterwards every cap lets in exactly as many as it says.
3  No record that was acknowledged is lost, doubled or out of order.
4  No shard's memory grows beyond MOST_MIB.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from chaos import faults
from chaos.traffic import Churn, Counted
from harness import TURNSTILE, Cluster, admitted, connect, until

from turnstile.admin_client import AdminError

MOST_MIB = 300
JUDGED = ("exceeded", "not justified")
PARTITIONS = 4
OURS = "127.0.0.1:1000"
"""The override of the address that the producer and the consumer connect from: no cap under test is theirs."""
_OURS_EXEMPT = ("--set", f"kafka_connections_max_overrides={OURS}", "--set", f"max.connections.per.ip.overrides={OURS}")
_EXPECTED = (OSError, AdminError, StopIteration)
"""What asking a cluster under faults may raise: it does not answer, or the shard asked for is not there."""


class Chaos:
    """One run. `happened` counts the faults and changes by name; `log` is told each of them."""

    def __init__(
        self, cluster: Cluster, seed: int, *, shards: int, log: Callable[[str], None] = lambda line: None
    ) -> None:
        self.cluster = cluster
        self.happened: Counter[str] = Counter()
        self.peak_mib = 0.0
        self.churn = Churn(lambda: cluster.address, seed)
        self.records = Counted(cluster.bootstrap, "chaos", PARTITIONS)
        self._chance = random.Random(seed)
        self._shards = shards
        self._log = log
        self._stopped: list[tuple[float, int]] = []  # when to resume which process
        self._steps: tuple[tuple[str, int, Callable[[], object]], ...] = (
            ("stop a shard", 4, self._stop_shard),
            ("kill a shard", 3, self._kill_shard),
            ("cut links", 3, self._cut_links),
            ("kill the coordinator", 1, self._kill_coordinator),
            ("stop the supervisor", 1, self._stop_supervisor),
            (
                "fill the disk",
                int(seed % 3 == 0),
                self._fill_disk,
            ),  # events are lost, so that the audit can only say `unknown`
            ("change a cap", 6, self._change_cap),
            ("change a quota", 3, self._change_quota),
            ("change something else", 2, self._change_other),
        )

    def run(self, seconds: float) -> None:
        """Faults for so long; then everything is undone and the traffic ends."""
        self.churn.start()
        self.records.start()
        ends_s = time.monotonic() + seconds
        names = [name for name, _, _ in self._steps]
        weights = [weight for _, weight, _ in self._steps]
        acts = {name: act for name, _, act in self._steps}
        try:
            while time.monotonic() < ends_s:
                time.sleep(self._chance.uniform(0.05, 0.8))
                self._resume_due()
                self.peak_mib = max(self.peak_mib, self._memory_mib())
                name = self._chance.choices(names, weights)[0]
                with contextlib.suppress(*_EXPECTED):
                    said = acts[name]()
                    self.happened[name] += 1
                    self._log(f"{name}: {said}")
        finally:
            self._resume_due(all_of_them=True)
            self.records.stop()
            self.churn.stop()

    def judge(self) -> list[str]:
        """Every way in which an invariant did not hold."""
        found: list[str] = []
        if self.cluster.process.poll() is not None:
            return [f"the cluster ended with {self.cluster.process.returncode}"]
        until(lambda: self.cluster.get("/healthz")["status"] == "ok", within_s=60, what="health")
        found += self._exactness()
        found += self.records.faults()
        if self.peak_mib > MOST_MIB:
            found.append(f"a shard grew to {self.peak_mib:.0f} MiB")
        errors = self.cluster.errors.read_text()
        found += [line for line in errors.splitlines() if "Traceback" in line or '"level": "critical"' in line][:5]
        return found

    def audit(self, journal: Path) -> list[str]:
        """After the cluster has ended: what `turnstile audit` finds exceeded, or not justified."""
        done = subprocess.run([TURNSTILE, "audit", str(journal), "--json"], capture_output=True, text=True, timeout=600)
        try:
            said = json.loads(done.stdout)
        except ValueError:
            return [f"the audit ended with {done.returncode}: {done.stderr[-2000:]}"]
        self._log(f"audit: {said['verdict']} ({said['events']} events)")
        return [f"audit: {check}" for check in said["checks"] if check["verdict"] in JUDGED]

    # Faults

    def _stop_shard(self) -> str:
        return self._stop(self._shard())

    def _stop_supervisor(self) -> str:
        return self._stop(self.cluster.process.pid)

    def _stop(self, pid: int) -> str:
        for_s = self._chance.choice((0.1, 0.5, 2.0, 4.0))
        faults.stop(pid)
        self._stopped.append((time.monotonic() + for_s, pid))
        return f"{pid} for {for_s} s"

    def _kill_shard(self) -> str:
        pid = self._shard()
        faults.kill(pid)
        return str(pid)

    def _kill_coordinator(self) -> str:
        pid = self.cluster.get("/v1/cluster")["coordinator_pid"]
        faults.kill(pid)
        return str(pid)

    def _cut_links(self) -> str:
        pid = self._shard()
        found = faults.links(pid)
        chosen = self._chance.sample(found, min(len(found), self._chance.randint(1, 2)))
        return f"{sum(faults.cut(pid, each) for each in chosen)} of {pid}"

    def _fill_disk(self) -> str:
        with faults.without_space(self.cluster.processes()):
            time.sleep(self._chance.uniform(0.1, 1.0))
        return "for a moment"

    def _resume_due(self, *, all_of_them: bool = False) -> None:
        now_s = time.monotonic()
        for entry in [each for each in self._stopped if all_of_them or each[0] <= now_s]:
            self._stopped.remove(entry)
            faults.resume(entry[1])

    # Changes

    def _change_cap(self) -> str:
        name, values = self._chance.choice(
            (
                ("kafka_connections_max_per_ip", (1, 2, 3, 10, None)),
                ("kafka_connections_max", (20, 40, None)),
                ("max.connections", (15, 50, None)),
                ("max.connections.per.ip", (2, 5, None)),
                ("kafka_connections_max_overrides", ([OURS, "127.1.0.1:1", "127.1.0.8/29:2"], [OURS, "127.1.0.2:0"])),
            )
        )
        value = self._chance.choice(values)
        if value is None:
            self.cluster.unset(name)
        else:
            self.cluster.set(name, value if isinstance(value, list) else str(value))
        return f"{name} {value}"

    def _change_quota(self) -> str:
        entity, key, value = self._chance.choice(
            (
                ({"user": None}, "producer_byte_rate", 20_000.0),
                ({"client-id": "churn"}, "request_percentage", 50.0),
                ({"ip": "127.1.0.3"}, "connection_creation_rate", 5.0),
                ({"ip": None}, "connection_creation_rate", 100.0),
            )
        )
        change = {"set": {key: value}, "remove": []} if self._chance.random() < 0.6 else {"set": {}, "remove": [key]}
        self.cluster.put("/v1/quotas", {"alter": [{"entity": entity, **change}]})
        return f"{entity} {change}"

    def _change_other(self) -> str:
        name = self._chance.choice(("log.retention.ms", "log.segment.bytes"))
        value = self._chance.choice((600_000, 700_000, 800_000))
        self.cluster.set(name, str(value))
        return f"{name} {value}"

    # Judgement

    def _exactness(self) -> list[str]:
        """Every cap off but one: exactly as many get in."""
        for name in ("kafka_connections_max", "max.connections", "max.connections.per.ip"):
            self._lasting(partial(self.cluster.unset, name))
        self._lasting(lambda: self.cluster.set("kafka_connections_max_overrides", [OURS]))
        self._lasting(
            lambda: self.cluster.put(
                "/v1/quotas",
                {
                    "alter": [
                        {"entity": {"ip": each}, "set": {}, "remove": ["connection_creation_rate"]}
                        for each in ("127.1.0.3", None)
                    ]
                },
            )
        )
        self._lasting(lambda: self.cluster.set("kafka_connections_max_per_ip", "7"))
        found = []
        for ip in ("127.1.0.1", "127.1.0.5", "127.1.9.9"):
            held = [connect(self.cluster.address, ip) for _ in range(20)]
            got = sum(map(admitted, held))
            for sock in held:
                sock.close()
            if got != 7:
                found.append(f"{ip}: {got} of 20 got in under a cap of 7")
        return found

    def _lasting(self, change: Callable[[], object]) -> None:
        def done() -> bool:
            with contextlib.suppress(AdminError):
                change()
                return True
            return False

        until(done, within_s=30, what="a change")

    def _shard(self) -> int:
        return self.cluster.shard_pid(self._chance.randrange(self._shards))

    def _memory_mib(self) -> float:
        """The largest resident set of the cluster's processes, in MiB."""
        most = 0
        for pid in self.cluster.processes():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = Path(f"/proc/{pid}/statm").read_text().split()
                most = max(most, int(fields[1]))
        return most * 4096 / 2**20


def chaos(
    data_dir: Path, seed: int, seconds: float, *, shards: int = 2, log: Callable[[str], None] = lambda line: None
) -> list[str]:
    """Everything that went wrong in one run; the cluster is gone afterwards, its data directory is there."""
    cluster = Cluster(data_dir, "--topic", f"chaos:{PARTITIONS}", *_OURS_EXEMPT, shards=shards)
    run = Chaos(cluster, seed, shards=shards, log=log)
    try:
        run.run(seconds)
        found = run.judge()
        log(
            f"{dict(run.happened)}; {dict(run.churn.outcomes)}; {len(run.records.acknowledged)} records acknowledged, "
            f"{len(run.records.failed)} failed; peak {run.peak_mib:.0f} MiB; longest wait {run.churn.longest_s:.1f} s"
        )
    finally:
        if cluster.process.poll() is None:
            try:
                cluster.stop()
            except Exception as error:  # a cluster that doesn't stop is a finding, and must not stay
                cluster.kill()
                found = [*locals().get("found", []), f"stopping: {error!r}"]
    return found + run.audit(data_dir / "journal")
