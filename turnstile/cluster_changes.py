"""Changes of a running cluster, by its admin API: settings, quotas, addresses, users, faults and telemetry subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from turnstile.admin_client import AdminClient
from turnstile.options import FaultKind, FaultOptions, SetFault
from turnstile.settings import as_entity, as_setting, as_text

if TYPE_CHECKING:
    from shards.config.advertised_changes import AdvertisedAddress


@dataclass(frozen=True)
class WouldRefuse:
    """Connections that were admitted, and that observed caps would have `refused`, or would have let wait (`waited`: for
    a slot of max.connections, or for a rate); `undecided`: no home answered. `by_ip`: {address: {reason: count}}."""

    refused: int
    waited: int
    undecided: int
    by_ip: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class WouldThrottle:
    """Requests that observed client quotas would have throttled, for how long in all, and `refused` mutations. `by_client`:
    {(user, client id): requests}."""

    requests: int
    throttle_ms: int
    refused: int
    by_client: Mapping[tuple[str, str], int] = field(default_factory=dict)


class ClusterChanges:
    """The changes of a running cluster, also one of another process. A change is in force when its method returns."""

    @property
    def admin(self) -> AdminClient:
        """The admin API."""
        raise NotImplementedError

    def set(self, settings: Mapping[str, object] | None = None, /, **named: object) -> None:
        """Sets settings: set({"max.connections": 10}) or set(per_ip=5). None takes a setting back to its default.

        Raises AdminError, with one sentence for each setting that is refused; then none is set.
        """
        wanted = {as_setting(name): value for name, value in {**(settings or {}), **named}.items()}
        upsert = {name: as_text(value) for name, value in wanted.items() if value is not None}
        remove = [name for name, value in wanted.items() if value is None]
        self.admin.put("/v1/cluster_config", {"upsert": upsert, "remove": remove})

    def observe(self, settings: Mapping[str, object] | None = None, /, **named: object) -> None:
        """Observes limits on connections instead of enforcing them (shadow mode, dry run): observe(per_ip=50). Observed limits
        refuse no connection; `would_refuse` counts those that they would have refused. None ends it.

        Raises AdminError, with one sentence for each setting that can't be observed.
        """
        wanted = {as_setting(name): value for name, value in {**(settings or {}), **named}.items()}
        upsert = {name: as_text(value) for name, value in wanted.items() if value is not None}
        remove = [name for name, value in wanted.items() if value is None]
        self.admin.put("/v1/cluster_config", {"upsert": upsert, "remove": remove}, observe=True)

    def would_refuse(self) -> WouldRefuse:
        """The connections that observed limits would have refused since these were last changed. All 0 while none is observed."""
        rows = self.admin.get("/v1/refusals", observed=True, by="ip")
        summary = rows["summary"] or {"refused": 0, "waited": 0, "undecided": 0}
        by_ip = {row["ip"]: row["reasons"] for row in rows["refusals"]}
        return WouldRefuse(summary["refused"], summary["waited"], summary["undecided"], by_ip)

    def quota(self, entity: str | Mapping[str, str | None], /, **rates: float | None) -> None:
        """Sets quotas of an entity: quota("user=alice", producer_byte_rate=1e6). None removes a quota.

        Raises AdminError.
        """
        self._put_quotas(entity, rates, observe=None)

    def observe_quota(self, entity: str | Mapping[str, str | None], /, **rates: float | None) -> None:
        """Observes client quotas instead of enforcing them (shadow mode, dry run); arguments as of `quota`. Observed quotas
        throttle no client; `would_throttle` counts the requests that they would have throttled. None ends it.

        Raises AdminError.
        """
        self._put_quotas(entity, rates, observe=True)

    def would_throttle(self) -> WouldThrottle:
        """The requests that observed client quotas would have throttled since these were last changed."""
        answer = self.admin.get("/v1/quotas/observed")
        by_client = {(row["user"], row["client_id"]): row["requests"] for row in answer["clients"]}
        refused = sum(row["refused"] for row in answer["quotas"])
        return WouldThrottle(answer["requests"], answer["throttle_ms"], refused, by_client)

    def _put_quotas(
        self, entity: str | Mapping[str, str | None], rates: Mapping[str, float | None], *, observe: bool | None
    ) -> None:
        given = {key: float(rate) for key, rate in rates.items() if rate is not None}
        remove = [key for key, rate in rates.items() if rate is None]
        change = {"entity": as_entity(entity), "set": given, "remove": remove}
        self.admin.put("/v1/quotas", {"alter": [change]}, observe=observe)

    def advertise(self, listener: str | None, /, *addresses: str, broker: int | None = None) -> None:
        """Sets the advertised addresses of a listener, one for each broker: advertise("EDGE", "localhost:32801"). "auto" advertises
        to each client the address that it connected to, which may be wrong. Without addresses, those of the start are advertised
        again. `listener` None: the only one of the cluster. `broker`: only this broker. `reset` leaves advertised addresses.

        Raises AdminError.
        """
        if addresses:
            given = {"listener": listener, "broker": broker, "addresses": list(addresses)}
            self.admin.put("/v1/advertise", {name: value for name, value in given.items() if value is not None})
        else:
            self.admin.delete("/v1/advertise", listener=listener, broker=broker)

    def advertised(self) -> list[AdvertisedAddress]:
        """The advertised address of each listener of each broker: `address`, its `source`, and whether it is a `guess`."""
        found: list[AdvertisedAddress] = self.admin.get("/v1/advertise")["advertised"]
        return found

    def user(self, name: str, password: str | None) -> None:
        """Adds a user for listeners with SASL, or changes its password; None removes the user. Raises AdminError."""
        self.admin.put("/v1/users", {"name": name, "password": password})

    def fault(self, kind: FaultKind, /, **what: Unpack[FaultOptions]) -> str:
        """Adds a fault, and returns its name: fault("error", api="Produce", error="NOT_LEADER_OR_FOLLOWER", times=2).

        `kind` and `what`: docs/faults.md. Raises AdminError.
        """
        names: list[str] = self.admin.put("/v1/faults", {"add": [{"kind": kind, **what}]})["names"]
        return names[0]

    def remove_fault(self, *names: str) -> None:
        """Ends faults; without a name, all of them. Raises AdminError."""
        remove = list(names) or [fault["name"] for fault in self.faults()]
        self.admin.put("/v1/faults", {"remove": remove})

    def faults(self) -> list[SetFault]:
        """The faults that are set, and how often each has `fired`."""
        found: list[SetFault] = self.admin.get("/v1/faults")["faults"]
        return found

    def telemetry(self, name: str, /, **configs: str | float | None) -> None:
        """A client metrics resource (KIP-714) in force when this returns: telemetry("all", metrics="*", interval_ms=1000,
        match="client_id=orders.*"). None: the default again; without any config it is gone. Raises AdminError."""
        texts = {key.replace("_", "."): None if value is None else str(value) for key, value in configs.items()}
        self.admin.put("/v1/telemetry", {"name": name, "configs": texts})
