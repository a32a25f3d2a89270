"""The page of the admin API, from its own OpenAPI document: each route, what it takes, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scripts.docs.markdown import code, plain, slug, table

PLACE = "reference/admin-api.md"
Schema = Mapping[str, Any]
_HEAD = """# Every call of the admin API

Look up what a running cluster can be asked and told over HTTP, in any language. This page is made from the OpenAPI document that
each cluster serves at `/v1/openapi.json`, and that from the routes themselves. [The admin API](../api.md) says who may ask, and has
clients in several languages.
"""
_NO_BODY = "Errors"


def admin_api_page(document: Schema) -> str:
    """The page of an OpenAPI 3.1 document."""
    routes = [(path, method, each) for path, item in document["paths"].items() for method, each in item.items()]
    parts = [_HEAD, table(["call", ""], [_row(*route) for route in routes])]
    for tag in document["tags"]:
        parts += [f"## {tag['name'].capitalize()}\n", plain(tag["description"]) + "\n"]
        for path, method, operation in routes:
            if tag["name"] in operation["tags"]:
                parts += _operation(path, method, operation)
    parts += [f"## {_NO_BODY}\n", table(["code", "means"], _errors(document)), "## Objects\n"]
    for name, schema in document["components"]["schemas"].items():
        parts += _object(name, schema)
    return "\n".join(parts)


def title_of(path: str, method: str) -> str:
    """The heading of a route: `GET /v1/quotas`."""
    return f"{method.upper()} {path}"


def _row(path: str, method: str, operation: Schema) -> tuple[str, str]:
    title = title_of(path, method)
    return f"[{code(title)}](#{slug(title)})", plain(operation["summary"])


def _told(operation: Schema) -> str:
    """The description of a route: its summary, and its further sentences."""
    return " ".join(filter(None, (f"{operation['summary'].removesuffix('.')}.", operation.get("description"))))


def _operation(path: str, method: str, operation: Schema) -> Iterator[str]:
    yield f"### {title_of(path, method)}\n"
    yield plain(_told(operation)) + "\n"
    parameters = [(code(each["name"]), each["in"], _parameter(each)) for each in operation.get("parameters", ())]
    if parameters:
        yield table(["parameter", "in the", ""], parameters)
    if body := operation.get("requestBody"):
        yield f"Body: {_contents(body)}.\n"
    answers = {status: answer for status, answer in operation["responses"].items() if "$ref" not in answer}
    yield "Answers: " + "; ".join(f"{status}, {_contents(answer)}" for status, answer in answers.items()) + ".\n"
    errors = [status for status in operation["responses"] if status not in answers]
    if errors:
        yield f"[{_NO_BODY}](#{slug(_NO_BODY)}): {', '.join(errors)}.\n"


def _parameter(parameter: Schema) -> str:
    return f"{plain(parameter['description'])} ({kind_of(parameter['schema'])}{', required' if parameter['required'] else ''})"


def _contents(message: Schema) -> str:
    """The content of a request or an answer: its schema, with the media type where it is not JSON."""
    told = []
    for media, content in message["content"].items():
        kind = kind_of(content["schema"])
        told.append(kind if media == "application/json" else f"{kind} as {code(media)}")
    return " or ".join(told)


def _errors(document: Schema) -> Iterator[tuple[str, str]]:
    for name, response in document["components"]["responses"].items():
        yield name.removeprefix("Error"), plain(response["description"])


def _object(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name}\n"
    yield plain(schema.get("description", "")) + "\n"
    fields = schema.get("properties", {})
    required = schema.get("required", ())
    if fields:
        yield table(["field", "is", ""], [_field(each, of, each in required) for each, of in fields.items()])
    else:
        yield f"It is {kind_of(schema)}.\n"


def _field(name: str, schema: Schema, required: bool) -> tuple[str, str, str]:
    return code(name), kind_of(schema) + ("" if required else ", or absent"), plain(schema.get("description", ""))


def kind_of(schema: Schema) -> str:
    """A schema in words, its objects as links."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{slug(name)})"
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return ", ".join(code(str(each)) for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(kind_of(each) for each in schema["anyOf"])
    kinds = schema.get("type", "anything")
    return " or ".join(_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _kind(kind: str, schema: Schema) -> str:
    if kind == "array":
        items = [kind_of(each) for each in schema.get("prefixItems", ())]
        return f"list of {', '.join(items) or _one(kind_of(schema.get('items', {})))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"map of name to {_one(kind_of(schema['additionalProperties']))}"
    if kind == "integer" and {"minimum", "maximum"} <= schema.keys():
        return f"integer from {schema['minimum']:,} to {schema['maximum']:,}"
    default = (
        f", {code(str(schema['default']).lower())} by default" if kind == "boolean" and "default" in schema else ""
    )
    return ("text" if kind == "string" else kind) + default


def _one(kinds: str) -> str:
    return f"({kinds})" if " or " in kinds else kinds
