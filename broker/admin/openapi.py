"""The OpenAPI document of the admin API, made from the table of routes that dispatches (ROUTES). Pure.

one_table  Each route is in the document, and each operation of the document is a route: both are made from ROUTES.

Source: OpenAPI Specification 3.1.0, whose schemas are JSON Schema 2020-12.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from broker.admin import clients_api, cluster_api, redpanda_api, settings_api
from broker.admin.answers import InvalidValues, Problem
from broker.admin.describe import Admin
from broker.admin.json_schema import Schema, Schemas
from broker.admin.requests import MAX_BODY
from broker.admin.route import JSON_TYPE, AdminRoute, Parameter, RouteTable

routes = RouteTable("document")


@routes.get("/v1/openapi.json")
async def get_openapi(admin: Admin) -> dict[str, object]:
    """This document."""
    return document()


ROUTES: tuple[AdminRoute, ...] = (
    *settings_api.routes,
    *clients_api.routes,
    *cluster_api.routes,
    *redpanda_api.routes,
    *routes,
)
"""Every route of the admin API, in the order in which they are matched."""
_TAGS = {
    "settings": "The cluster's settings, and the advertised addresses.",
    "clients": "Quotas, users, faults and telemetry of clients.",
    "cluster": "The running cluster: connections, tokens, processes, metrics.",
    "redpanda": "Calls of Redpanda's admin API v2, by the Connect protocol, for rpk.",
    "document": "This description.",
}
_ABOUT = (
    "Settings, quotas and counters of a running cluster. A change is answered when it is in force on every shard. An error is one "
    "sentence."
)
_RESPONSES: Mapping[int, str] = {
    400: "The request can't be understood, or a value is refused: nothing has changed.",
    401: "The token is missing or wrong.",
    403: "A web page of another site asked, or the header x-turnstile-who is missing.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    413: f"The body has more than {MAX_BODY} bytes.",
    500: "A mistake in Turnstile; the log has its trace.",
    501: "A part of it is not emulated.",
    429: "The controller takes no more operations for now (rps_limit_*).",
    503: "This can't be told now.",
    507: "The change can't be stored: the disk is full, or broken.",
}


@cache
def document() -> dict[str, object]:
    """The whole document, as JSON has it. Not to be changed by its caller."""
    from importlib.metadata import version  # a fifth of what the admin API imports, and for few callers

    schemas = Schemas("#/components/schemas/")
    paths: dict[str, dict[str, object]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    responses = {f"Error{code}": _error(code, says, schemas) for code, says in _RESPONSES.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Turnstile admin API", "version": version("turnstile-kafka"), "description": _ABOUT},
        "servers": [{"url": "http://127.0.0.1:9644"}],
        "security": [{}, {"token": []}, {"password": []}],
        "tags": [{"name": name, "description": says} for name, says in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.named.items())),
            "responses": responses,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Where the cluster was started with a token."},
                "password": {"type": "http", "scheme": "basic", "description": "The same, with the token as the password."},
            },
        },
    }  # fmt: skip


def _operation(route: AdminRoute, schemas: Schemas) -> dict[str, object]:
    summary, _, rest = route.says.partition(". ")
    answers = {200: route.answer, **route.also}
    codes = [code for code in _codes(route) if code not in answers]
    described = [_parameter(each) for each in route.parameters.values() if each.place]
    body = route.body and _content(JSON_TYPE, schemas.of(route.body.kind))
    return {
        "operationId": route.name,
        "summary": summary.rstrip("."),
        **({"description": rest} if rest else {}),
        "tags": [route.tag],
        **({"security": [{}]} if route.open else {}),
        **({"parameters": described} if described else {}),
        **({"requestBody": {"required": True, "content": body}} if body else {}),
        "responses": {
            **{str(code): _answer(code, kind, route.media_types, schemas) for code, kind in answers.items()},
            **{str(code): {"$ref": f"#/components/responses/Error{code}"} for code in codes},
        },
    }


def _codes(route: AdminRoute) -> list[int]:
    """The codes other than 200 that a route may answer."""
    takes = [each.place for each in route.parameters.values()]
    asked = [400] if route.is_strict else []
    guarded = [403] if route.open else [401, 403]
    missing = [404] if "path" in takes else []
    body = [408, 413] if route.body else []
    stored = [429, 507] if route.method != "GET" else []
    return [*asked, *guarded, *missing, *body, 500, 503, *stored]


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.says,
        "required": parameter.required,
        "schema": dict(parameter.schema),
    }


def _answer(code: int, kind: object, media_types: tuple[str, ...], schemas: Schemas) -> dict[str, object]:
    says = "The answer." if code == 200 else _RESPONSES[code]
    content = {name: each for media in media_types for name, each in _content(media, schemas.of(kind)).items()}
    return {"description": says, "content": content}


def _error(code: int, says: str, schemas: Schemas) -> dict[str, object]:
    schema = schemas.of(Problem | InvalidValues if code == 400 else Problem)
    return {"description": says, "content": _content(JSON_TYPE, schema)}


def _content(media_type: str, schema: Schema) -> dict[str, object]:
    return {media_type: {"schema": schema}}
