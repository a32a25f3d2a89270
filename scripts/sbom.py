"""The SBOM of a wheel, in CycloneDX 1.6: what requirements.lock has of the package's libraries, and which needs which.

A library that only an extra needs has the scope `optional`. Hashes are those of the lock, of each library's distributions.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
import uuid
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from container.runtime_lock import needed_by, normalised, runtime  # noqa: E402 - importable once the line above has run

_OF_WINDOWS = r"^[^\n]*(os_name == 'nt'|sys_platform == 'win32')"
"""A marker of rows that no wheel of Turnstile, which needs Linux, brings in."""


class _Library(NamedTuple):
    """A row of the lock. `marker`: where this version is the one, "" for everywhere. A name may have several versions."""

    name: str
    version: str
    marker: str
    hashes: list[str]
    needed_by: set[str]
    is_core: bool

    @classmethod
    def of(cls, row: str, *, is_core: bool) -> _Library:
        name, version, marker = re.match(r"(\S+?)==([^\s;]+)(?: ; (.*?))? *\\?$", row, re.MULTILINE).groups("")
        return cls(
            normalised(name), version, marker, re.findall(r"--hash=sha256:([0-9a-f]{64})", row), needed_by(row), is_core
        )

    @property
    def purl(self) -> str:
        return _purl(self.name, self.version)

    def component(self) -> dict[str, Any]:
        hashes = [{"alg": "SHA-256", "content": each} for each in self.hashes]
        marker = [{"name": "turnstile:marker", "value": self.marker}] if self.marker else []
        return {
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            "version": self.version,
            "scope": "required" if self.is_core else "optional",
            "purl": self.purl,
            "externalReferences": [{"type": "distribution", "url": self.purl, "hashes": hashes}],
            **({"properties": marker} if marker else {}),
        }


def write_sbom(wheel: Path) -> Path:
    """Beside the wheel, as NAME-VERSION.cdx.json; the same for the same wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = wheel.name.split("-")[:2]
    made = wheel.with_name(f"{name}-{version}.cdx.json")
    document = sbom(
        project, (ROOT / "requirements.lock").read_text(), sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        when=_time_of(wheel),
    )  # fmt: skip
    made.write_text(json.dumps(document, indent=2) + "\n")
    return made


def sbom(project: dict[str, Any], lock: str, *, sha256: str, when: datetime) -> dict[str, Any]:
    """The document, of a wheel with this hash, made `when`."""
    core = set(runtime(lock, project, []))
    libraries = [
        _Library.of(row, is_core=row in core)
        for row in runtime(lock, project, list(project.get("optional-dependencies", {})))
        if not re.search(_OF_WINDOWS, row)
    ]
    own = _purl(project["name"], project["version"])
    direct = {normalised(re.split(r"[<>=!~;\[ ]", each)[0]) for each in _asked(project)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}#{sha256}')}",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": own, "name": project["name"], "version": project["version"],
                "description": project["description"], "purl": own, "hashes": [{"alg": "SHA-256", "content": sha256}],
            },
        },
        "components": [each.component() for each in libraries],
        "dependencies": [
            {"ref": own, "dependsOn": [each.purl for each in libraries if each.name in direct]},
            *(
                {"ref": one.purl, "dependsOn": [each.purl for each in libraries if one.name in each.needed_by]}
                for one in libraries
            ),
        ],
    }  # fmt: skip


def _asked(project: dict[str, Any]) -> list[str]:
    return [*project["dependencies"], *(each for some in project["optional-dependencies"].values() for each in some)]


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{normalised(name)}@{version}"


def _time_of(wheel: Path) -> datetime:
    """The time of the wheel's files, which is that of its commit."""
    with zipfile.ZipFile(wheel) as archive:
        return datetime(*max(each.date_time for each in archive.infolist()), tzinfo=UTC)
