"""The options of `turnstile up`, as broker.process.launch takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from shards.config.cluster_plan import ListenerSpec


@dataclass(eq=False)
class LaunchOptions:
    """The options of the user, parsed and checked as far as no process is needed for it."""

    brokers: int = 1
    shards: int = 1
    listeners: list[ListenerSpec] = field(default_factory=list)
    admin: tuple[str, int] = ("127.0.0.1", 9644)
    admin_token: str | None = None
    data_dir: Path | None = None
    settings: list[tuple[str, str]] = field(default_factory=list)
    topics: list[tuple[str, int]] = field(default_factory=list)
    quotas: list[tuple[dict[str, str | None], dict[str, float]]] = field(default_factory=list)
    users: dict[str, str] = field(default_factory=dict)
    observed: list[tuple[str, str]] = field(default_factory=list)
    override_stored: bool = False
    json_lines: bool = False
    ends_with_stdin: bool = False
    ends_with_pid: int | None = None
    ready_line: str | None = None
    notes: list[str] = field(default_factory=list)
    """Sentences to say once it is up."""
    name: str | None = None
    journal_parts: bool | None = None
    """None: Parquet parts, unless the data directory is removed at the end."""
