"""Finished spool segments -> Parquet parts, in a process of its own at low priority.

A process rather than a thread of each shard: see docs/internals/journal.md for the measurement. It shares nothing with the
shards but the folder, so killing it at any instant loses nothing: a part appears whole by a rename, its segment goes
after that, and converting a segment again gives the same part under the same name.

Without the libraries for Parquet (`turnstile-kafka[pipeline]`), and with `turnstile up --journal spool`, the journal stays a
spool, from which a job makes the parts where the libraries are installed.

Invariants
  events_in_segment_or_part  an event is in a segment or in a part of the same stem, at every instant; readers take one of
      the two
  journal_is_bounded  parts, or segments that stay segments, take at most keep_bytes plus one file; the oldest go first
  torn_parts_are_made_again  a part whose converter was killed in the middle of it is made again; its unfinished file is
      deleted
"""

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from broker.journal import spool
from broker.journal.schema import COLUMNS

DEFAULT_KEEP_BYTES = 2 << 30
PERIOD_S = 0.25
NICENESS = 19
_ASIDE = ".aside"
_UNFINISHED_S = 60.0
RISING = ("ts", "mono_ns", "seq", "conn")
"""Columns whose values differ from row to row by little: deltas are both smaller and faster than a dictionary."""


def run(
    folder: Path,
    *,
    stop: int,
    parts: bool = True,
    keep_bytes: int = DEFAULT_KEEP_BYTES,
    log: Callable[[str], None] = print,
) -> None:
    """Convert until the file descriptor `stop` is readable or at its end; then once more, and return.

    `parts`: False: no Parquet parts are made; segments are only finished, and the oldest deleted.

    Lowers this process's priority. A segment that can't be converted now (disk full) is tried again later; a file
    that is no segment is set aside as `.bad`. `log` gets one sentence per kind of trouble, not per attempt.
    """
    os.nice(NICENESS)
    makes_parts = parts and can_convert()
    spool.spool_folder(folder).mkdir(parents=True, exist_ok=True)
    last = ""
    stopping = False
    stopped = select.poll()
    stopped.register(stop, select.POLLIN)
    while not stopping:
        stopping = bool(stopped.poll(PERIOD_S * 1000))
        try:
            if makes_parts:
                finish(folder, keep_bytes=keep_bytes)
            else:
                spool.finish_abandoned(folder)
                delete_oldest(spool.spool_folder(folder), keep_bytes, spool.DONE)
            trouble = ""
        except OSError as error:
            trouble = f"journal: spools can't be converted to parts yet: {error}"
        if trouble and trouble != last:
            log(trouble)
        last = trouble


def can_convert() -> bool:
    """True if the libraries that parts are made with are installed."""
    return all(find_spec(name) is not None for name in ("numpy", "pyarrow"))


def finish(folder: Path, *, keep_bytes: int | None = None) -> int:
    """Convert every finished segment, and every live one whose writer is gone; returns how many events became parts.

    Raises OSError when a part can't be written; its segment stays.
    """
    if not spool.spool_folder(folder).is_dir():
        return 0
    spool.finish_abandoned(folder)
    delete_unfinished(folder, now_s=time.time())
    events = 0
    for path in sorted(spool.spool_folder(folder).glob(f"*{spool.DONE}"), key=_age):
        events += convert(path, folder)
    if keep_bytes is not None:
        delete_oldest(folder, keep_bytes)
    return events


def convert(path: Path, folder: Path) -> int:
    """One finished segment -> its part in `folder`; returns its number of events. Raises OSError."""
    import pyarrow
    import pyarrow.parquet

    from broker.journal.spool_columns import read_segment

    aside = folder / f".{path.stem}.{os.getpid()}{_ASIDE}"
    try:
        table = read_segment(path)
        if table.num_rows:
            pyarrow.parquet.write_table(
                table,
                aside,
                compression="zstd",
                compression_level=1,
                write_page_checksum=True,
                use_dictionary=[column.name for column in COLUMNS if column.name not in RISING],
                column_encoding=dict.fromkeys(RISING, "DELTA_BINARY_PACKED"),
            )
            os.rename(aside, folder / (path.stem + spool.PART))
        path.unlink(missing_ok=True)
        return int(table.num_rows)
    except FileNotFoundError:
        return 0  # another converter was faster
    except spool.NotASpool:
        os.rename(path, path.with_suffix(".bad"))
        return 0
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def delete_unfinished(folder: Path, *, now_s: float) -> int:
    """Delete the files of parts whose converter was killed before it gave them their name; returns how many. `now_s`: Unix time.
    A file that was written a moment ago stays: its converter may run in another container, whose pids are not seen here."""
    deleted = 0
    for path in folder.glob(f".*{_ASIDE}"):
        pid = path.name.split(".")[-2]
        with contextlib.suppress(OSError):  # OSError: its converter has renamed it meanwhile
            if now_s - path.stat().st_mtime > _UNFINISHED_S and not Path("/proc", pid).exists():
                path.unlink()
                deleted += 1
    return deleted


def delete_oldest(folder: Path, keep_bytes: int, suffix: str = spool.PART) -> int:
    """Delete the oldest files of a suffix until the rest take at most keep_bytes; returns how many were deleted."""
    sizes = [(path, path.stat()) for path in folder.glob(f"*{suffix}")]
    sizes.sort(key=lambda item: (item[1].st_mtime_ns, item[0].name))
    excess = sum(stat.st_size for _, stat in sizes) - keep_bytes
    deleted = 0
    for path, stat in sizes:
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        excess -= stat.st_size
        deleted += 1
    return deleted


def _age(path: Path) -> tuple[int, str]:
    """Sort key: older segments first, so that parts appear in order."""
    try:
        return path.stat().st_mtime_ns, path.name
    except FileNotFoundError:
        return 0, path.name


def main() -> int:
    """`python -m broker.journal.converter FOLDER`: finish what a dead cluster left, once."""
    folder = Path(sys.argv[1])
    print(f"{finish(folder)} events became parts in {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
