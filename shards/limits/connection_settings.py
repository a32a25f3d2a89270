"""The settings that limit connections, in both vocabularies, checked as a whole and ready to be asked.

A listener without a value of its own uses the broker's (`max.connections`, `max.connection.creation.rate`), so the
broker-wide value also has to be one that a listener may have: at least 1. Source: SocketServer.ConnectionQuotas and
KafkaConfig.validateValues (Apache Kafka); Redpanda's RFC for the `kafka_*` names.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from shards.limits.caps import UNLIMITED, CapRule, tightest
from shards.limits.overrides import NO_OVERRIDES, Overrides
from shards.limits.rate import DEFAULT_WINDOW, Window
from shards.limits.throttle import INT_MAX

CAP = "max.connections"
RATE = "max.connection.creation.rate"
IP_CAP = "max.connections.per.ip"
IP_OVERRIDES = "max.connections.per.ip.overrides"
CORE_CAP = "kafka_connections_max"
CORE_IP_CAP = "kafka_connections_max_per_ip"
CORE_IP_OVERRIDES = "kafka_connections_max_overrides"
CORE_RATE = "kafka_connection_rate_limit"
CORE_RATE_OVERRIDES = "kafka_connection_rate_limit_overrides"
RECHECK = "turnstile.ip.rate.recheck"
SAMPLES = "quota.window.num"
SIZE = "quota.window.size.seconds"
MUTATION_SAMPLES = "controller.quota.window.num"
MUTATION_SIZE = "controller.quota.window.size.seconds"

STATIC = frozenset({SAMPLES, SIZE, MUTATION_SAMPLES, MUTATION_SIZE})  # read once, when a broker starts


class ListenerLimits(NamedTuple):
    """What holds for one listener; None: no limit."""

    cap: int | None
    rate: int | None


class ConnectionSettings:
    """An immutable set of settings; `with_change` makes the next one, or refuses to."""

    def __init__(self, listeners: Iterable[str] = (), values: Mapping[str, object] | None = None) -> None:
        """`values`: canonical names and parsed values, as `with_change` stores them. ValueError if they don't agree."""
        self.listeners = tuple(listeners)
        self.values = dict(values or {})
        self.broker = ListenerLimits(self._number(CAP), self._number(RATE))
        self.listener = {name: self._of_listener(name) for name in self.listeners}
        self.refuse_above = CapRule(self._number(CORE_CAP), CORE_CAP) if CORE_CAP in self.values else UNLIMITED
        self.core_rate = self._number(CORE_RATE) or None
        self.recheck = bool(self.values.get(RECHECK, False))
        self.window = self._window_of(SAMPLES, SIZE)
        self.mutation_window = self._window_of(MUTATION_SAMPLES, MUTATION_SIZE)
        self._overrides = tuple(self._overrides_of(name) for name in (IP_OVERRIDES, CORE_IP_OVERRIDES))
        self._core_rates = self._overrides_of(CORE_RATE_OVERRIDES)
        self.ip_default = tightest(self._ip_rules(None))
        self.same_for_all_ips = not any(self._overrides)
        self._check()

    def with_change(self, name: str, value: object | None) -> "ConnectionSettings":
        """These settings with one set (as text, number, or list of overrides) or, with None, removed.

        KeyError for a name that is none of these; ValueError, a sentence, for a value that can't be.
        """
        key, parse = self._known(name)
        values = {**self.values}
        if value is None:
            values.pop(key, None)
        else:
            values[key] = parse(name, value)
        return ConnectionSettings(self.listeners, values)

    def ip_cap(self, ip: str) -> CapRule:
        """The cap of one (normalised) address: its own or else the general one, in the tighter vocabulary."""
        return self.ip_default if self.same_for_all_ips else tightest(self._ip_rules(ip))

    def core_rate_of(self, ip: str) -> tuple[str, int | None]:
        """Whose connection-rate bucket an address draws on ("": the general one), and its rate; None: no limit."""
        own = self._core_rates.lookup(ip) if self._core_rates else None
        return ("", self.core_rate) if own is None else (ip, own)

    @property
    def limits_core_rate(self) -> bool:
        """Whether any `kafka_connection_rate_limit` is set."""
        return self.core_rate is not None or bool(self._core_rates)

    def _ip_rules(self, ip: str | None) -> list[CapRule]:
        rules = []
        pairs = ((IP_CAP, IP_OVERRIDES), (CORE_IP_CAP, CORE_IP_OVERRIDES))
        for (general, specific), overrides in zip(pairs, self._overrides, strict=True):
            own = overrides.lookup(ip) if ip is not None and overrides else None
            rules.append(CapRule(self._number(general), general) if own is None else CapRule(own, specific))
        return rules

    def _known(self, name: str) -> tuple[str, Callable[[str, object], object]]:
        if name in _PARSERS:
            return name, _PARSERS[name]
        prefix, _, rest = name.partition("listener.name.")
        listener, _, setting = rest.partition(".")
        if prefix or not listener or setting not in (CAP, RATE):
            raise KeyError(name)
        return f"listener.name.{listener.lower()}.{setting}", _parse_int

    def _of_listener(self, name: str) -> ListenerLimits:
        def own(setting: str, shared: int | None) -> int | None:
            value = self._number(f"listener.name.{name.lower()}.{setting}")
            return shared if value is None else value

        return ListenerLimits(own(CAP, self.broker.cap), own(RATE, self.broker.rate))

    def _number(self, name: str) -> int | None:
        value = self.values.get(name)
        assert value is None or isinstance(value, int)
        return value

    def _window_of(self, samples: str, size_s: str) -> Window:
        size = self._number(size_s)
        size_ms = DEFAULT_WINDOW.size_ms if size is None else size * 1000
        return Window(self._number(samples) or DEFAULT_WINDOW.samples, size_ms)

    def _overrides_of(self, name: str) -> Overrides:
        value = self.values.get(name, NO_OVERRIDES)
        assert isinstance(value, Overrides)
        return value

    def _check(self) -> None:
        for listener, limits in self.listener.items():
            for setting, value in ((CAP, limits.cap), (RATE, limits.rate)):
                if value is not None and value < 1:
                    raise ValueError(f"{setting} of listener {listener} is {value}; it must be at least 1")
        for setting, value in ((CAP, self.broker.cap), (RATE, self.broker.rate)):
            if value is not None and value < 0:
                raise ValueError(f"{setting} is {value}; it must be at least 0")
        if self._number(IP_CAP) == 0 and not self._overrides[0]:
            raise ValueError(f"{IP_CAP} is 0, which lets nobody in; set {IP_OVERRIDES} first")


def _parse_int(name: str, value: object) -> int:
    try:
        if isinstance(value, str):
            number = int(value.strip().replace("_", "?"))  # Python reads 1_000, Kafka does not
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value):
            number = int(value)
        else:
            raise ValueError
    except (ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}; it must be a whole number") from None
    if not -INT_MAX - 1 <= number <= INT_MAX:
        raise ValueError(f"{name} is {number}; it must fit in 32 bits")
    return number


def _at_least(least: int) -> Callable[[str, object], int]:
    def parse(name: str, value: object) -> int:
        number = _parse_int(name, value)
        if number < least:
            raise ValueError(f"{name} is {number}; it must be at least {least}")
        return number

    return parse


def _parse_overrides(name: str, value: object) -> Overrides:
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
        raise ValueError(f"{name} is {value!r}; it must be a list of ip:number")
    try:
        return Overrides.parse(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _parse_rate_overrides(name: str, value: object) -> Overrides:
    overrides = _parse_overrides(name, value)
    for entry, number in overrides.entries.items():
        if number < 1:
            raise ValueError(f"{name}: the rate of {entry} is {number}; it must be at least 1")
    return overrides


def _parse_bool(name: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is {value!r}; it must be true or false")
    return text == "true"


_PARSERS: dict[str, Callable[[str, object], object]] = {
    CAP: _parse_int,
    RATE: _parse_int,
    IP_CAP: _at_least(0),
    IP_OVERRIDES: _parse_overrides,
    CORE_CAP: _at_least(0),
    CORE_IP_CAP: _at_least(0),
    CORE_IP_OVERRIDES: _parse_overrides,
    CORE_RATE: _at_least(1),
    CORE_RATE_OVERRIDES: _parse_rate_overrides,
    RECHECK: _parse_bool,
    **{name: _at_least(1) for name in STATIC},
}
