"""Compiled modules in place of their sources, where they were made from these very sources.

`scripts/compile_modules.py` compiles the modules that pyproject.toml lists and writes them, with a manifest, into the
environment: never beside the sources. There they are for this checkout, and for any other of the same sources.

compiled_of_these_sources  A compiled module is imported only if each source that the compilation read is byte for byte as
    it was then. All compiled modules are used, or none: they call each other without looking anything up.
pure_by_default  Without a manifest, in a wheel, under another Python, or with TURNSTILE_COMPILED=0 the sources are run.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

SWITCH: Final = "TURNSTILE_COMPILED"
"""An environment variable: 0 runs the sources, and compiles nothing."""
FOLDER: Final = "turnstile-compiled"
MANIFEST: Final = "manifest.json"
"""`folder` (relative to that of the manifest), `modules` (names) and `sources` ({path from the root: digest})."""
_SUFFIX: Final = EXTENSION_SUFFIXES[0]


class CompiledModules:
    """Finds modules of these names in a folder; an entry of sys.meta_path."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self._files = {name: folder / file_of(name) for name in modules}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The compiled module of this name, if there is one."""
        file = self._files.get(name)
        return None if file is None else spec_from_file_location(name, file)


def file_of(module: str) -> str:
    """The name of a module's file, which is of one Python and one platform."""
    return module + _SUFFIX


def digest(source: bytes) -> str:
    """The digest of a source; the hash by which CPython tells a cached .pyc from a stale one."""
    return source_hash(source).hex()


def home_of_compiled() -> Path:
    """The folder of this environment's manifest, which may not exist."""
    return Path(sys.prefix) / FOLDER


def compiled_of(root: Path, home: Path) -> CompiledModules | None:
    """The compiled modules in `home` that were made from the sources below `root`; None: there are none."""
    try:
        manifest: Mapping[str, Any] = json.loads((home / MANIFEST).read_bytes())
        folder, modules = home / manifest["folder"], manifest["modules"]
        if any(digest((root / path).read_bytes()) != was for path, was in manifest["sources"].items()):
            return None
    except (OSError, ValueError, KeyError):
        return None
    if not all((folder / file_of(module)).exists() for module in modules):
        return None
    return CompiledModules(folder, modules)


def use_compiled(package: str) -> bool:
    """Has compiled modules imported from now on, where pure_by_default does not forbid it; returns whether it does."""
    if package != "shards" or os.environ.get(SWITCH) == "0":
        return False
    found = compiled_of(Path(__file__).parents[1], home_of_compiled())
    if found is None:
        return False
    sys.meta_path.insert(0, found)
    return True
