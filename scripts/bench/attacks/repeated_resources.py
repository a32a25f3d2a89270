"""DescribeConfigs of one resource, thousands of times in 50 KB."""

from __future__ import annotations

from typing import Any

from scripts.bench.attacks.attack import Attack
from scripts.bench.attacks.requests import ask, frame
from scripts.bench.machine import Server


def _fields(types: Any) -> dict[str, Any]:
    one = types.DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
    return {"resources": (one,) * 8000, "include_synonyms": True, "include_documentation": True}


def run(server: Server) -> None:
    ask(server.port, *[frame("describe_configs", 4, _fields)] * 3)


ATTACK = Attack("DescribeConfigs of 8,000 times one resource, 3 times", run)
