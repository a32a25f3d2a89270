"""Features and their levels (KIP-584), as UpdateFeatures changes them: names, ranges, rules and sentences of Kafka 4.3. Pure.

A level is told to clients, and those of groups, share groups, streams groups and transactions are obeyed. Features that are not
here are not supported. Share groups and streams groups are on in a new cluster, as in Kafka 4.2.
Source: FeatureControlManager, MetadataVersion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shards.settings.releases import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    OWN_VERSION,
    RELEASES,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    Feature,
)

FEATURES = {
    METADATA_VERSION: Feature(7, 30, 30),
    KRAFT_VERSION: Feature(0, 1, 1),
    TRANSACTION_VERSION: Feature(0, 2, 2),
    GROUP_VERSION: Feature(0, 1, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(0, 1, 1),
    SHARE_VERSION: Feature(0, 1, 1),
    STREAMS_VERSION: Feature(0, 1, 1),
}
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_CHANGES_OF_METADATA = (8, 11, 13, 14, 15, 17, 23, 30)
"""Levels of `metadata.version` whose metadata no earlier level can read: `MetadataVersion.didMetadataChange` of 4.3.1."""


def features_as(release: str) -> Mapping[str, Feature]:
    """The features that are supported in the place of a release: those that it has, as far as they are known here."""
    if release == OWN_VERSION:
        return FEATURES
    return {
        name: Feature(theirs.least, min(theirs.most, FEATURES[name].most), min(theirs.default, FEATURES[name].most))
        for name, theirs in RELEASES[release].items()
        if name in FEATURES
    }


def level_of(levels: Mapping[str, int], name: str, release: str = OWN_VERSION) -> int:
    """The level in force of a feature in FEATURES; `levels`: those that were changed. 0: the release does not have it."""
    feature = features_as(release).get(name)
    return 0 if feature is None else min(levels.get(name, feature.default), feature.most)


def why_not(
    levels: Mapping[str, int], updates: Iterable[tuple[str, int, int]], controller: int, release: str = OWN_VERSION
) -> str:
    """The refusal of an update of features to these (name, level, kind of update); empty: there is none."""
    for name, level, kind in updates:
        said = _why_not(levels, name, level, kind, controller, release)
        if said:
            return f"The update failed for all features since the following feature had an error: {said}"
    return ""


def _why_not(levels: Mapping[str, int], name: str, level: int, kind: int, controller: int, release: str) -> str:
    start = f"Invalid update version {level} for feature {name}. "
    feature = features_as(release).get(name)
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"{start}The controller does not support the given upgrade type."
    if level < 0:
        return f"{start}A feature version cannot be less than 0."
    if feature is None:
        missing = (
            f"Feature {name} not found."
            if level == 0
            else f"Local controller {controller} does not support this feature."
        )
        return start + missing
    if not feature.least <= level <= feature.most:
        return f"{start}Local controller {controller} only supports versions {feature.least}-{feature.most}"
    now = level_of(levels, name, release)
    if level > now and kind != UPGRADE:
        return f"{start}Can't downgrade to a newer version."
    return _why_not_down(name, now, level, kind, start) if level < now else ""


def _why_not_down(name: str, now: int, level: int, kind: int, start: str) -> str:
    if kind == UPGRADE:
        wanted = "either safe or unsafe downgrade"
        return f"{start}Can't downgrade the version of this feature without setting the upgrade type to {wanted}."
    if name == KRAFT_VERSION:
        return f"{start}Can't downgrade the version of this feature."
    if name == METADATA_VERSION and any(level < changed <= now for changed in _CHANGES_OF_METADATA):
        lost = "Refusing to perform the requested downgrade because it might delete metadata information."
        unsafe = "Unsafe metadata downgrade is not supported in this version."
        refused = f"Unsupported metadata.version downgrade from {now} to {level}."
        return f"{refused} {lost if kind == SAFE_DOWNGRADE else unsafe}"
    return ""
