"""The units of creation rates that homes journaled, and whether one Kafka broker would have recorded them, too."""

import json
from bisect import bisect_left
from collections import Counter, defaultdict

from shards.config.image import ClusterImage
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas, RateReplay

PASS_MS = 500


def assert_recorded_as_by_one_broker(events):
    """Every unit that a home ever recorded was within its quota, by Kafka's arithmetic and the home's own clock: the
    sequence of units is one that a single broker admits, to the millisecond. And it refused none that this broker admits:
    with one unit more, every violation was one."""
    images = _images(events)
    homes = {}
    for event in sorted(_of_rates(events), key=lambda event: (event["epoch"], event["shard"], event["seq"])):
        image = images[event["version"]]
        window = Window(image.get("quota.window.num"), image.get("quota.window.size.seconds") * 1000)
        place = event["shard"], event["epoch"]
        home = homes.setdefault(place, RateReplay(window))
        beyond = home.event(event["detail"], lambda key, image=image: quotas_of(image, key), window)
        assert (beyond, home.unfounded) == (0, 0), event
    assert homes


def assert_units_cover(events, pool, arrived):
    """No connection of `arrived`, (mono_ns, shard) each, went on without a unit of `pool`, granted to its shard before."""
    granted = defaultdict(list)
    for event in _of_rates(events):
        detail = event["detail"]
        if detail["pool"] == pool and event["kind"] == "grant" and detail.get("charged", True):
            granted[detail["to"]].append((event["mono_ns"], detail["tokens"]))
    steps = [(at_ns, 0, shard, units) for shard, grants in granted.items() for at_ns, units in grants]
    steps += [(at_ns, 1, shard, -1) for at_ns, shard in arrived]
    left = Counter()
    for at_ns, _, shard, units in sorted(steps):
        left[shard] += units
        assert left[shard] >= 0, f"shard {shard} let one in without a unit of {pool}, at {at_ns}"


def assert_refused_while_violated(events, ip, refused):
    """Each of these refusals has a violation of the address's rate that its home found since the connection arrived.

    The home notes the time at which its pass of the loop began, which on a busy machine is up to PASS_MS earlier.
    """
    pool = f"rate:ip:{ip}"
    found = [each["detail"] for each in _of_rates(events) if each["detail"]["pool"] == pool]
    at_ms = sorted(detail["at_ms"] for detail in found if detail.get("violated"))
    for event in refused:
        arrived_ms = int(event["mono_ns"] / 1e6 - event["held_ms"])
        later = bisect_left(at_ms, arrived_ms - PASS_MS)
        assert at_ms[later:] and at_ms[later] * 1_000_000 <= event["mono_ns"], f"nothing was violated before {event}"


def unused(events, pool, admitted):
    """How many units of a pool were recorded, are not given back, and let none of so many connections in."""
    mine = [each for each in _of_rates(events) if each["detail"]["pool"] == pool]
    return sum(each["detail"]["tokens"] * (1 if each["kind"] == "grant" else -1) for each in mine) - admitted


def _of_rates(events):
    for event in events:
        if event["kind"] in ("grant", "reclaim"):
            detail = json.loads(event["detail"])
            if detail["pool"].startswith("rate:"):
                yield {**event, "detail": detail}


def _images(events):
    """Version -> the configuration as it was then."""
    changes = {}
    for event in events:
        if event["kind"] == "config" and event["broker"] >= 0:
            detail = json.loads(event["detail"])
            if not detail["full"] or event["version"] not in changes:
                changes[event["version"]] = detail["changes"], detail["full"]
    images, so_far = {}, []
    for version in sorted(changes):
        delta, full = changes[version]
        so_far = [*([] if full else so_far), *delta]
        images[version] = ClusterImage()
        images[version].apply(version, [tuple(change) for change in so_far], whole=True)
    return images


def quotas_of(image, key):
    """What a view says of a pool that limits.recorded asks about."""
    kind, name = key.split(":", 1)
    if kind == "ip":
        return RateQuotas(image.quota_for_ip(name))
    if kind == "user":
        return RateQuotas(image.rate_of(key).rate)
    return RateQuotas(image.rate_of(key).rate, image.rate_of("broker").rate, name == image.inter_broker_listener)
