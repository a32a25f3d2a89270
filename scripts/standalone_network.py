"""Workers as machines of their own: a network namespace each, on a bridge with this machine, and a monotonic clock of its own."""

import os
import subprocess

HOST = "198.18.77.1"
"""This machine, as workers see it: of the range that RFC 2544 keeps for benchmarks."""
RANGE = "198.18.77.0/24"
ADDRESSES = 3
"""Addresses of each worker besides its first."""
CLOCK_AHEAD_S = 5000


class Network:
    """A bridge, and `workers` namespaces on it. Needs root."""

    def __init__(self, workers: int) -> None:
        self._bridge = f"tsb{os.getpid()}"
        self._names = [f"ts{os.getpid()}-{number}" for number in range(workers)]

    def make(self) -> None:
        """Raises CalledProcessError where namespaces may not be made."""
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{HOST}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number, name in enumerate(self._names):
            here, there = f"tsh{os.getpid()}.{number}", f"tsw{os.getpid()}.{number}"
            _ip("netns", "add", name)
            _ip("link", "add", here, "type", "veth", "peer", "name", there)
            _ip("link", "set", here, "master", self._bridge, "up")
            _ip("link", "set", there, "netns", name)
            for address in (self.address(number), *self.more(number)):
                _ip("-netns", name, "address", "add", f"{address}/24", "dev", there)
            _ip("-netns", name, "link", "set", there, "up")
            _ip("-netns", name, "link", "set", "lo", "up")

    def end(self) -> None:
        """Removes it."""
        for name in self._names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True, check=False)

    def address(self, number: int) -> str:
        """The address of a worker."""
        return f"198.18.77.{10 + number}"

    def more(self, number: int) -> list[str]:
        """Other addresses of a worker."""
        return [f"198.18.77.{100 + 10 * number + each}" for each in range(ADDRESSES)]

    def within(self, number: int) -> list[str]:
        """The command before a command that runs there."""
        ahead = str(CLOCK_AHEAD_S * (number + 1))
        return ["ip", "netns", "exec", self._names[number], "unshare", "--time", "--monotonic", ahead]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
