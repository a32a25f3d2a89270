"""Tables for tasks: each task gets the table with its own number, from a file that stays until the Spark session ends."""

import gc
import pickle
from pathlib import Path

import pyarrow
from local_rdd import LocalContext

from turnstile.pipeline.events.sent_tables import SentTables

SCHEMA = pyarrow.schema([("number", pyarrow.int64())])


class SeenContext(LocalContext):
    """Remembers which files were added."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[Path] = []

    def addFile(self, path: str) -> None:
        super().addFile(path)
        self.added.append(Path(path))


def tables() -> list[pyarrow.Table]:
    return [pyarrow.table({"number": list(range(count))}, SCHEMA) for count in (3, 0, 2)]


def test_a_task_reads_the_table_of_its_number() -> None:
    context = SeenContext()
    sent = pickle.loads(pickle.dumps(SentTables(context, tables())))  # type: ignore[arg-type]
    assert [sent.table(number, SCHEMA) for number in range(3)] == tables()


def test_file_outlives_its_job() -> None:
    """An executor that joins after the job fetches every file that was added."""
    context = SeenContext()
    SentTables(context, tables())  # type: ignore[arg-type]
    gc.collect()
    [path] = context.added
    assert path.exists()
    del context
    gc.collect()
    assert not path.parent.exists()
