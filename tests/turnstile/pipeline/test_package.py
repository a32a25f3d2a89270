"""What is shipped to workers that do not have the project runs there by itself."""

import os
import subprocess
import sys
from pathlib import Path

from turnstile.fleet.job import SHIPPED
from turnstile.pipeline.session import package

ROOT = Path(__file__).parents[3]


def test_what_is_shipped_can_be_imported_from_its_zip_alone(tmp_path: Path) -> None:
    """Every module whose functions are kernels of an audit, a report or a plan."""
    shipped = package(tmp_path)
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for room in ("audit", "events", "plan", "report")
        for path in sorted((ROOT / "turnstile" / "pipeline" / room).glob("*.py"))
        if path.stem != "__init__"
    ]
    script = f"import {', '.join(names)}; print(turnstile.pipeline.plan.replay_pieces.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(shipped)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(str(shipped)), done.stderr


def test_drivers_of_a_load_need_nothing_but_what_is_shipped(tmp_path: Path) -> None:
    """-S: without the libraries of this environment, as on a worker that has Python and Spark alone."""
    shipped = package(tmp_path, SHIPPED)
    script = "import turnstile.fleet.task as t, turnstile.load.storm; print(t.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(shipped)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(str(shipped)), done.stderr
