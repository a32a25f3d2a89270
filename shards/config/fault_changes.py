"""Requested changes of faults -> the delta to push; invariants as of config_state.py. Pure."""

from collections.abc import Mapping, Sequence

from shards.config.config_state import MOST_OF_A_NAME, Change, ConfigState, storable
from shards.config.messages import FaultChange
from shards.settings.errors import ConfigInvalid

MAX_FAULTS = 100


def faults_delta(state: ConfigState, changes: Sequence[FaultChange]) -> list[Change]:
    """The delta of changed faults. `changes`: [name, fault or None to remove it]. The fields of a fault are checked in
    broker/faults/fault.py, not here. Raises ConfigInvalid."""
    wanted: dict[str, Mapping[str, object]] = dict(state.faults)
    for name, fault in changes:
        if not isinstance(name, str) or not 0 < len(name) <= MOST_OF_A_NAME:
            raise ConfigInvalid("name", name, f"a fault's name has 1 to {MOST_OF_A_NAME} characters")
        if fault is not None:
            wanted[name] = fault
        elif wanted.pop(name, None) is None:
            sentence = f"there is no fault {name!r}; faults: {', '.join(state.faults) or 'none is set'}."
            raise ConfigInvalid.saying(sentence, name="fault", error="RESOURCE_NOT_FOUND")
    if len(wanted) > MAX_FAULTS:
        raise ConfigInvalid("faults", len(wanted), f"there may be at most {MAX_FAULTS} at a time")
    names = dict.fromkeys([*state.faults, *wanted])
    return storable([("fault", name, wanted.get(name)) for name in names if wanted.get(name) != state.faults.get(name)])
