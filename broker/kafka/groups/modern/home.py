"""The common part of the homes of consumer, share and streams groups. Source: GroupCoordinatorService of Kafka 4.3."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from broker.kafka.groups.modern.modern_groups import ModernGroups


class HomeOfGroups(NamedTuple):
    """The home of a group of any protocol, to the part of it that has the groups of one protocol."""

    is_known: Callable[[str], bool]
    """True if there is a group of any protocol by that id."""
    make_way: Callable[[str], bool]
    """True if no group of another protocol is in the way of a new one; a classic one without members is dropped."""
    served: Callable[[], None]
    """Called after each heartbeat: deadlines may have come nearer."""
    now_ms: Callable[[], int]
    """A clock that only goes forward."""


K = TypeVar("K", bound=ModernGroups[Any, Any, Any, Any, Any])


class ModernCoordinator(Generic[K]):
    """The groups of one protocol at their home. Operations take and return what msgpack carries."""

    def __init__(self, groups: K, home: HomeOfGroups) -> None:
        self._groups = groups
        self._home = home

    def _undescribed(self, group_id: str) -> list[str]:
        """The description of a group that there is not, [], or that is of another protocol, ["other"]."""
        return ["other"] if self._home.is_known(group_id) else []
