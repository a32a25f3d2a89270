"""The OpenAPI document: valid, of every route and no other, and what the API serves."""

from __future__ import annotations

from typing import Annotated

import pytest
from admin_schemas import faults_of, operations
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from broker.admin.describe import Admin
from broker.admin.http import make_app
from broker.admin.openapi import ROUTES, document
from broker.admin.route import RouteTable


def test_the_document_is_valid():
    assert [str(fault) for fault in OpenAPIV31SpecValidator(document()).iter_errors()] == []


async def test_each_route_that_dispatches_is_in_the_document_and_no_other(api):
    guard = make_app(api.admin)
    app = guard._app
    assert isinstance(app, Starlette)
    dispatched = {
        (method, route.path) for route in app.routes if isinstance(route, Route) for method in route.methods - {"HEAD"}
    }
    assert len(app.routes) == len(ROUTES) == len(dispatched)
    assert set(operations().values()) == dispatched


def test_an_operation_has_a_name_of_its_own():
    assert len(operations()) == len(ROUTES)


async def test_it_is_served_as_it_is_made(api):
    assert await api.get("/v1/openapi.json") == document()


async def test_with_a_token_it_needs_the_token_and_only_the_health_does_not(start_api):
    api = await start_api("secret")
    for name, (method, path) in operations().items():
        if method == "GET":
            status, _ = await api.ask(method, path)
            told = document()["paths"][path]["get"]
            assert (status == 401) == ("security" not in told) == (name != "get_health"), path


def test_every_type_and_parameter_says_something():
    schemas = document()["components"]["schemas"]
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []
    parameters = [
        each
        for methods in document()["paths"].values()
        for told in methods.values()
        for each in told.get("parameters", [])
    ]
    assert len(parameters) > 20 and all(each["description"] for each in parameters)


def test_a_path_has_a_parameter_for_each_of_its_blanks():
    for name, (method, path) in operations().items():
        told = document()["paths"][path][method.lower()].get("parameters", [])
        assert [each["name"] for each in told if each["in"] == "path"] == [
            part[1:-1] for part in path.split("/") if part.startswith("{")
        ], name


def test_an_answer_with_something_that_the_document_has_not_is_found():
    assert faults_of("GET", "/v1/notes", 200, {"notes": ["one"]}) == []
    assert faults_of("GET", "/v1/notes?x=1", 200, {"notes": ["one"], "more": 1})
    assert faults_of("GET", "/v1/notes", 200, {"notes": [1]}) and faults_of("GET", "/v1/notes", 200, {})
    assert faults_of("GET", "/v1/notes", 204, None) and faults_of("GET", "/v1/nothing", 200, {})
    assert faults_of("GET", "/v1/telemetry/abc", 404, {"message": "none.", "code": 404}) == []


def test_a_route_takes_nothing_that_it_does_not_say():
    routes = RouteTable("of a test")
    with pytest.raises(TypeError, match="depth: its type is not Annotated"):

        @routes.get("/v1/depth")
        async def get_depth(admin: Admin, depth: Annotated[int, "How deep."]) -> Response:
            return Response()
