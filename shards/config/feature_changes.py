"""Updates of features (KIP-584), against the levels and the release in force. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shards.config.config_state import ConfigState
from shards.settings.broker_config import EVERY_BROKER, given
from shards.settings.features import why_not
from shards.settings.releases import AS_VERSION, OWN_VERSION


def why_not_updated(state: ConfigState, updates: Iterable[tuple[str, int, int]], controller: int) -> str:
    """The refusal of an update of features to these (name, level, kind of update), in Kafka's words; empty: there is none."""
    release = given(EVERY_BROKER, state.static, state.settings).get(AS_VERSION, OWN_VERSION)
    return why_not(state.features, updates, controller, str(release))
