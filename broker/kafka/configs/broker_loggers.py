"""The loggers of a broker, as DescribeConfigs and IncrementalAlterConfigs show them (KIP-412): `root` alone.

Its level is the broker's setting `turnstile.log.level`, so it survives a restart of the broker; Kafka's does not.
Source of codes and messages: RuntimeLoggerManager, ConfigHelper of Kafka 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.kafka.configs.config_edits import APPEND, DELETE, SET, SUBTRACT, ConfigChange, Edit
from broker.kafka.configs.config_entries import Entry
from broker.kafka.configs.config_resources import broker_id
from broker.kafka.remote import RequestRefused
from broker.wire import codes
from shards.config.image import ClusterImage
from shards.settings.config_def import broker_setting

ROOT = "root"
LEVEL = "turnstile.log.level"
LEVELS = broker_setting(LEVEL).kind.choices
_SOURCE, _TYPE = 6, 0  # DYNAMIC_BROKER_LOGGER_CONFIG, UNKNOWN


def logger_entries(image: ClusterImage, name: str, me: int) -> list[Entry]:
    """The loggers of this broker with their levels. Raises RequestRefused unless the resource is this broker."""
    if not name:
        raise RequestRefused(codes.INVALID_REQUEST, "Broker id must not be empty")
    if broker_id(name) != me:
        raise RequestRefused(codes.INVALID_REQUEST, f"Unexpected broker id, expected {me} but received {name}")
    return [Entry(ROOT, image.get(LEVEL), _SOURCE, False, _TYPE, (), "")]


def check_node(name: str, me: int) -> None:
    """Raises RequestRefused unless the resource is this broker: a broker answers for its own loggers alone."""
    if not name.removeprefix("-").isdigit():
        raise RequestRefused(codes.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != me:
        raise RequestRefused(codes.INVALID_REQUEST, f"Unexpected node id. Expected {me}, but received {name}")


def logger_changes(broker: str, edits: Sequence[Edit]) -> list[ConfigChange]:
    """Edits of a broker's loggers as changes of its settings. Raises RequestRefused."""
    return [ConfigChange(broker, LEVEL, _level(edit)) for edit in edits]


def _level(edit: Edit) -> str | None:
    if edit.operation in (APPEND, SUBTRACT):
        what = "APPEND" if edit.operation == APPEND else "SUBTRACT"
        raise RequestRefused(codes.INVALID_REQUEST, f"{what} operation is not allowed for the BROKER_LOGGER resource")
    if edit.operation not in (SET, DELETE):
        message = f"Unknown operation type {edit.operation} is not allowed for the BROKER_LOGGER resource"
        raise RequestRefused(codes.INVALID_REQUEST, message)
    if edit.name != ROOT:
        raise RequestRefused(codes.INVALID_CONFIG, f"Logger {edit.name} does not exist!")
    if edit.operation == DELETE:
        raise RequestRefused(codes.INVALID_REQUEST, f"Removing the log level of the {ROOT} logger is not allowed")
    if edit.value not in LEVELS:
        message = f"Cannot set the log level of {ROOT} to {edit.value} as it is not a supported log level. "
        raise RequestRefused(codes.INVALID_CONFIG, f"{message}Valid log levels are {', '.join(sorted(LEVELS))}")
    return edit.value
