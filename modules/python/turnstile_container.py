"""Turnstile for tests in Python, in a container or, where no Docker is, as a process. A file to copy, with turnstile_admin.py.

    with TurnstileContainer("--topic", "orders:3") as turnstile:
        run_my_client(turnstile.bootstrap)
        turnstile.set("kafka_connections_max_per_ip", 3)
        print(turnstile.api.get_tokens())

The container needs `testcontainers`, the process the `turnstile` command. Which it is, says the variable TURNSTILE_RUN:
`container` (the default), or `process`. TURNSTILE_IMAGE names the image.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from typing import Any

from turnstile_admin import AdminApi

IMAGE = "localhost/turnstile:latest"


class TurnstileContainer:
    """A cluster of one broker. `options` are those of `turnstile up`. It is there in a `with` block, or from start() to stop()."""

    def __init__(self, *options: str, run: str | None = None, image: str | None = None) -> None:
        self.run = run or os.environ.get("TURNSTILE_RUN", "container")
        if self.run not in ("container", "process"):
            raise ValueError(f"TURNSTILE_RUN cannot be {self.run!r}: container or process")
        self._image = image or os.environ.get("TURNSTILE_IMAGE", IMAGE)
        self._options = options
        self._token = secrets.token_hex(16)
        self._started: Any = None
        self.bootstrap = ""
        """What a client's `bootstrap.servers` takes."""
        self.admin = ""
        """The URL of the admin API."""
        self.api = AdminApi("")
        """Calls of the admin API, once it is started."""

    def start(self) -> TurnstileContainer:
        """Returns when every process of the cluster accepts connections."""
        try:
            if self.run == "container":
                self._start_container()
            else:
                self._start_process()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_container(self) -> None:
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

        container = DockerContainer(self._image).with_exposed_ports(9092, 9644)
        container = container.with_env("TURNSTILE_ADMIN_TOKEN", self._token).with_command(["up", *self._options])
        self._started = container.waiting_for(LogMessageWaitStrategy("Turnstile is ready.")).start()
        host = container.get_container_host_ip()
        self.bootstrap = f"{host}:{container.get_exposed_port(9092)}"
        self.admin = f"http://{host}:{container.get_exposed_port(9644)}"
        # The port is known only now: from here on clients are told of it.
        self._meet_api()
        self.api.put_advertised({"addresses": self.bootstrap})

    def _start_process(self) -> None:
        command = ["turnstile", "up", "--json", "--end-with-stdin", "--port", "0", "--admin-port", "0", *self._options]
        environment = {**os.environ, "TURNSTILE_ADMIN_TOKEN": self._token}
        self._started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        told = json.loads(self._started.stdout.readline())
        if "error" in told:
            raise RuntimeError(told["error"])
        self.bootstrap, self.admin = told["listeners"][0]["address"], told["admin"]
        self._meet_api()

    def _meet_api(self) -> None:
        self.api = AdminApi(self.admin, self._token, who="tests in Python")

    def stop(self) -> None:
        """Ends it, and everything of it."""
        if self._started is None:
            return
        if self.run == "container":
            self._started.stop()
        else:
            self._started.communicate()  # it ends with its standard input

    def __enter__(self) -> TurnstileContainer:
        return self.start()

    def __exit__(self, *fault: object) -> None:
        self.stop()

    def set(self, name: str, value: Any) -> None:
        """A setting, in force on every process when this returns."""
        self.api.put_config({"upsert": {name: value}})

    def quota(self, entity: dict[str, str | None], **rates: float) -> None:
        """Quotas of an entity such as {"client-id": "app"}, in force likewise."""
        self.api.put_quotas({"alter": [{"entity": entity, "set": rates}]})

    def reset(self) -> None:
        """As it was when it started: no record, no group, no limit that a test has set, no connection."""
        self.api.reset()

    def refusals(self) -> dict[str, int]:
        """Connections refused since the reset, by the limit that refused them."""
        found: dict[str, int] = {}
        for row in self.api.get_refusals(by="ip")["refusals"]:
            for reason, count in row["reasons"].items():
                found[reason] = found.get(reason, 0) + count
        return found
