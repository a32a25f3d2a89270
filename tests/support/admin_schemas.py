"""Answers of the admin API beside the schemas of its OpenAPI document: no member that the document has not."""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator

from broker.admin.openapi import document


def operations() -> dict[str, tuple[str, str]]:
    """(method, path) of each operation by its name."""
    return {
        told["operationId"]: (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method, told in methods.items()
    }


def body_faults(method: str, path: str, body: object) -> list[str]:
    """Where a body is not as the document has it."""
    return _faults(_body_validator(method, path), body)


def faults_of(method: str, path: str, status: int, body: object) -> list[str]:
    """Where an answer is not as the document has it. `path` may have a query."""
    path = unquote(path.partition("?")[0])  # as the server reads it: %2F is one part of a path more
    found = next((each for each in document()["paths"] if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", each), path)), None)
    if found is None or method.lower() not in document()["paths"][found]:
        return [] if status in (307, 404, 405) else [f"{method} {path} is in no document"]
    told = document()["paths"][found][method.lower()]["responses"].get(str(status))
    if told is None:
        return [f"{method} {path} does not say that it answers with {status}"]
    validator = _answer_validator(method, found, status)
    if validator is None:
        return [] if isinstance(body, str) else [f"{method} {path} is text"]
    return _faults(validator, body)


def _faults(validator: Draft202012Validator, value: object) -> list[str]:
    return [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(value)]


@cache
def _body_validator(method: str, path: str) -> Draft202012Validator:
    return _validator(document()["paths"][path][method.lower()]["requestBody"]["content"]["application/json"])


@cache
def _answer_validator(method: str, path: str, status: int) -> Draft202012Validator | None:
    """None: the answer is text."""
    told = document()["paths"][path][method.lower()]["responses"][str(status)]
    if "$ref" in told:
        told = document()["components"]["responses"][told["$ref"].rpartition("/")[2]]
    json_content = told["content"].get("application/json")
    return None if json_content is None else _validator(json_content)


def _validator(content: dict[str, Any]) -> Draft202012Validator:
    """Its named schemas refuse what they do not name."""
    schemas = document()["components"]["schemas"]
    closed = {name: {**schema, "additionalProperties": False} for name, schema in schemas.items()}
    return Draft202012Validator({**content["schema"], "components": {"schemas": closed}})
