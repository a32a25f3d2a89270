"""An API as its module declares it: the function that answers it, and the guard before that function.

every_api_is_guarded   `guard` has no default. OPEN, by name, is the guard of an API that asks for nothing but a connection.
"""

from typing import NamedTuple

from broker.kafka.security.access import Access
from broker.kafka.security.guards import Guard
from broker.serve.call import Handler, Route


def _ask_nothing(access: Access, handler: Handler) -> Handler:
    return handler


OPEN: Guard = _ask_nothing
"""The guard of an API that any client may ask, or whose handler decides by itself what a client may do."""


class GuardedRoute(NamedTuple):
    """An API in all versions that `wire` knows. `prepared` as in Route."""

    api_key: int
    function: Handler
    guard: Guard
    prepared: bool = False

    def unguarded(self) -> Route:
        """The route while no authorizer is set."""
        return Route.of(self.api_key, self.function, prepared=self.prepared)

    def guarded(self, access: Access) -> Route:
        """Behind its guard. No answer is prepared then: what it says depends on the client."""
        if self.guard is OPEN:
            return self.unguarded()
        return Route.of(self.api_key, self.guard(access, self.function))
