"""`make clients`: the clients of the admin API in modules/, one for each language, from its OpenAPI document; and the table of
its routes in docs/api.md.

Why by hand: of 36 routes the known generators make a package of a hundred files (openapi-python-client, openapi-generator), or
can't read OpenAPI 3.1 (oapi-codegen). Each of these is one file that needs its language alone, Java's Jackson, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import in_dotnet
import in_go
import in_java
import in_node
import in_python
from api_model import model_of

from broker.admin.openapi import ROUTES, document
from broker.admin.route import AdminRoute

ROOT = Path(__file__).parents[2]
PAGE = "docs/api.md"
TABLE = "| request | does |\n|---|---|\n"
LANGUAGES = (in_python, in_go, in_java, in_node, in_dotnet)


def main() -> int:
    parser = argparse.ArgumentParser(description="The clients of the admin API, from its OpenAPI document.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if a file is not what it would be"
    )
    only_checks: bool = parser.parse_args().check
    api = model_of(document())
    files = {f"modules/{name}": text for language in LANGUAGES for name, text in language.written(api).items()}
    files[PAGE] = _page()
    stale = [name for name, text in files.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    for name in stale:
        if not only_checks:
            (ROOT / name).write_text(files[name])
        print(f"{name} {'is not what make clients writes' if only_checks else 'is written'}")
    return int(only_checks and bool(stale))


def _page() -> str:
    """docs/api.md with the table of routes as it is now."""
    rows = "".join(f"| `{route.method} {route.path}{_query(route)}` | {route.says} |\n" for route in ROUTES)
    return re.sub(rf"{re.escape(TABLE)}(\|.*\n)*", lambda _: TABLE + rows, (ROOT / PAGE).read_text())


def _query(route: AdminRoute) -> str:
    names = [each.name for each in route.parameters.values() if each.place == "query"]
    return "?" + "&".join(f"{name}=" for name in names) if names else ""


if __name__ == "__main__":
    sys.exit(main())
