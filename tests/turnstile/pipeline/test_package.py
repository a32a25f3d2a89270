"""What is shipped to workers that do not have the project runs there by itself."""

import os
import subprocess
import sys
from pathlib import Path

from turnstile.fleet.job import SHIPPED
from turnstile.pipeline.session import package


def test_what_is_shipped_can_be_imported_from_its_zip_alone(tmp_path: Path) -> None:
    shipped = package(tmp_path)
    script = "import turnstile.pipeline.plan.pieces as p, turnstile.pipeline.events.spark_rows; print(p.__file__)"
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
