"""The cost of a request, by `turnstile.request.cost`: a request handler's time for each, and more for each KiB that it moves.

Of a Fetch the bytes are those of its answer, of any other request its own. Two things follow from it: what is charged to
request_percentage (throttling.py), and, with `turnstile.request.queue`, for how long a handler is busy (request_queue.py).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.wire import apis
from shards.config.image import ClusterImage

_FETCH, _SHARE_FETCH = 1, 78
FETCHES: Final = (_FETCH, _SHARE_FETCH)
"""APIs whose answers are what they move."""


class RequestCost(NamedTuple):
    """The cost of one API, in microseconds. `of_answer`: the KiB of the answer cost, not those of the request."""

    fixed_us: float
    per_kib_us: float
    of_answer: bool

    def request_us(self, size: int) -> float:
        """The cost of a request of `size` bytes, as far as it is known before the answer."""
        return self.fixed_us + (0.0 if self.of_answer else self.per_kib_us * size / 1024)

    def answer_us(self, size: int) -> float:
        """The cost that an answer of `size` bytes adds."""
        return self.per_kib_us * size / 1024 if self.of_answer else 0.0


class RequestCosts(dict[int, RequestCost]):
    """The costs that are set, by API key; an API that costs nothing has none."""

    def read(self, image: ClusterImage) -> None:
        """The image has another version: reads the setting again."""
        self.clear()
        found = {api: (fixed_us, per_kib_us) for api, fixed_us, per_kib_us in image.get("turnstile.request.cost")}
        for key in apis.APIS if found else ():
            cost = found.get(apis.api_name(key)) or found.get("*")
            if cost is not None and any(cost):
                self[key] = RequestCost(*cost, of_answer=key in FETCHES)
