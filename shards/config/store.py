"""The coordinator's memory: one SQLite file in the data directory.

commits_survive_kill  `commit` returns after its transaction is in the write-ahead log: a committed change survives `kill
    -9` of the process (synchronous=NORMAL; a machine that loses power may lose the last changes, but never half of one).
versions_only_rise  The version only rises, also across restarts; an allocated number is never given out again.
opening_needs_no_free_space  Opening it again needs no free space, so a full disk does not keep the coordinator from
    starting: the write-ahead log has its index in this process's memory, not in a file (locking_mode=EXCLUSIVE, before the
    first access).
damage_is_noticed_on_opening  A file that is damaged is noticed when it is opened: then nothing is stored in it.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, TypedDict

from shards.config.config_state import Change
from shards.errors import CannotStart, CannotStore

HISTORY_KEPT = 10_000
PRODUCER_ID = "producer_id"  # a counter: see allocate
_TABLES = """
CREATE TABLE IF NOT EXISTS record (kind TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history
    (version INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, changes TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_PUT_RECORD = "INSERT INTO record VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_PUT_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"


class LastChange(NamedTuple):
    """The time of a change, in Unix seconds, and its author."""

    at: float
    who: str


class RecordedChange(TypedDict):
    """A version of the configuration, and what it changed: of a setting the values that were in force."""

    version: int
    at: Annotated[float, "Unix seconds."]
    who: Annotated[str, "The caller as it names itself, and the address it called from."]
    changes: Annotated[
        list[tuple[str, str, object, object]], "Kind, such as setting or quota; key; old and new value, null: none."
    ]


class StoreDamaged(CannotStart):
    """The file is there, and SQLite can't read it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} can't be used: {why}")
        self.why = why


class Store:
    """Records, the version they are at, its history, and counters that only rise. Not for several threads."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the file. Raises StoreDamaged (damage_is_noticed_on_opening), or CannotStart when it can't be
        used for another reason."""
        is_old = path.exists()
        self._db = _open(path)
        self.unreadable: list[str] = []
        try:
            if is_old:
                self._check(path)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            self.version = int(self._meta("version") or 0)
        except (sqlite3.Error, ValueError) as error:
            self._db.close()
            if isinstance(error, sqlite3.OperationalError):
                raise CannotStart(f"{path} can't be used: {error}") from None
            raise StoreDamaged(path, str(error)) from None
        except StoreDamaged:
            self._db.close()
            raise

    def _check(self, path: Path) -> None:
        """damage_is_noticed_on_opening. A store that was made by Turnstile has tables at once, so an empty file is damaged."""
        if path.stat().st_size == 0:
            raise StoreDamaged(path, "it is empty")
        said = [row[0] for row in self._db.execute("PRAGMA quick_check(1)")]
        if said != ["ok"]:
            raise StoreDamaged(path, said[0] if said else "its check says nothing")

    def records(self) -> list[Change]:
        """All records that are stored now. One whose value is no JSON is left out, and `unreadable` names it."""
        found: list[Change] = []
        self.unreadable = []
        for kind, key, text in self._db.execute("SELECT * FROM record"):
            try:
                found.append((kind, key, json.loads(text)))
            except ValueError as error:
                self.unreadable.append(f"{kind} {key!r:.200} in the store can't be read and counts as not set: {error}")
        return found

    def continue_at(self, version: int, allocated: Mapping[str, int]) -> None:
        """Begins a store in the place of one that is lost, at a version and at counters above all that the lost one can have given
        out: versions_only_rise holds across both."""
        with _Transaction(self._db):
            for name, first in {"version": version, **allocated}.items():
                self._put_meta(name, str(first))
        self.version = version

    def commit(
        self,
        at: float,
        who: str,
        changes: Iterable[tuple[str, str, object, object]],
        *,
        shown: Iterable[tuple[str, str, object, object]] | None = None,
        static: str | None = None,
    ) -> int:
        """Store (kind, key, old, new) of one change under the next version, which is returned. `at`: Unix seconds; `shown`:
        the same as the history shows it, where that differs.

        Changes of kind `static` are history only: the command line says them anew at every start. So are those of kind `fault`:
        nothing goes wrong on purpose after a restart. Raises CannotStore when the disk won't have it; nothing is changed then.
        """
        changes = list(changes)
        version = self.version + 1
        with _Transaction(self._db):
            for kind, key, _, new in changes:
                if kind in ("static", "fault"):
                    continue
                if new is None:
                    self._db.execute("DELETE FROM record WHERE kind = ? AND key = ?", (kind, key))
                else:
                    self._db.execute(_PUT_RECORD, (kind, key, _json(new)))
            rows = changes if shown is None else shown
            listed = [[kind, key, *(_secret(kind, value) for value in (old, new))] for kind, key, old, new in rows]
            self._db.execute("INSERT INTO history VALUES (?, ?, ?, ?)", (version, at, who, _json(listed)))
            self._db.execute("DELETE FROM history WHERE version <= ?", (version - HISTORY_KEPT,))
            self._put_meta("version", str(version))
            if static is not None:
                self._put_meta("static", static)
        self.version = version
        return version

    def static(self) -> dict[str, str]:
        """The command line's settings at the last start that changed them."""
        found: dict[str, str] = json.loads(self._meta("static") or "{}")
        return found

    def run(self) -> str | None:
        """The run that `ran` noted last."""
        return self._meta("run")

    def ran(self, run: str) -> None:
        """Notes that this run of the cluster has made its first topics, which is done once a run. Raises CannotStore."""
        with _Transaction(self._db):
            self._put_meta("run", run)

    def history(self, most: int = 100, before: int | None = None) -> list[RecordedChange]:
        """The last changes, latest first."""
        rows = self._db.execute(
            "SELECT * FROM history WHERE version < ? ORDER BY version DESC LIMIT ?", (before or 2**62, most)
        )
        return [
            {"version": version, "at": at, "who": who, "changes": json.loads(changes)}
            for version, at, who, changes in rows
        ]

    def changed(self, kind: str, key: str) -> LastChange | None:
        """The last change of a record, if the history still has it."""
        row = self._db.execute(
            "SELECT at, who FROM history WHERE instr(changes, ?) ORDER BY version DESC LIMIT 1",
            (_json([kind, key])[:-1] + ",",),
        ).fetchone()
        return None if row is None else LastChange(*row)

    def allocate(self, name: str, count: int) -> int:
        """The first of `count` numbers that were never given out before; durable before it returns. Raises CannotStore."""
        first = int(self._meta(name) or 0)
        with _Transaction(self._db):
            self._put_meta(name, str(first + count))
        return first

    def close(self) -> None:
        self._db.close()

    def _meta(self, name: str) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def _put_meta(self, name: str, value: str) -> None:
        self._db.execute(_PUT_META, (name, value))


def _open(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        return db
    except sqlite3.Error as error:
        raise CannotStart(f"{path} can't be used: {error}") from None


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise CannotStore(_sentence(error)) from None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
                return
        except sqlite3.OperationalError as fault:
            error = fault
        if self._db.in_transaction:  # a full disk may have rolled it back already
            self._db.execute("ROLLBACK")
        if isinstance(error, sqlite3.OperationalError):
            raise CannotStore(_sentence(error)) from None


def _sentence(error: sqlite3.OperationalError) -> str:
    return f"The change can't be stored: {error}."


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _secret(kind: str, value: object) -> object:
    """Credentials do not go into the history, only which mechanisms there are."""
    return sorted(value) if kind == "user" and isinstance(value, Mapping) else value
