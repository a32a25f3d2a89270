"""The commands that set client quotas, of this emulator, of Kafka and of Redpanda; and those that rehearse them first."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from shards.limits.client_quota_managers import REQUEST
from shards.limits.quota_entities import Entity
from turnstile.entities import entity_words

_KAFKA_TYPES: Final = {"user": "users", "client-id": "clients"}
NOT_IN_REDPANDA: Final = "# Redpanda has no request_percentage"
USERS_IN_REDPANDA: Final = "# quotas of users need Redpanda 26.1 or later"


def commands(quotas: Mapping[Entity, Mapping[str, float]]) -> dict[str, list[str]]:
    """The commands by vocabulary, a line for each entity."""
    return {
        "turnstile": [_turnstile(entity, values) for entity, values in quotas.items()],
        "kafka": [_kafka(entity, values) for entity, values in quotas.items()],
        "redpanda": _redpanda(quotas),
        "rehearsal": [_turnstile(entity, values, "--observe") for entity, values in quotas.items()],
    }


def _line(words: Iterable[str]) -> str:
    """A command on one line, whatever clients are called."""
    return " ".join(shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_escaped, word))}'" for word in words)


def _escaped(character: str) -> str:
    """Within $'...', as bash, zsh and POSIX 2024 have it."""
    if character.isprintable():
        return f"\\{character}" if character in "\\'" else character
    return f"\\x{ord(character):02x}" if character.isascii() else f"\\U{ord(character):08x}"


def _ordered(entity: Entity) -> list[tuple[str, str | None]]:
    return sorted(entity, key=lambda each: each[0] != "user")


def _number(each: float) -> str:
    return f"{each:.10g}" if each != int(each) else str(int(each))


def _settings(values: Mapping[str, float]) -> list[str]:
    return [f"{kind}={_number(each)}" for kind, each in values.items()]


def _turnstile(entity: Entity, values: Mapping[str, float], *options: str) -> str:
    return _line(["turnstile", "quota", "set", *options, *entity_words(dict(entity)), *_settings(values)])


def _kafka(entity: Entity, values: Mapping[str, float]) -> str:
    words = [
        "kafka-configs.sh",
        "--bootstrap-server",
        "localhost:9092",
        "--alter",
        "--add-config",
        ",".join(_settings(values)),
    ]
    for kind, name in _ordered(entity):
        words += [
            "--entity-type",
            _KAFKA_TYPES[kind],
            *(["--entity-default"] if name is None else ["--entity-name", name]),
        ]
    return _line(words)


def _redpanda(quotas: Mapping[Entity, Mapping[str, float]]) -> list[str]:
    lines = []
    for entity, values in quotas.items():
        words = ["rpk", "cluster", "quotas", "alter"]
        for each in _settings({kind: each for kind, each in values.items() if kind != REQUEST}):
            words += ["--add", each]
        for kind, name in _ordered(entity):
            words += ["--default", kind] if name is None else ["--name", f"{kind}={name}"]
        if "--add" in words:
            lines.append(_line(words))
    notes = [NOT_IN_REDPANDA] if any(REQUEST in values for values in quotas.values()) else []
    notes += [USERS_IN_REDPANDA] if lines and any("user" in dict(entity) for entity in quotas) else []
    return [*notes, *lines]
