"""The modules of the product as syntax trees, for scripts/house.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PRODUCT = ("broker", "shards", "turnstile")
GENERATED = {"broker/wire/requests.py"}


class Module(NamedTuple):
    """One file of the product: its path from the root, its lines, its syntax tree."""

    path: str
    lines: int
    tree: ast.Module


def read_modules() -> list[Module]:
    """Every written module of the product; generated ones are left out."""
    paths = sorted(path for package in PRODUCT for path in (ROOT / package).rglob("*.py"))
    named = [(str(path.relative_to(ROOT)), path.read_text()) for path in paths]
    return [Module(name, text.count("\n"), ast.parse(text)) for name, text in named if name not in GENERATED]


def nodes(modules: list[Module], *kinds: type[ast.AST]) -> Iterator[tuple[Module, ast.AST]]:
    """Each node of these kinds, with its module."""
    for module in modules:
        yield from ((module, node) for node in ast.walk(module.tree) if isinstance(node, kinds))


def functions(modules: list[Module]) -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Each function and method, nested ones too."""
    for module, node in nodes(modules, ast.FunctionDef, ast.AsyncFunctionDef):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield module, node


def at(module: Module, node: ast.AST, what: str) -> str:
    """`path:line what`."""
    return f"{module.path}:{getattr(node, 'lineno', 1)} {what}"
