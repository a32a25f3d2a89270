"""Attributes that another object sets: `x.attribute = ...` in a module that does not define the class of x.

Types are followed as far as they are written down: parameters, annotated attributes, classes that are called. An attribute
that holds a function, or an object with methods of its own, is a collaborator and should have been an argument of its class.
Records (NamedTuples, dataclasses, classes without methods) are values, and so is all that a module of the same folder sets
without being a function: the state of one subject.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import NamedTuple

from house_modules import Module, at, nodes

VALUES = {"int", "str", "float", "bool", "bytes", "None", "bytearray", "memoryview", "list", "dict", "set", "tuple"}


class Declared(NamedTuple):
    """A class of the product: its module, the written type of each attribute, whether it is a record of plain values."""

    path: str
    attributes: dict[str, str]
    is_record: bool


def _types_of_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {each.arg: ast.unparse(each.annotation) for each in arguments if each.annotation is not None}


def _type_of(value: ast.expr | None, names: dict[str, str]) -> str:
    """The written type of a value: of a name, or the class that is called; "" if neither."""
    if isinstance(value, ast.Name):
        return names.get(value.id, "")
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id
    return "Callable" if isinstance(value, ast.Lambda) else ""


def find_callables(modules: list[Module]) -> set[str]:
    """Names that stand for a type of functions: `Callable`, and aliases of it."""
    assigned = (node for module in modules for node in module.tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    said = [ast.unparse(node) for node in assigned if node.value is not None]
    return {"Callable", *(each.split()[0].rstrip(":") for each in said if re.search(r"= Callable\b", each))}


def declare(modules: list[Module]) -> dict[str, list[Declared]]:
    """Every class by its name."""
    classes: dict[str, list[Declared]] = defaultdict(list)
    for module, node in nodes(modules, ast.ClassDef):
        assert isinstance(node, ast.ClassDef)
        found: dict[str, str] = {}
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        for each in node.body:
            if isinstance(each, ast.AnnAssign):
                found[ast.unparse(each.target)] = ast.unparse(each.annotation)
        for method in methods:
            names = _types_of_parameters(method)
            if method.decorator_list and method.returns is not None:
                found[method.name] = ast.unparse(method.returns)
            for inner in ast.walk(method):
                targets = inner.targets if isinstance(inner, ast.Assign) else [getattr(inner, "target", None)]
                if not isinstance(inner, ast.Assign | ast.AnnAssign):
                    continue
                for target in targets:
                    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                        written = inner.annotation if isinstance(inner, ast.AnnAssign) else None
                        kind = ast.unparse(written) if written is not None else _type_of(inner.value, names)
                        found[target.attr] = found.get(target.attr) or kind
        acting = [each for each in methods if not each.name.startswith("__") and not each.decorator_list]
        made = [ast.unparse(each) for each in (*node.bases, *node.decorator_list)]
        is_record = not acting or any(re.search(r"NamedTuple|dataclass", each) for each in made)
        classes[node.name].append(Declared(module.path, found, is_record))
    return classes


def _class_of(expression: ast.expr, inside: str, names: dict[str, str], classes: dict[str, list[Declared]]) -> str:
    """The class of an expression, followed through the attributes that classes declare; "" if it is not written down."""
    if isinstance(expression, ast.Name):
        kind = inside if expression.id == "self" else names.get(expression.id, "")
    elif isinstance(expression, ast.Attribute):
        owner = _class_of(expression.value, inside, names, classes)
        kind = next(
            (each.attributes[expression.attr] for each in classes.get(owner, ()) if expression.attr in each.attributes),
            "",
        )
    else:
        kind = ""
    return re.sub(r" \| None|\[.*\]$", "", kind)


class Set(NamedTuple):
    """One assignment of another object's attribute."""

    place: str
    attribute: str  # Class.attribute
    is_collaborator: bool


def find_set_attributes(modules: list[Module]) -> list[Set]:
    """The assignments `x.attribute = ...` from a module that does not define the class of x."""
    classes, callables = declare(modules), find_callables(modules)
    found = []
    for module, within in nodes(modules, ast.ClassDef, ast.Module):
        for function in getattr(within, "body", ()):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            inside = within.name if isinstance(within, ast.ClassDef) else ""
            names = _types_of_parameters(function)
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    kind = _type_of(node.value, names) or _class_of(node.value, inside, names, classes)
                    names.setdefault(node.targets[0].id, kind)
            for node in ast.walk(function):
                if isinstance(node, ast.Assign):
                    owners = ((target, _owner(target, inside, names, classes)) for target in node.targets)
                    found += [_set(module, node, target, owner, classes, callables) for target, owner in owners]
    return [each for each in found if each is not None]


def _owner(target: ast.expr, inside: str, names: dict[str, str], classes: dict[str, list[Declared]]) -> str:
    """The class of the object whose attribute is assigned; "" where that is the object itself, or not written down."""
    if not isinstance(target, ast.Attribute) or ast.unparse(target.value) in ("self", "cls"):
        return ""
    return _class_of(target.value, inside, names, classes)


def _only_owner(name: str, classes: dict[str, list[Declared]], callables: set[str]) -> tuple[str, list[Declared]]:
    """The one class that declares a function of this name as its attribute, for an object of unknown class."""
    owners = [(owner, each) for owner, found in classes.items() for each in found if name in each.attributes]
    is_one = len(owners) == 1 and set(re.findall(r"\w+", owners[0][1].attributes[name])) & callables
    return (owners[0][0], [owners[0][1]]) if is_one else ("", [])


def _set(
    module: Module,
    node: ast.Assign,
    target: ast.expr,
    owner: str,
    classes: dict[str, list[Declared]],
    callables: set[str],
) -> Set | None:
    name = target.attr if isinstance(target, ast.Attribute) else ""
    declared = [each for each in classes.get(owner, ()) if name in each.attributes]
    if not owner and ast.unparse(getattr(target, "value", target)) not in ("self", "cls"):
        owner, declared = _only_owner(name, classes, callables)
    if not declared or any(each.path == module.path for each in declared):
        return None
    words = set(re.findall(r"\w+", declared[0].attributes[name]))
    near = declared[0].path.rpartition("/")[0] == module.path.rpartition("/")[0]
    acting = not near and any(not each.is_record for word in words - VALUES for each in classes.get(word, ()))
    is_callable = bool(words & callables) or isinstance(node.value, ast.Lambda)
    return Set(at(module, node, ast.unparse(target)), f"{owner}.{name}", is_callable or acting)


def group_sets(sets: list[Set]) -> list[str]:
    """One line for each attribute, with the places that set it."""
    places: dict[str, list[str]] = defaultdict(list)
    for each in sets:
        places[each.attribute].append(each.place.split()[0])
    return [f"{name}: {', '.join(found)}" for name, found in sorted(places.items())]
