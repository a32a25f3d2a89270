"""The client in Go, laid out as gofmt has it."""

from __future__ import annotations

from collections.abc import Sequence

from api_model import ApiModel, Field, Kind, Operation, Record, camel, pascal, words_of, wrapped

FILE = "go/admin.go"
_SCALARS = {"string": "string", "word": "string", "integer": "int64", "number": "float64", "boolean": "bool"}
_INITIALS = ("id", "ip", "api", "url")
_HEAD = """// Code generated from the admin API's OpenAPI document by `make clients`. DO NOT EDIT.

package turnstile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// AdminAPI calls the admin API of one cluster. Who is what the history of changes names the caller.
type AdminAPI struct {
	URL, Token, Who string
}

// AdminRefused says that the API answered with an error: its Status is HTTP's, and Told its body.
type AdminRefused struct {
	Status int
	Told   string
}

func (r *AdminRefused) Error() string { return fmt.Sprintf("%d: %s", r.Status, r.Told) }

// text has the body of an answer. A nil body is not sent.
func (a *AdminAPI) text(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, a.URL+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", "application/json")
	request.Header.Set("x-turnstile-who", a.Who)
	if a.Token != "" {
		request.Header.Set("authorization", "Bearer "+a.Token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 400 {
		err = &AdminRefused{response.StatusCode, string(told)}
	}
	return told, err
}

func ask[T any](ctx context.Context, a *AdminAPI, method, path string, query url.Values, body any) (answer T, err error) {
	told, err := a.text(ctx, method, path, query, body)
	if err == nil {
		err = json.Unmarshal(told, &answer)
	}
	return answer, err
}

func put[T any](query url.Values, name string, value *T) {
	if value != nil {
		query.Set(name, fmt.Sprint(*value))
	}
}
"""


def written(api: ApiModel) -> dict[str, str]:
    """The files by their paths."""
    lines = [_HEAD.rstrip()]
    for operation in api.operations:
        lines += _query(operation) + _method(operation)
    for record in api.records:
        lines += ["", *wrapped(f"{record.name}: {record.says}", "// "), *_struct(record.name, _members(record))]
    return {FILE: "\n".join(lines) + "\n"}


def _query(operation: Operation) -> list[str]:
    """A struct of what the query has; what is nil is left out."""
    if not operation.in_query:
        return []
    name = f"{pascal(operation.name)}Query"
    members = [(each, f"*{_type(each.kind)}", "") for each in operation.in_query]
    sets = [f'\tput(query, "{each.name}", q.{_name(each)})' for each in operation.in_query]
    return [
        "",
        f"// {name} is the query of {pascal(operation.name)}; what is nil is left out.",
        *_struct(name, members),
        "",
        f"func (q {name}) values() url.Values {{",
        "\tquery := url.Values{}",
        *sets,
        "\treturn query",
        "}",
    ]


def _method(operation: Operation) -> list[str]:
    name = pascal(operation.name)
    given = [f"{camel(each.name)} string" for each in operation.in_path]
    given += [f"body {_type(operation.body)}"] if operation.body else []
    given += [f"query {name}Query"] if operation.in_query else []
    path = f'"{operation.path}"'
    for each in operation.in_path:
        path = path.replace(f'{{{each.name}}}"', f'"+url.PathEscape({camel(each.name)})')
    words = [f'"{operation.method}", {path}']
    words += ["query.values()" if operation.in_query else "nil", "body" if operation.body else "nil"]
    if operation.answer is None:
        answer, call = "[]byte", f"a.text(ctx, {', '.join(words)})"
    else:
        answer = _type(operation.answer)
        call = f"ask[{answer}](ctx, a, {', '.join(words)})"
    return [
        "",
        *wrapped(f"{name}: {operation.says}", "// "),
        f"func (a *AdminAPI) {name}({', '.join(['ctx context.Context', *given])}) ({answer}, error) {{",
        f"\treturn {call}",
        "}",
    ]


def _members(record: Record) -> list[tuple[Field, str, str]]:
    found = []
    for each in record.fields:
        kind = _type(each.kind)
        is_plain = kind.startswith(("[]", "map[", "*")) or kind == "any"
        kind = kind if each.required or is_plain else f"*{kind}"
        found.append((each, kind, f'`json:"{each.name}{"" if each.required else ",omitempty"}"`'))
    return found


def _struct(name: str, members: Sequence[tuple[Field, str, str]]) -> list[str]:
    """gofmt aligns the columns of fields between which there is no comment."""
    lines = [f"type {name} struct {{"]
    block: list[tuple[str, str, str]] = []

    def flush() -> None:
        first = max((len(row[0]) for row in block), default=0)
        second = max((len(row[1]) for row in block), default=0)
        lines.extend(f"\t{a:{first}} {b:{second}} {c}".rstrip() for a, b, c in block)
        block.clear()

    for field, kind, tag in members:
        if field.says:
            flush()
            lines += wrapped(field.says, "\t// ")
        block.append((_name(field), kind, tag))
    flush()
    return [*lines, "}"]


def _name(field: Field) -> str:
    return "".join(word.upper() if word in _INITIALS else word.capitalize() for word in words_of(field.name))


def _type(kind: Kind) -> str:
    if kind.form in ("any", "either"):
        return "any"
    if kind.form == "tuple":
        return "[]any"
    if kind.form == "list":
        return f"[]{_type(kind.parts[0])}"
    if kind.form == "map":
        return f"map[string]{_type(kind.parts[0])}"
    told = kind.name if kind.form == "record" else _SCALARS[kind.form]
    return f"*{told}" if kind.nullable else told
