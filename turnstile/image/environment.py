"""The environment of a container -> the command line of `turnstile up`, and sentences about what is left out. Pure.

command_line_before_variables  What the command line of the container says goes before a variable, a variable before the
    mounted file, that before DEFAULTS.
unknown_variables_are_named  A variable that is no setting is named; none is dropped in silence, but those that are other
    programs' (names.py).
token_beyond_the_container  Beyond the container the admin API listens only with a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shards.config.advertised import listeners_as_advertised
from shards.settings.config_def import BROKER, LIMITS, broker_setting, canonical_name
from shards.settings.errors import ConfigInvalid
from shards.settings.near_misses import near_misses
from turnstile.cli.config_file import ConfigFile, ConfigFileInvalid, of_properties
from turnstile.image.names import KAFKA, TURNSTILE, is_of_others, kafka_setting, turnstile_settings
from turnstile.settings import SHORT

EVERYWHERE = "0.0.0.0"
DEFAULTS = {"host": EVERYWHERE, "port": "9092", "admin-port": "9644", "shards": "2"}
"""The ports are those that the image exposes, also of a cluster with a name, which has any free ones elsewhere. `shards`: the same
on every machine, so that a test meets as many everywhere; a container may not use all cores it sees."""
_PREFIX = "TURNSTILE_UP_"
_OTHERS = (
    "TURNSTILE_ADMIN", "TURNSTILE_ADMIN_TOKEN", "TURNSTILE_ADMIN_TOKEN_FILE", "TURNSTILE_NAME", "TURNSTILE_TAKEN_OVER",
)  # fmt: skip


@dataclass
class Found:
    """`options` of `turnstile up`, to stand before those of the command line; `said`: sentences for people."""

    options: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


def options_of(
    environment: Mapping[str, str],
    arguments: Sequence[str],
    file: ConfigFile,
    *,
    options: Iterable[str],
    commands: Iterable[str],
) -> Found:
    """`arguments`: the container's own of `up`. `options`: those of `up`, without dashes; `commands`: of the tool, whose
    variables are theirs. `file`: the mounted one, or an empty one. Raises ConfigFileInvalid."""
    found = Found()
    given = _Given(environment, arguments, file)
    variables = {f"{_PREFIX}{option.replace('-', '_').upper()}" for option in options}
    theirs = tuple(f"{TURNSTILE}{command.replace('-', '_').upper()}_" for command in commands if command != "up")
    rows: dict[str, str] = {}
    own: dict[str, str] = {}  # settings -> their variables that are no KAFKA_...
    known = [*variables, *_settings_as(TURNSTILE)]
    for name, value in sorted(environment.items()):
        if name == f"{_PREFIX}SET":  # which counts no more beside the --set of others
            found.options += [word for setting in value.split() for word in ("--set", setting)]
        elif name in _OTHERS or name in variables or is_of_others(name, value):
            continue
        elif name.startswith(KAFKA):
            rows[kafka_setting(name)] = value
        elif name.startswith(_PREFIX):
            found.said.append(f"{name} is not an option of `turnstile up`: left out{_near(name, variables)}")
        elif name.startswith(TURNSTILE):
            setting = _setting(name)
            if setting is not None and not value:
                found.said.append(f"{name} is empty: left out")
            elif setting is not None:
                first = own.setdefault(canonical_name(setting), name)
                if first != name:
                    found.said.append(f"{name} and {first} are both {setting}: the first counts")
                    own[canonical_name(setting)] = name
                found.options += ["--set", f"{setting}={value}"]
            elif not name.startswith(theirs):
                meant = f"{_PREFIX}{name.removeprefix(TURNSTILE)}"
                near = f"; did you mean {meant}?" if meant in variables else _near(name, known)
                found.said.append(f"{name} is not a setting: left out{near}")
    _add_kafka(found, rows, given, own)
    _add_defaults(found, given)
    return found


def given_value(environment: Mapping[str, str], arguments: Sequence[str], option: str) -> str | None:
    """The value of an option of `up` on the command line, where the last one counts, else of its variable; None: it has neither."""
    value = environment.get(_variable(option)) or None
    for at, word in enumerate(arguments):
        name, equals, rest = word.partition("=")
        if name == f"--{option}":
            value = rest if equals else next(iter(arguments[at + 1 :]), None)
    return value


class _Given:
    """The values that were given before it comes to defaults."""

    def __init__(self, environment: Mapping[str, str], arguments: Sequence[str], file: ConfigFile) -> None:
        self._environment = environment
        self._arguments = arguments
        self.file = file

    def by_hand(self, *names: str) -> bool:
        """True if an option is on the command line, or has its variable."""
        return any(given_value(self._environment, self._arguments, name) is not None for name in names)

    def at_all(self, *names: str) -> bool:
        return self.by_hand(*names) or any(name.replace("-", "_") in self.file.cluster for name in names)

    @property
    def token(self) -> bool:
        return bool(self._environment.get("TURNSTILE_ADMIN_TOKEN")) or self.by_hand("admin-token-file")

    @property
    def token_file(self) -> str | None:
        return self._environment.get("TURNSTILE_ADMIN_TOKEN_FILE")


def _variable(option: str) -> str:
    return f"{_PREFIX}{option.replace('-', '_').upper()}"


def _setting(name: str) -> str | None:
    for meant in turnstile_settings(name):
        meant = SHORT.get(meant, meant)
        try:
            broker_setting(canonical_name(meant))
        except ConfigInvalid:
            continue
        return meant
    return None


def _settings_as(prefix: str) -> list[str]:
    """The variables of all settings."""
    spelled = (name.replace("_", "__") if "." in name else name for name in {**dict.fromkeys(LIMITS), **BROKER})
    return [prefix + name.replace(".", "_").replace("-", "___").upper() for name in spelled]


def _near(name: str, known: Iterable[str]) -> str:
    near = near_misses(name, sorted(known), cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""


def _add_kafka(found: Found, rows: dict[str, str], given: _Given, own: Mapping[str, str]) -> None:
    """Settings as Kafka's image takes them. A listener without a host is bound to every address, as by Kafka. `own`: settings that
    have a variable TURNSTILE_..., too."""
    for name in sorted(own.keys() & {canonical_name(each) for each in rows}):
        found.said.append(f"{_settings_named(name)} and {own[name]} are both {name}: the first counts")
    if "listeners" in rows and given.by_hand("listener", "port"):
        found.said.append(
            "KAFKA_LISTENERS is left out, as TURNSTILE_UP_LISTENER, TURNSTILE_UP_PORT or the command line has listeners"
        )
    advertised = rows.pop("advertised.listeners", None)
    controllers = {name.strip() for name in rows.get("controller.listener.names", "CONTROLLER").split(",")}
    if "listeners" in rows:
        entries = (entry.strip() for entry in rows["listeners"].split(","))
        kept = (entry for entry in entries if entry.partition("://")[0] not in controllers)
        rows["listeners"] = ",".join(entry.replace("://:", f"://{EVERYWHERE}:") for entry in kept)
    read = of_properties(rows)
    for name in read.ignored:
        variable = _settings_named(name)
        found.said.append(f"{variable} ({name}) is not a setting: left out{_near(variable, _settings_as(KAFKA))}")
    for name, value in read.settings:
        found.options += ["--set", f"{name}={value}"]
    if read.listeners and not given.by_hand("listener", "port"):
        for listener in read.listeners:
            found.options += ["--listener", listener]
    if advertised is not None:
        found.options += ["--set", f"advertised.listeners={_advertised(advertised, controllers)}"]


def _settings_named(name: str) -> str:
    return KAFKA + name.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def _advertised(text: str, controllers: set[str]) -> str:
    """KAFKA_ADVERTISED_LISTENERS without the controllers'. Raises ConfigFileInvalid."""
    kept = [each.strip() for each in text.split(",") if each.partition("://")[0].strip() not in controllers]
    try:
        return listeners_as_advertised(",".join(kept), ())
    except ConfigInvalid as fault:
        raise ConfigFileInvalid(f"KAFKA_ADVERTISED_LISTENERS: {fault}") from None


def _add_defaults(found: Found, given: _Given) -> None:
    for option, value in DEFAULTS.items():
        if not given.at_all(option):
            found.options += [f"--{option}", value]
    if given.token_file and not given.token:
        found.options += ["--admin-token-file", given.token_file]
    if not given.at_all("admin-host"):
        if given.token or given.token_file:
            found.options += ["--admin-host", EVERYWHERE]
        else:
            found.said.append(
                "the admin API and its page can be reached in this container only: with TURNSTILE_ADMIN_TOKEN, or "
                "TURNSTILE_ADMIN_TOKEN_FILE, it listens on port 9644 for those that have the token"
            )
