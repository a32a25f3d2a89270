"""What is shipped to workers that do not have the project runs there by itself."""

import os
import subprocess
import sys
from pathlib import Path

from turnstile.pipeline.session import package


def test_what_is_shipped_can_be_imported_from_its_zip_alone(tmp_path: Path) -> None:
    shipped = package(tmp_path)
    script = "import turnstile.pipeline.plan.pieces as p, turnstile.pipeline.events.spark_rows; print(p.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(shipped)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(str(shipped)), done.stderr
