"""The use of each limit, the closest to being reached first: of brokers, listeners, addresses, users and clients.

A limit holds on each broker by itself, so no use here is a sum over brokers but that of the whole cluster. Shards name the
addresses and clients that are closest (broker/process/fullest_limits.py, bounded), and are then asked how many connections
these have; their answers are summed.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Final, NamedTuple

from broker.admin.images import Images
from broker.admin.sampler import Sample, Sampler
from broker.admin.uses import (
    CONNECTIONS,
    NEW_CONNECTIONS,
    ConnectionRate,
    Use,
    connection_uses,
    in_use,
    is_of_many,
    observed_cluster_rate,
    rate_uses,
    told_broker,
)
from broker.admin.utilisation_answers import CloseRow, LimitOf, Utilisation, UtilisationAnswer
from shards.config.coordinator import Coordinator
from shards.limits.caps import CLUSTER
from shards.limits.utilisation import NO_LIMITS, CloseLimits, Fullest, level_of, utilisation
from shards.ownership import BrokerShard
from shards.quotas.meters import QuotaUse
from shards.settings.broker_config import EVERY_BROKER

CLIENT: Final = "client"


class ClientUse(NamedTuple):
    """A client's use of its quota on one broker."""

    broker: int
    quota: QuotaUse


class LimitKind(NamedTuple):
    """The key of limits that are counted together: of one broker and one measure (`what`: as of Use, or a quota's key), and `of`
    the broker and its listeners, the whole cluster (EVERY_BROKER), addresses, users or clients."""

    broker: int
    what: str
    of: LimitOf


class AddressesAtHome(NamedTuple):
    """The addresses at home on one shard of a broker that are closest to their caps, and how many are close. Tokens that other
    shards cache count as used."""

    broker: int
    addresses: list[str]
    close: CloseLimits


class Closest(NamedTuple):
    """The limits closest to being reached, of all shards. `close`: how many are close, of all limits but addresses'
    caps; of users' caps by the tokens granted."""

    homes: list[AddressesAtHome]
    users: list[str]
    rates: list[ConnectionRate]
    quotas: list[ClientUse]
    close: Mapping[LimitKind, CloseLimits]

    @property
    def addresses(self) -> list[str]:
        """Each once."""
        return list(dict.fromkeys(ip for home in self.homes for ip in home.addresses))

    @property
    def pools(self) -> list[str]:
        """The pools of these addresses and users."""
        return [*(f"ip:{ip}" for ip in self.addresses), *(f"user:{name}" for name in self.users)]


def closest(answers: Mapping[BrokerShard, Mapping[str, Any]], most: int) -> Closest:
    """The closest limits in what shards answer to describe_fullest: the `most` closest addresses of each, and all that may be
    close."""
    homes: list[AddressesAtHome] = []
    users: dict[str, None] = {}
    rates: list[ConnectionRate] = []
    quotas: list[ClientUse] = []
    close: dict[LimitKind, CloseLimits] = {}
    for (broker, _), answer in answers.items():
        out = CloseLimits(*answer["close"])
        homes.append(AddressesAtHome(broker, answer["addresses"][: max(most, out.high)], out))
        users |= dict.fromkeys(answer["users"][:most])
        rates += [ConnectionRate(broker, key, per_s) for key, per_s in answer["rates"]]
        quotas += [ClientUse(broker, QuotaUse(*use)) for use in answer["quotas"]]
        counts: dict[LimitKind, Iterable[int]] = {
            **{LimitKind(broker, NEW_CONNECTIONS, of): counted for of, counted in answer["close_rates"].items()},
            LimitKind(broker, CONNECTIONS, "user"): answer["close_users"],
            **{LimitKind(broker, quota, CLIENT): counted for quota, counted in answer["close_quotas"].items()},
        }
        for kind, counted in counts.items():
            close[kind] = close.get(kind, NO_LIMITS).plus(CloseLimits(*counted))
    return Closest(homes, list(users), rates, quotas, close)


class Utilised(NamedTuple):
    """Every limit that is known, the closest to being reached first, and the number of close ones of each kind that has any."""

    limits: list[Utilisation]
    close: list[CloseRow]


def utilised(uses: Iterable[Use], found: Closest) -> Utilised:
    """The utilisation of brokers, listeners and addresses (`uses`) and of clients."""
    known = list(uses)
    limits = sorted([*map(_of_use, known), *map(_of_client, found.quotas)], key=_order)
    close = dict(found.close)
    for home in found.homes:
        kind = LimitKind(home.broker, CONNECTIONS, "ip")
        close[kind] = close.get(kind, NO_LIMITS).plus(_close_addresses(home, known))
    return Utilised(limits, list(_close_rows(limits, close)))


def _close_addresses(home: AddressesAtHome, uses: Iterable[Use]) -> CloseLimits:
    """The number of limits that are close, by the connections that are open; by the tokens granted where the shard lists fewer
    addresses than may be close."""
    if home.close.high > len(home.addresses):
        return home.close
    shares = {
        use.of: utilisation(use.used, use.limit) for use in uses if (use.broker, use.what) == (home.broker, CONNECTIONS)
    }
    seen: Fullest[str] = Fullest(1)
    for ip in home.addresses:
        seen.look(ip, shares.get(f"ip:{ip}", 0.0))
    seen.end_turn()
    return seen.close._replace(limits=home.close.limits)


def _close_rows(limits: Iterable[Utilisation], close: Mapping[LimitKind, CloseLimits]) -> Iterator[CloseRow]:
    of_brokers: dict[LimitKind, Fullest[str]] = {}
    for row in limits:
        if row["of"] != CLIENT and not is_of_many(row["of"]):
            broker = EVERY_BROKER if row["broker"] is None else row["broker"]
            kind = LimitKind(broker, row["what"], "cluster" if row["of"] == CLUSTER else "broker")
            of_brokers.setdefault(kind, Fullest(1)).look(row["of"], utilisation(row["used"], row["limit"]))
    counted = dict(close)
    for kind, seen in of_brokers.items():
        seen.end_turn()
        counted[kind] = seen.close
    for kind, each in sorted(counted.items()):
        if each.limits:
            yield {
                "broker": told_broker(kind.broker), "what": kind.what, "of": kind.of, "high": each.high, "near": each.near,
                "full": each.full, "limits": each.limits,
            }  # fmt: skip


def _of_use(use: Use) -> Utilisation:
    share = utilisation(use.used, use.limit)
    return {
        "broker": told_broker(use.broker), "what": use.what, "of": use.of, "user": None, "client_id": None, "used": use.used,
        "limit": use.limit, "percent": _percent(share), "level": level_of(share).value, "by": use.by,
    }  # fmt: skip


def _of_client(use: ClientUse) -> Utilisation:
    quota, share = use.quota, utilisation(use.quota.used, use.quota.limit)
    return {
        "broker": use.broker, "what": quota.kind, "of": CLIENT, "user": quota.user, "client_id": quota.client_id,
        "used": round(quota.used, 3), "limit": quota.limit, "percent": _percent(share), "level": level_of(share).value,
        "by": quota.kind,
    }  # fmt: skip


def _percent(share: float) -> float | None:
    """Rounded down, so that 100 is said only of a limit that is reached."""
    return None if share == float("inf") else int(share * 1000 + 1e-9) / 10


def _order(row: Utilisation) -> tuple[float, str, str, str, str, int]:
    share = utilisation(row["used"], row["limit"])
    return -share, row["what"], row["of"], row["user"] or "", row["client_id"] or "", row["broker"] or 0


class UtilisationView:
    """Asks the shards."""

    def __init__(self, coordinator: Coordinator, sampler: Sampler, images: Images) -> None:
        self._coordinator = coordinator
        self._sampler = sampler
        self._images = images

    async def closest(self, most: int) -> Closest:
        """The limits closest to being reached, of each shard the `most` closest addresses."""
        return closest(await self._coordinator.ask_all("describe_fullest"), most)

    async def utilised(self, most: int) -> Utilised:
        """See Utilised. Exact for the `most` closest of addresses."""
        found = await self.closest(most)
        listeners = [f"listener:{name}" for name in self._sampler.layout.listeners]
        pools = [CLUSTER, "broker", "broker:all", "ssl", *listeners, *found.pools]
        used: Counter[tuple[int, str]] = in_use(await self._coordinator.ask_all("describe_tokens", pools))
        capped = connection_uses(self._images, self._coordinator.state.brokers, pools, used)
        uses = [use for use in capped if use.used or not is_of_many(use.of)]
        return utilised([*uses, *self.rate_uses(found.rates)], found)

    async def answer(self, most: int) -> UtilisationAnswer:
        """The answer with at most `most` limits of addresses and clients."""
        known = await self.utilised(most)
        many = count()
        limits = [row for row in known.limits if not _is_of_many(row) or next(many) < most]
        return {"at": time.time(), "limits": limits, "close": known.close}

    def observed_cluster_rate(self) -> Use | None:
        """The use of the observed rate of the whole cluster; None: none is observed."""
        return observed_cluster_rate(self._images, self._sampler, self._window())

    def rate_uses(self, of_many: Iterable[ConnectionRate]) -> list[Use]:
        """The use of each creation rate, averaged over the quota window: of brokers, listeners, and these addresses and
        users."""
        return rate_uses(self._images, self._sampler, self._window(), of_many)

    def _window(self) -> tuple[Sample, Sample]:
        samples, size_ms = self._images.of(0).limits.window
        return self._sampler.window(samples * size_ms / 1000)


def _is_of_many(row: Utilisation) -> bool:
    return row["of"] == CLIENT or is_of_many(row["of"])
