"""The units of creation rates that homes journaled, and whether one Kafka broker would have recorded them, too."""

import json
from collections import Counter, defaultdict

from shards.config.image import ClusterImage
from shards.limits.rate import Window
from shards.limits.rate_replay import RateQuotas, RateReplay


def assert_recorded_as_by_one_broker(events):
    """Every unit that a home ever recorded was within its quota, by Kafka's arithmetic and the home's own clock: the
    sequence of units is one that a single broker admits, to the millisecond."""
    images = _images(events)
    homes = {}
    for event in sorted(_of_rates(events), key=lambda event: (event["epoch"], event["shard"], event["seq"])):
        image = images[event["version"]]
        window = Window(image.get("quota.window.num"), image.get("quota.window.size.seconds") * 1000)
        place = event["shard"], event["epoch"]
        home = homes.setdefault(place, RateReplay(window))
        beyond = home.event(event["detail"], lambda key, image=image: quotas_of(image, key), window)
        assert beyond == 0, event
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
    return RateQuotas(image.rate_of(key).rate, image.rate_of("broker").rate, name == image.inter_broker_listener)
