"""The client in JavaScript, and its types for TypeScript and editors."""

from __future__ import annotations

import re

from api_model import ApiModel, Field, Kind, Operation, Record, camel, wrapped

FILE, TYPES = "node/admin.js", "node/admin.d.ts"
_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "any": "unknown"}
_SAYS = "// Generated from the API's OpenAPI document by `make clients`: changes belong there."
_HEAD = f"""// A client of Turnstile's admin API, which needs Node 20 alone: `new AdminApi('http://127.0.0.1:9644')`.
// admin.d.ts has its types. {_SAYS[3:]}

// The API answered with an error: `status` is HTTP's, `told` the JSON of its body; the message is its sentence.
export class AdminRefused extends Error {{
  constructor (status, told) {{
    super('message' in told ? told.message : Object.values(told).join('\\n'))
    this.status = status
    this.told = told
  }}
}}

export class AdminApi {{
  // `who` is what the history of changes names the caller.
  constructor (url, token, who = 'a client in Node') {{
    this.url = url
    this.headers = {{ 'content-type': 'application/json', 'x-turnstile-who': who }}
    if (token) this.headers.authorization = `Bearer ${{token}}`
  }}

  async text (method, path, query = {{}}, body = undefined) {{
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value != null)).toString()
    const answer = await fetch(this.url + path + (asked && `?${{asked}}`), {{
      method, headers: this.headers, body: body && JSON.stringify(body)
    }})
    const told = await answer.text()
    if (answer.ok) return told
    let fault = {{ message: told }} // of something before the API
    try {{ fault = JSON.parse(told) }} catch {{}}
    throw new AdminRefused(answer.status, fault)
  }}

  async json (method, path, query, body) {{
    return JSON.parse(await this.text(method, path, query, body))
  }}
"""
_TYPES_HEAD = f"""// The types of admin.js. {_SAYS[3:]}

export class AdminRefused extends Error {{
  status: number
  told: Record<string, unknown>
}}

export class AdminApi {{
  /** `who` is what the history of changes names the caller. */
  constructor (url: string, token?: string, who?: string)
"""


def written(api: ApiModel) -> dict[str, str]:
    """The files by their paths."""
    methods = [line for operation in api.operations for line in ("", *_method(operation))]
    declared = [line for operation in api.operations for line in ("", *_declared(operation))]
    interfaces = [line for record in api.records for line in ("", *_interface(record))]
    return {
        FILE: "\n".join([_HEAD.rstrip(), *methods, "}"]) + "\n",
        TYPES: "\n".join([_TYPES_HEAD.rstrip(), *declared, "}", *interfaces]) + "\n",
    }


def _method(operation: Operation) -> list[str]:
    given = [camel(each.name) for each in operation.in_path]
    given += ["body"] if operation.body else []
    given += ["query"] if operation.in_query else []
    path = re.sub(r"\{([^}]+)\}", lambda found: f"${{encodeURIComponent({camel(found[1])})}}", operation.path)
    quote = "`" if operation.in_path else "'"
    words = [f"'{operation.method}'", f"{quote}{path}{quote}"]
    words += ["query" if operation.in_query else "{}"] if operation.in_query or operation.body else []
    words += ["body"] if operation.body else []
    ask = "json" if operation.answer else "text"
    return [
        f"  {camel(operation.name)} ({', '.join(given)}) {{",
        f"    return this.{ask}({', '.join(words)})",
        "  }",
    ]


def _declared(operation: Operation) -> list[str]:
    given = [f"{camel(each.name)}: string" for each in operation.in_path]
    given += [f"body: {_type(operation.body)}"] if operation.body else []
    if operation.in_query:
        query = ", ".join(f"{_key(each)}?: {_type(each.kind)}" for each in operation.in_query)
        given += [f"query?: {{ {query} }}"]
    answer = _type(operation.answer) if operation.answer else "string"
    return [f"  /** {operation.says} */", f"  {camel(operation.name)} ({', '.join(given)}): Promise<{answer}>"]


def _interface(record: Record) -> list[str]:
    lines = ["/**", *wrapped(record.says, " * "), " */"] if len(record.says) > 110 else [f"/** {record.says} */"]
    lines.append(f"export interface {record.name} {{")
    for each in record.fields:
        lines += [f"  /** {each.says} */"] if each.says else []
        lines.append(f"  {_key(each)}{'' if each.required else '?'}: {_type(each.kind)}")
    return [*lines, "}"]


def _key(field: Field) -> str:
    return f"'{field.name}'" if "-" in field.name else field.name


def _type(kind: Kind) -> str:
    told = _of(kind)
    return f"{told} | null" if kind.nullable and told != "unknown" else told


def _of(kind: Kind) -> str:
    if kind.form == "word":
        return " | ".join(f"'{word}'" for word in kind.words)
    if kind.form == "record":
        return kind.name
    if kind.form == "either":
        return " | ".join(_type(part) for part in kind.parts)
    if kind.form == "tuple":
        return f"[{', '.join(_type(part) for part in kind.parts)}]"
    if kind.form == "map":
        return f"Record<string, {_type(kind.parts[0])}>"
    if kind.form == "list":
        of = _type(kind.parts[0])
        return f"Array<{of}>" if " " in of else f"{of}[]"
    return _SCALARS[kind.form]
