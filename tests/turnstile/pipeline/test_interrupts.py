"""Interrupts wait for imports to end."""

import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turnstile.pipeline.interrupts import between_imports

HANDLERS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
INTERRUPTED = "import signal\nsignal.raise_signal(signal.{name})\nwhole = True\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_import_ends_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = f"interrupted_by_{name.lower()}"
    (tmp_path / f"{module}.py").write_text(INTERRUPTED.format(name=name))
    monkeypatch.syspath_prepend(tmp_path)
    before = [signal.getsignal(each) for each in HANDLERS]
    with pytest.raises(KeyboardInterrupt), between_imports():
        importlib.import_module(module)
        signal.pause()
    assert sys.modules.pop(module).whole
    assert [signal.getsignal(each) for each in HANDLERS] == before


def test_an_interrupt_that_waits_at_the_end_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "interrupted_last.py").write_text(INTERRUPTED.format(name="SIGINT"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), between_imports():
        importlib.import_module("interrupted_last")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_outside_imports_it_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), between_imports():
        signal.raise_signal(signal.SIGTERM)


def test_in_another_thread_nothing_changes() -> None:
    """Where a caller has its own threads, signals are its own business."""
    code = (
        "import signal, threading\n"
        "from turnstile.pipeline.interrupts import between_imports\n"
        "def run():\n"
        "    with between_imports(): print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "thread = threading.Thread(target=run); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
