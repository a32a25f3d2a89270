"""The client in Python: one file that needs the standard library alone."""

from __future__ import annotations

from api_model import ApiModel, Field, Kind, Operation, Record, wrapped

FILE = "python/turnstile_admin.py"
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "any": "Any"}
_HEAD = '''"""A client of Turnstile's admin API, which needs Python 3.11 alone. A file to copy.

    api = AdminApi("http://127.0.0.1:9644")
    api.put_config({"upsert": {"kafka_connections_max_per_ip": 3}})

Generated from the API's OpenAPI document by `make clients`: changes belong there.
"""

# mypy: disable-error-code="no-any-return"
# ruff: noqa: E501, SIM105
# fmt: off
from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Literal, NotRequired, TypedDict


class AdminRefused(Exception):
    """The API answered with an error: `status` is HTTP's, `told` the JSON of its body; `str()` is its sentence."""

    def __init__(self, status: int, told: Any) -> None:
        told = told if isinstance(told, dict) else {"message": str(told)}
        sentences = [told["message"]] if "message" in told else told.values()
        super().__init__("\\n".join(map(str, sentences)))
        self.status = status
        self.told = told


class AdminApi:
    """Calls of the admin API of one cluster. They raise AdminRefused, and OSError where nothing answers."""

    def __init__(
        self, url: str, token: str | None = None, *, who: str = "a client in Python", timeout_s: float = 15.0
    ) -> None:
        """`who` is what the history of changes names the caller."""
        self._url = url.rstrip("/")
        self._headers = {"content-type": "application/json", "x-turnstile-who": who}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout_s = timeout_s

    def _text(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> str:
        words = {name: json.dumps(value) if isinstance(value, bool) else value for name, value in query.items()}
        asked = urllib.parse.urlencode({name: value for name, value in words.items() if value is not None})
        content = None if body is None else json.dumps(body).encode()
        target = f"{self._url}{path}?{asked}" if asked else self._url + path
        request = urllib.request.Request(target, content, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as fault:
            told = fault.read().decode()
            try:
                told = json.loads(told)
            except ValueError:
                pass  # of something before the API
            raise AdminRefused(fault.code, told) from None

    def _json(self, method: str, path: str, query: dict[str, Any], body: Any = None) -> Any:
        return json.loads(self._text(method, path, query, body))
'''


def written(api: ApiModel) -> dict[str, str]:
    """The files by their paths."""
    lines = [_HEAD]
    for operation in api.operations:
        lines += [*_method(operation), ""]
    lines += ["", "# ---- what is sent and answered", ""]
    for record in api.records:
        lines += ["", *_class(record), ""]
    return {FILE: "\n".join(lines).rstrip() + "\n"}


def _method(operation: Operation) -> list[str]:
    answer = _type(operation.answer) if operation.answer else "str"
    given = [f"{_name(each)}: {_type(each.kind)}" for each in operation.in_path]
    given += [f"body: {_type(operation.body)}"] if operation.body else []
    if operation.in_query:
        given += ["*", *(f"{_name(each)}: {_type(each.kind)} | None = None" for each in operation.in_query)]
    query = ", ".join(f'"{each.name}": {_name(each)}' for each in operation.in_query)
    path = operation.path
    for each in operation.in_path:
        path = path.replace(f"{{{each.name}}}", f'{{urllib.parse.quote({_name(each)}, safe="")}}')
    spelled = f"f{path!r}" if operation.in_path else f'"{path}"'
    body = ", body" if operation.body else ""
    ask = "_json" if operation.answer else "_text"
    return [
        f"    def {operation.name}({', '.join(['self', *given])}) -> {answer}:",
        f'        """{operation.says}"""',
        f'        return self.{ask}("{operation.method}", {spelled}, {{{query}}}{body})',
    ]


def _class(record: Record) -> list[str]:
    lines = [f"class {record.name}(TypedDict):"]
    lines += [f'    """{record.says}"""', ""] if record.says else []
    for each in record.fields:
        kind = _type(each.kind)
        lines += wrapped(each.says, "    # ")
        lines.append(f"    {each.name}: {kind if each.required else f'NotRequired[{kind}]'}")
    return lines


def _name(field: Field) -> str:
    return field.name.replace("-", "_")


def _type(kind: Kind) -> str:
    told = _of(kind)
    return f"{told} | None" if kind.nullable and told != "Any" else told


def _of(kind: Kind) -> str:
    if kind.form == "word":
        return f"Literal[{', '.join(f'{word!r}' for word in kind.words)}]".replace("'", '"')
    if kind.form == "record":
        return kind.name
    if kind.form == "either":
        return " | ".join(_type(part) for part in kind.parts)
    if kind.form == "tuple":
        return "list[Any]"
    if kind.form in ("list", "map"):
        return f"list[{_type(kind.parts[0])}]" if kind.form == "list" else f"dict[str, {_type(kind.parts[0])}]"
    return _SCALARS[kind.form]
