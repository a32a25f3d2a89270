"""Routes of the admin API. Each is a function, and its signature is what OpenAPI says of it.

    routes = RouteTable("settings")

    @routes.get("/v1/config/history")
    async def get_history(admin: Admin, limit: Limit, before: Before) -> SettingHistory:
        "The last changes, the latest first."

signature_is_the_contract  A route gets the Admin and what its other arguments say of a request: parameters of the query, the
    path or a header, and a body. It does not get the request, so it can't read anything else of it. It returns what the type
    of its answer says, which tests compare with real answers, or a Response that was declared with the route.
no_parameter_is_ignored  A request below /v1 with a parameter in its query that the route does not take, or with one twice, is
    answered with 400: the caller of `PUT ...?dryrun=true` does not expect a change. Pages and metrics ignore parameters that
    others append.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from broker.admin.describe import Admin
from broker.admin.requests import read_body

JSON_TYPE = "application/json"
RouteFunction: TypeAlias = Callable[..., Awaitable[object]]
F = TypeVar("F", bound=RouteFunction)
_NOTHING: Mapping[int, object] = {}
_STRICT = "/v1/"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a route. `place`: query, path or header; "": the caller does not give it, and it is not described.
    `schema`: of its value. `read(request)` raises HTTPException."""

    name: str
    place: str
    says: str
    schema: Mapping[str, object]
    read: Callable[[Request], object]
    required: bool = False


@dataclass(frozen=True)
class Body:
    """The JSON body of a request, whose type is not checked here. The argument is called `body`; `read` makes it of a request."""

    kind: object
    read: Callable[[Request], Awaitable[object]] = read_body


@dataclass(frozen=True)
class Content:
    """The body of a Response that a route made by itself."""

    kind: object


@dataclass(frozen=True)
class AdminRoute:
    """A row of the table that dispatches. `parameters`: by the names of the function's arguments; `answer`: the type of what it
    answers with 200, in one of `media_types`; `also`: types of answers with other codes; `open`: it needs no token."""

    tag: str
    method: str
    path: str
    function: RouteFunction
    parameters: Mapping[str, Parameter]
    body: Body | None
    answer: object
    media_types: tuple[str, ...]
    also: Mapping[int, object]
    open: bool

    @property
    def name(self) -> str:
        """The name of the operation, for clients that are generated."""
        return self.function.__name__

    @property
    def says(self) -> str:
        """The description of the route, in sentences."""
        return " ".join((self.function.__doc__ or "").split())

    @property
    def is_strict(self) -> bool:
        """True if the route refuses a parameter of the query that it does not take."""
        return self.path.startswith(_STRICT)

    def endpoint(self, admin: Admin) -> Callable[[Request], Awaitable[Response]]:
        """The function that answers a request."""

        async def answer(request: Request) -> Response:
            self._refuse_unknown(request)
            given = {name: parameter.read(request) for name, parameter in self.parameters.items()}
            if self.body is not None:
                given["body"] = await self.body.read(request)
            returned = await self.function(admin, **given)
            return returned if isinstance(returned, Response) else JSONResponse(returned)

        return answer

    def _refuse_unknown(self, request: Request) -> None:
        """Raises HTTPException for a parameter of the query that the route does not take."""
        if not self.is_strict:
            return
        known = sorted(each.name for each in self.parameters.values() if each.place == "query")
        for name in request.query_params:
            if name not in known:
                takes = f"takes {', '.join(known)}" if known else "takes no parameters"
                raise HTTPException(400, f"{name!r} is not a parameter: {self.method} {self.path} {takes}.")
            if len(request.query_params.getlist(name)) > 1:
                raise HTTPException(400, f"{name!r} is there twice.")


class RouteTable:
    """Routes about one thing, in the order in which they are written."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._rows: list[AdminRoute] = []

    def __iter__(self) -> Iterator[AdminRoute]:
        return iter(self._rows)

    def get(
        self,
        path: str,
        *,
        media_types: tuple[str, ...] = (JSON_TYPE,),
        also: Mapping[int, object] = _NOTHING,
        open: bool = False,
    ) -> Callable[[F], F]:
        """See AdminRoute."""
        return self._route("GET", path, media_types, also, open)

    def put(self, path: str) -> Callable[[F], F]:
        return self._route("PUT", path)

    def post(self, path: str, *, also: Mapping[int, object] = _NOTHING) -> Callable[[F], F]:
        return self._route("POST", path, also=also)

    def delete(self, path: str) -> Callable[[F], F]:
        return self._route("DELETE", path)

    def _route(
        self,
        method: str,
        path: str,
        media_types: tuple[str, ...] = (JSON_TYPE,),
        also: Mapping[int, object] = _NOTHING,
        open: bool = False,
    ) -> Callable[[F], F]:
        def add(function: F) -> F:
            takes = get_type_hints(function, include_extras=True)
            answer = _content(takes.pop("return"))
            declared = {name: _declared(name, hint) for name, hint in takes.items() if hint is not Admin}
            parameters = {name: each for name, each in declared.items() if isinstance(each, Parameter)}
            body = next((each for each in declared.values() if isinstance(each, Body)), None)
            row = AdminRoute(self._tag, method, path, function, parameters, body, answer, media_types, also, open)
            self._rows.append(row)
            return function

        return add


def _content(hint: object) -> object:
    of = get_args(hint)[1] if get_origin(hint) is Annotated else None
    return of.kind if isinstance(of, Content) else hint


def _declared(name: str, hint: object) -> Parameter | Body:
    of = get_args(hint)[1] if get_origin(hint) is Annotated else None
    if not isinstance(of, Parameter | Body):
        raise TypeError(f"{name}: its type is not Annotated with a Parameter or a Body")
    return of
