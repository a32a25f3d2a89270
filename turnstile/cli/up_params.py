"""Types of the arguments of `turnstile up`, which `turnstile topic` shares: settings, names of clusters, topics, listeners."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from turnstile.cli.param_type import ParamType

if TYPE_CHECKING:
    from shards.config.cluster_plan import ListenerSpec

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
MOST_PARTITIONS = 10_000
_WITH_VALUES = ("cert=", "key=", "advertise=", "proxy=", "trusted=")
_FILES = ("cert", "key")


class NamedText(NamedTuple):
    """NAME=VALUE."""

    name: str
    text: str


class TopicSize(NamedTuple):
    """A topic, and how many partitions it has."""

    name: str
    partitions: int


class NameAndValue(ParamType[NamedText]):
    """A setting, or a topic's config: its name, and its value as text."""

    name = "name=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> NamedText:
        name, equals, text = str(value).partition("=")
        if not equals or not name.strip():
            self.fail(f"{value!r} is not name=value", param, ctx)
        return NamedText(name.strip(), text)


class ClusterName(ParamType[str]):
    """A name by which other commands find a cluster."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from broker.process.cluster_names import is_name

        if not is_name(str(value)):
            self.fail(f"{value!r} is not a name: letters, digits, '.', '_' and '-', at most 64", param, ctx)
        return str(value)


class DataDir(click.Path):
    """A data directory, which need not be there yet. An empty text is no path: with a script's unset variable, click would take
    the current folder."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class SizedTopic(ParamType[TopicSize]):
    """A topic, and its partitions, from 1 to MOST_PARTITIONS; 1 where none are given."""

    name = "name[:partitions]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> TopicSize:
        from shards.config.internal_topics import INTERNAL_TOPICS

        name, _, partitions = str(value).partition(":")
        if name in INTERNAL_TOPICS:
            self.fail(f"{name!r} is an internal topic, which is made when a client asks for a coordinator", param, ctx)
        if not TOPIC_NAME.fullmatch(name) or name in (".", ".."):
            self.fail(f"{name!r} is not a topic name: letters, digits, '.', '_' and '-', at most 249", param, ctx)
        if partitions and not (partitions.isdigit() and 1 <= int(partitions) <= MOST_PARTITIONS):
            self.fail(f"{partitions!r} is not a number of partitions from 1 to {MOST_PARTITIONS}", param, ctx)
        return TopicSize(name, int(partitions or 1))


class Listener(ParamType["ListenerSpec"]):
    """A listener of every broker, and its options."""

    name = "NAME=host:port"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ListenerSpec:
        from shards.config.cluster_plan import ListenerSpec

        match = re.fullmatch(
            r"([A-Za-z][A-Za-z0-9_-]*)=(\[[0-9a-fA-F:.]+\]|[^:\[\],]+):(\d{1,5})((?:,[^,]+)*)", str(value)
        )
        if match is None or int(match[3]) > 65535:
            self.fail(f"{value!r} is not NAME=host:port, such as EXTERNAL=127.0.0.1:9092", param, ctx)
        options = tuple(option for option in match[4].split(",") if option)
        unknown = [each for each in options if each not in ("sasl", "tls") and not each.startswith(_WITH_VALUES)]
        if unknown:
            known = "sasl, tls, cert=FILE, key=FILE, advertise=HOST:PORT, advertise=auto, proxy=required, trusted=NETWORK+NETWORK"
            self.fail(f"{unknown[0]!r} is not an option of a listener: {known}", param, ctx)
        self._check(match[1].upper(), options, param, ctx)
        return ListenerSpec(match[1].upper(), match[2].strip("[]"), int(match[3]), tuple(map(_from_anywhere, options)))

    def _check(
        self, name: str, options: tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> None:
        from shards.config.advertised import addresses_of
        from shards.config.proxy_option import proxy_option
        from shards.settings.errors import ConfigInvalid

        try:
            for each in options:
                if each.startswith("advertise="):
                    addresses_of([each.partition("=")[2]])
            proxy_option(name, options)
        except ConfigInvalid as fault:
            self.fail(str(fault), param, ctx)


def _from_anywhere(option: str) -> str:
    """A listener's option. Makes the file's path absolute: `config export` may be used in another directory."""
    name, equals, path = option.partition("=")
    return f"{name}={Path(path).absolute()}" if equals and name in _FILES else option
