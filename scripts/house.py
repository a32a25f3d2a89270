"""How the tree stands by the measures of a house in good order: a table of figures; `--list MEASURE` says where.

All figures are of the syntax tree of written modules, so they need no run; generated ones say so in their first line. What a
script can't see is to be counted by hand, and the table says so.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from house_attributes import find_set_attributes, group_sets
from house_modules import PRODUCT, ROOT, Module, at, functions, is_generated, nodes, read_modules

MOST_LINES_OF_FILE = 350
MOST_LINES_OF_FUNCTION = 60
MOST_POSITIONAL = 6
SEVERAL_MODULES = 3
LABEL = r"[A-Z]{1,2}\d+[a-z]?"


class Measure(NamedTuple):
    """A row of the table: the places counted, or a number (`by_hand`: neither); what is aimed at."""

    name: str
    places: list[str]
    goal: str
    figure: str = ""


# Types that are written down


def find_any(modules: list[Module]) -> list[str]:
    """Every `Any` but those of imports."""
    found = nodes(modules, ast.Name)
    return [at(module, node, "Any") for module, node in found if isinstance(node, ast.Name) and node.id == "Any"]


def find_bare_tuples(modules: list[Module]) -> list[str]:
    """Functions that return a tuple of two or more positions, or one of them and None. `tuple[X, ...]` is a sequence."""

    def is_bare(kind: ast.expr | None) -> bool:
        if isinstance(kind, ast.BinOp):
            return is_bare(kind.left) or is_bare(kind.right)
        if not isinstance(kind, ast.Subscript) or ast.unparse(kind.value) != "tuple":
            return False
        return isinstance(kind.slice, ast.Tuple) and not any(
            isinstance(each, ast.Constant) and each.value is ... for each in kind.slice.elts
        )

    return [at(module, node, node.name) for module, node in functions(modules) if is_bare(node.returns)]


def find_long_signatures(modules: list[Module]) -> list[str]:
    """Functions with seven positional parameters or more, `self` aside. Commands are left out: click passes by name."""

    def count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        return len(names) - (names[:1] in (["self"], ["cls"]))

    return [
        at(module, node, f"{node.name} {count(node)}")
        for module, node in functions(modules)
        if count(node) > MOST_POSITIONAL and not any("click" in ast.unparse(each) for each in node.decorator_list)
        and not any(re.search(r"command|option", ast.unparse(each)) for each in node.decorator_list)
    ]  # fmt: skip


def find_image_changed(modules: list[Module]) -> list[str]:
    """The different signatures of functions called `image_changed`."""
    signatures: dict[str, str] = {}
    for module, node in functions(modules):
        if node.name == "image_changed":
            kinds = [ast.unparse(each.annotation) for each in node.args.args if each.annotation]
            signatures.setdefault(f"({', '.join(kinds)})", at(module, node, ""))
    return [f"{place}{signature}" for signature, place in signatures.items()]


def find_common_names(modules: list[Module]) -> list[str]:
    """Names of classes, aliases and type variables' likes that three or more modules define at their top."""
    defined: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                defined[node.name].add(module.path)
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                defined[ast.unparse(node.target)].add(module.path)
            elif isinstance(node, ast.Assign) and re.fullmatch(r"_?[A-Z][a-z]\w*", ast.unparse(node.targets[0])):
                defined[ast.unparse(node.targets[0])].add(module.path)
    shared = {name: paths for name, paths in sorted(defined.items()) if len(paths) >= SEVERAL_MODULES}
    return [f"{name}: {', '.join(sorted(paths))}" for name, paths in shared.items()]


# Words


def docstrings(modules: list[Module]) -> Iterator[tuple[Module, ast.AST, str]]:
    """Each docstring, those of attributes too."""
    for module, node in nodes(modules, ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        for each in getattr(node, "body", ()):
            if (
                isinstance(each, ast.Expr)
                and isinstance(each.value, ast.Constant)
                and isinstance(each.value.value, str)
            ):
                yield module, each, each.value.value


def find_labels_alone(modules: list[Module]) -> list[str]:
    """Docstrings that are only a label, such as `L6.`"""
    alone = rf"\(?{LABEL}((,| and|/) ?{LABEL})*( of [\w./]+)?\)?\.?"
    return [at(m, node, text) for m, node, text in docstrings(modules) if re.fullmatch(alone, text.strip())]


def find_labels_twice(modules: list[Module]) -> list[str]:
    """Labels of invariants that two modules state: a line of a docstring that begins with the label and two spaces, or with
    its name in snake case."""
    stated: dict[str, set[str]] = defaultdict(set)
    for module, _, text in docstrings(modules):
        for label in re.findall(rf"^ *({LABEL}|[a-z]+(?:_[a-z]+){{2,}})  +\S", text, re.MULTILINE):
            stated[label].add(module.path)
    return [f"{label}: {', '.join(sorted(paths))}" for label, paths in sorted(stated.items()) if len(paths) > 1]


# Sizes


def find_long_files(modules: list[Module]) -> list[str]:
    """Files of more lines than an idea needs."""
    return [f"{module.path} {module.lines}" for module in modules if module.lines > MOST_LINES_OF_FILE]


def find_long_functions(modules: list[Module]) -> list[str]:
    """Functions of more than sixty lines, without their docstrings."""

    def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        first = node.body[0]
        said = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) else 0
        return (node.end_lineno or 0) - node.lineno + 1 - said

    return [
        at(module, node, f"{node.name} {length(node)}")
        for module, node in functions(modules)
        if length(node) > MOST_LINES_OF_FUNCTION
    ]


def count_lines(*folders: str) -> int:
    """Lines of the Python files in folders, generated ones left out."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    texts = (path.read_text() for path in paths)
    return sum(text.count("\n") for text in texts if not is_generated(text))


def measure(modules: list[Module]) -> list[Measure]:
    """The whole table."""
    sets = find_set_attributes(modules)
    rows: list[tuple[str, Callable[[list[Module]], list[str]], str]] = [
        ("`Any` in the product", find_any, "400"),
        ("functions that return a bare tuple", find_bare_tuples, "40"),
        (
            "collaborators set by another object",
            lambda _: group_sets([each for each in sets if each.is_collaborator]),
            "0",
        ),
        ("plain values set by another module", lambda _: group_sets([e for e in sets if not e.is_collaborator]), ""),
        ("signatures of image_changed", find_image_changed, "1"),
        ("class or alias names in three or more modules", find_common_names, "0"),
        ("docstrings that are only a label", find_labels_alone, "0"),
        ("invariant labels used twice", find_labels_twice, "0"),
        ("functions with seven or more positional parameters", find_long_signatures, "8"),
        ("files over 350 lines", find_long_files, "0"),
        ("functions over 60 lines", find_long_functions, "0"),
    ]
    return [
        Measure("files that a heartbeat, CreateTopics, a token passes", [], "5 / 4 / 3", "by hand"),
        Measure("places to touch for a new API", [], "1", "by hand"),
        *(Measure(name, find(modules), goal) for name, find, goal in rows),
        Measure("lines of the product", [], "57,000", f"{count_lines(*PRODUCT):,}"),
        Measure("lines of the tests", [], "51,000", f"{count_lines('tests'):,}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="How the tree stands by the measures of a house in good order.")
    parser.add_argument("--list", metavar="MEASURE", help="a part of a measure's name: print the places that it counts")
    wanted: str | None = parser.parse_args().list
    for row in measure(read_modules()):
        if wanted is None:
            print(
                f"{row.name:54} {row.figure or f'{len(row.places):,}':>8}   {row.goal and f'goal {row.goal}'}".rstrip()
            )
        elif wanted.lower() in row.name.lower():
            print(row.name, *row.places, sep="\n  ")


if __name__ == "__main__":
    main()
