"""A page in a real browser, used as a person uses it: keys and clicks that the browser itself takes for real ones.

Chromium is told what to do over its DevTools protocol, on two pipes: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if _FOUND is None:  # each file of tests that imports this is skipped, and all of them with one line
    pytest.skip("needs chromium: apt-get install chromium", allow_module_level=True)
CHROMIUM = _FOUND
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PATIENCE_S = 180.0
"""A browser starts in a second, but not on a machine that is busy elsewhere."""
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
"""Keys that are no characters, and the codes that browsers have for them."""


class DevTools:
    """A browser: commands and answers on two pipes."""

    def __init__(self, commands: int, answers: int) -> None:
        """`commands` and `answers`: the pipes' ends here."""
        self._commands = commands
        self._answers = answers
        self._unread = b""
        self._number = 0

    def call(self, method: str, note: Callable[[Any], None], session: str | None = None, **parameters: Any) -> Any:
        """The result of a command to a page (`session`), or to the browser. `note` is called with events that come meanwhile."""
        self._number += 1
        to = {} if session is None else {"sessionId": session}
        told = json.dumps({"id": self._number, "method": method, "params": parameters, **to})
        os.write(self._commands, told.encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            note(answer)

    def next(self) -> Any:
        """The next answer or event."""
        while b"\0" not in self._unread:
            assert select.select([self._answers], [], [], PATIENCE_S)[0], "the browser does not answer"
            more = os.read(self._answers, 1 << 16)
            assert more, "the browser has ended"
            self._unread += more
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)


class Page:
    """One page. What the browser reports of errors in scripts, or of what its security policy refused, is in `errors`."""

    def __init__(self, tools: DevTools) -> None:
        self._tools = tools
        self._session: str | None = None
        self._loaded = self._expired = 0
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Returns when its scripts have been run once."""
        before = self._loaded
        self._call("Page.navigate", url=url)
        while self._loaded == before:
            self._note(self._tools.next())

    def passes(self, ms: int) -> None:
        """So much time passes on the page's own clock, which waits for nothing but what the page asks for. Then it stands still."""
        before = self._expired
        self._call("Emulation.setVirtualTimePolicy", policy="pauseIfNetworkFetchesPending", budget=ms)
        while self._expired == before:
            self._note(self._tools.next())

    def goes_on(self) -> None:
        """Its clock is that of the machine again, or ahead of it."""
        self._call("Emulation.setVirtualTimePolicy", policy="advance")

    def looks(self, *, width: int, height: int = 900, dark: bool = False) -> None:
        """The window's size, in the pixels of style sheets, and the colours that its user prefers."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript's expression; of a promise what it brings. Raises AssertionError."""
        told = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until it is true; the page is looked at each time it may have been drawn."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(f"new Promise(done => requestAnimationFrame(() => done(Boolean({expression}))))"):
            assert time.monotonic() < deadline, f"{expression} did not hold; the page has {self.text()!r}"

    def text(self, selector: str = "body") -> str:
        """As a person reads it."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, *keys: str) -> None:
        """Tab, Enter, Escape, or text that is typed."""
        for key in keys:
            if key in _KEYS:
                code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
                character = {"text": "\r"} if key == "Enter" else {}
                self._call("Input.dispatchKeyEvent", type="keyDown", **code, **character)
                self._call("Input.dispatchKeyEvent", type="keyUp", **code)
            else:
                self._call("Input.insertText", text=key)

    def mouse(self, selector: str, *acts: str) -> None:
        """`acts` of the mouse on the middle of an element: mousePressed, mouseReleased."""
        place = self.evaluate(
            f"(one => {{ one.scrollIntoView({{block: 'center'}}); const {{x, y, width, height}} = one.getBoundingClientRect();"
            f" return [x + width / 2, y + height / 2]; }})(document.querySelector({json.dumps(selector)}))"
        )
        where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for act in acts:
            self._call("Input.dispatchMouseEvent", type=act, **where)

    def click(self, selector: str) -> None:
        self.mouse(selector, "mousePressed", "mouseReleased")

    def picture(self, path: Path) -> None:
        """The whole page, as PNG."""
        data = self._call("Page.captureScreenshot", captureBeyondViewport=True, format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _call(self, method: str, **parameters: Any) -> Any:
        return self._tools.call(method, self._note, self._session, **parameters)

    def _note(self, event: Any) -> None:
        if event.get("sessionId") != self._session:
            return
        told = event.get("params", {})
        self._loaded += event.get("method") == "Page.loadEventFired"
        self._expired += event.get("method") == "Emulation.virtualTimeBudgetExpired"
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(told["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif event.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(told["entry"]["text"])


def _pipe_from(number: int) -> tuple[int, int]:
    """A pipe whose ends have this number or higher ones."""
    ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, number) for end in ends)
    for end in ends:
        os.close(end)
    return reading, writing


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with one page; its profile is in `folder`."""
    with started(folder) as tools:
        yield Page(tools)


@contextmanager
def started(folder: Path) -> Iterator[DevTools]:
    """A browser without a page; its profile is in `folder`."""
    (its_commands, commands), (answers, its_answers) = _pipe_from(10), _pipe_from(10)  # it has them as 3 and 4
    options = [*OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={folder}/profile"]
    command = ["bash", "-c", f'exec "$0" "$@" 3<&{its_commands} 4>&{its_answers}', CHROMIUM, *options]
    process = subprocess.Popen(command, pass_fds=(its_commands, its_answers), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    os.close(its_commands)
    os.close(its_answers)
    try:
        yield DevTools(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
