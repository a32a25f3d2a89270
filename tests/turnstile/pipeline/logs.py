"""Random connection logs in every format that a plan reads, written as their programs write them."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from plain import Row

START = 1_767_600_000_000_000
NAMES = ("10.0.0.1", "10.0.0.2", "192.0.2.7", "2001:db8::9", "2001:db8::1:9")
SPELLED = {"192.0.2.7": "::ffff:192.0.2.7", "2001:db8::9": "2001:DB8:0:0::9"}
"""Another spelling of some addresses, which is the same client."""


def random_log(seed: int, *, count: int = 25, step_us: int = 1000) -> list[Row]:
    """Few addresses, many instants shared, some connections without length; `step_us`: what the format can tell apart."""
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        opened = START + chance.randrange(40) * max(step_us, 1000)
        lasted = chance.randrange(15) * max(step_us, 1000)
        rows.append((chance.choice(NAMES), opened, opened + lasted, "PLAINTEXT"))
    return rows


def _spelled(row: Row, number: int) -> str:
    return SPELLED.get(row[0], row[0]) if number % 2 else row[0]


def _s(micros: int) -> str:
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"


def zeek(path: Path, log: list[Row]) -> None:
    """TSV; halves of it with other fields and a header of their own, as concatenated logs are."""
    wide, narrow = ("ts", "uid", "id.orig_h", "id.orig_p", "proto", "duration"), ("duration", "ts", "id.orig_h")
    lines = []
    for number, row in enumerate(log):
        if number in (0, len(log) // 2):
            names = wide if number == 0 else narrow
            lines.append("#fields\t" + "\t".join(names))
        _, opened, closed, _ = row
        cells = {"ts": _s(opened), "uid": "C", "id.orig_h": _spelled(row, number), "id.orig_p": "1", "proto": "tcp",
                 "duration": _s(closed - opened)}  # fmt: skip
        lines.append("\t".join(cells[name] for name in names))
    path.with_suffix(".log").write_text("\n".join(lines) + "\n#close\n")


def json_lines(path: Path, log: list[Row]) -> None:
    """Zeek's JSON."""
    rows = [
        {"ts": opened / 1e6, "id.orig_h": _spelled(row, number), "proto": "tcp", "duration": (closed - opened) / 1e6}
        for number, row in enumerate(log)
        for _, opened, closed, _ in [row]
    ]
    path.with_suffix(".json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def csv(path: Path, log: list[Row]) -> None:
    """Columns in another order in each file, times in ms."""
    names = ["ip", "opened_at", "closed_at"]
    random.Random(path.name).shuffle(names)
    lines = [",".join(names)]
    for number, row in enumerate(log):
        cells = {"ip": _spelled(row, number), "opened_at": str(row[1] // 1000), "closed_at": str(row[2] // 1000)}
        lines.append(",".join(cells[name] for name in names))
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n")


def haproxy(path: Path, log: list[Row]) -> None:
    """`option tcplog`."""
    lines = []
    for number, row in enumerate(log):
        at = datetime.fromtimestamp(row[1] / 1e6, UTC).strftime("%d/%b/%Y:%H:%M:%S") + f".{row[1] // 1000 % 1000:03d}"
        lasted = (row[2] - row[1]) // 1000
        lines.append(f"{_spelled(row, number)}:{40000 + number} [{at}] PLAINTEXT b/s 0/0/{lasted} 9 -- 0/0/0/0/0 0/0")
    path.with_suffix(".log").write_text("\n".join(lines) + "\n")


def vpcflow(path: Path, log: list[Row]) -> None:
    """Version 2, a record for each connection; ports rise, as they decide between connections of one second."""
    lines = [
        f"2 1 eni-1 {row[0]} 10.9.0.1 {10000 + number} 9092 6 1 1 {row[1] // 1_000_000} {row[2] // 1_000_000} ACCEPT OK"
        for number, row in enumerate(log)
    ]
    path.with_suffix(".log").write_text("\n".join(lines) + "\n")


FORMATS: dict[str, tuple[str, Callable[[Path, list[Row]], None]]] = {
    "zeek": ("zeek", zeek),
    "json": ("zeek", json_lines),
    "csv": ("csv", csv),
    "haproxy": ("haproxy", haproxy),
    "vpcflow": ("vpcflow", vpcflow),
}
