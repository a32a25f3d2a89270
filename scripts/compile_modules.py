"""Compiles the modules of `[tool.turnstile] compiled` in pyproject.toml by mypyc, into the environment (shards/compiled.py).

Does nothing where they are compiled already. Says in one line why they are not: no C compiler or no header files of Python
(the sources are run then, which is all that changes), or TURNSTILE_COMPILED=0. With --check it only says which it is.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from shards.compiled import MANIFEST, SWITCH, compiled_of, digest, file_of, home_of_compiled  # noqa: E402

_GROUP = "turnstile_compiled"
_SHARED = f"{_GROUP}__mypyc"
"""The library that has the code of all modules."""
_SETUP = """
from mypyc.build import mypycify
from setuptools import setup
setup(name="compiled", packages=[], ext_modules=mypycify(
    ["--config-file=mypy.toml", *{sources!r}], opt_level="1", debug_level="0", group_name={group!r}))
"""


def main() -> int:
    """Exit code 0 also where nothing could be compiled; 1: the compiler failed, or, with --check, the sources are run."""
    home = home_of_compiled()
    if "--check" in sys.argv[1:]:
        found = compiled_of(ROOT, home) is not None
        print("compiled" if found else "not compiled: the sources are run")
        return 0 if found else 1
    if os.environ.get(SWITCH) == "0":
        print(f"  {SWITCH}=0: nothing is compiled")
        shutil.rmtree(home, ignore_errors=True)
        return 0
    if compiled_of(ROOT, home) is not None:
        return 0
    missing = what_is_missing()
    if missing:
        print(f"  no {missing}: pure Python everywhere, which only makes limits slower on several shards")
        return 0
    print("  compiling the arithmetic of tokens (half a minute)", flush=True)
    return compile_into(home)


def what_is_missing() -> str:
    """The tool that a compilation needs and that is missing here; "" if none is."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"C compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "header files of Python (Python.h)"
    return ""


def listed_modules() -> list[str]:
    """The modules to be compiled, of each listed package all but its __init__."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["turnstile"]["compiled"]
    found: list[str] = []
    for name in listed:
        path = ROOT.joinpath(*name.split("."))
        if path.is_dir():
            found += sorted(f"{name}.{each.stem}" for each in path.glob("*.py") if each.stem != "__init__")
        else:
            found.append(name)
    return found


def source_of(module: str) -> str:
    """The path of a module's source, from the root."""
    path = ROOT.joinpath(*module.split("."))
    return str((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(ROOT))


def read_by(modules: list[str]) -> list[str]:
    """The sources that a compilation of these reads: their own, and those of all that they import, as the compiler copies
    constants and layouts from them."""
    seen: set[str] = set()
    ahead = list(modules)
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead += imports_of(module)
    return sorted(source_of(module) for module in seen)


def imports_of(module: str) -> Iterator[str]:
    """The modules of the tree that a module imports, and the packages that they lie in."""
    names = {module}
    for node in ast.walk(ast.parse((ROOT / source_of(module)).read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    for name in names:
        parts = name.split(".")
        if parts[0] == module.split(".")[0]:
            for length in range(1, len(parts) + 1):
                path = ROOT.joinpath(*parts[:length])
                if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
                    yield ".".join(parts[:length])


def compile_into(home: Path) -> int:
    """Compiles, and puts the new modules in place of earlier ones: the manifest names them once they are all there."""
    modules = listed_modules()
    sources = {path: digest((ROOT / path).read_bytes()) for path in read_by(modules)}
    with TemporaryDirectory(prefix="turnstile-compiled-") as folder:
        built = Path(folder)
        for path in sources:
            (built / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, built / path)
        shutil.copy(ROOT / "pyproject.toml", built / "mypy.toml")
        (built / "compile.py").write_text(
            _SETUP.format(sources=[source_of(module) for module in modules], group=_GROUP)
        )
        command = [sys.executable, "compile.py", "--quiet", "build_ext", "--inplace"]
        flags = {"CFLAGS": f"{os.environ.get('CFLAGS', '')} -g0"}
        done = subprocess.run(command, cwd=built, env={**os.environ, **flags}, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            return 1
        put_in_place(built, home, [*modules, _SHARED], sources)
    return 0


def put_in_place(built: Path, home: Path, modules: list[str], sources: dict[str, str]) -> None:
    """Moves compiled modules into the environment. A process that runs goes on with those that it has loaded."""
    name = digest(json.dumps(sources).encode())
    shutil.rmtree(home / name, ignore_errors=True)
    (home / name).mkdir(parents=True)
    for module in modules:
        *folders, last = module.split(".")
        shutil.copy(built.joinpath(*folders, file_of(last)), home / name / file_of(module))
    draft = home / f"{MANIFEST}.new"
    draft.write_text(json.dumps({"folder": name, "modules": modules, "sources": sources}, indent=1))
    draft.replace(home / MANIFEST)
    for each in home.iterdir():
        if each.is_dir() and each.name != name:
            shutil.rmtree(each)


if __name__ == "__main__":
    sys.exit(main())
