"""The space on the volume of the data, and the brokers that refuse Produce for want of it (broker/storage/disk_space.py)."""

from __future__ import annotations

from pathlib import Path

from broker.admin.cluster_answers import BrokerDisk, VolumeAnswer
from broker.storage.disk_space import SETTING, Volume, is_full, least_free_bytes, volume_of
from shards.config.config_state import ConfigState
from shards.settings.broker_config import given


def describe_disk(data_dir: Path, state: ConfigState) -> VolumeAnswer:
    """The volume of a data directory."""
    volume = volume_of(str(data_dir))
    brokers = [_describe_broker(broker, volume, state) for broker in range(state.brokers)]
    return {"total_bytes": volume.total_bytes, "free_bytes": volume.free_bytes, "brokers": brokers}


def _describe_broker(broker: int, volume: Volume, state: ConfigState) -> BrokerDisk:
    set_bytes = given(broker, state.static, state.settings).get(SETTING)
    assert set_bytes is None or isinstance(set_bytes, int)
    return {
        "broker": broker,
        "least_free_bytes": least_free_bytes(set_bytes, volume),
        "full": is_full(set_bytes, volume),
    }
