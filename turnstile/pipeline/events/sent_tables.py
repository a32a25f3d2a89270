"""Tables for tasks, by number: one file that every worker gets once, of which task n reads table n."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow

from turnstile.pipeline.events.blobs import packed, unpacked

if TYPE_CHECKING:
    from pyspark import SparkContext


class SentTables:
    """One broadcast would send every table to every task, and one for each table would be very many.

    file_outlives_its_job: the file is there until the session ends, since an executor that joins later, for one that was lost,
    fetches every file that was ever added before its first task.
    """

    def __init__(self, context: SparkContext, tables: Iterable[pyarrow.Table]) -> None:
        folder = tempfile.mkdtemp(prefix="turnstile-")
        weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / f"{uuid4().hex}.tables"
        self._name = path.name
        self._ends = [0]
        with path.open("wb") as file:
            for table in tables:
                self._ends.append(self._ends[-1] + file.write(packed(table)))
        context.addFile(str(path))

    def __getstate__(self) -> dict[str, object]:
        """The tables that a task is sent."""
        return {"_name": self._name, "_ends": self._ends}

    def table(self, number: int, schema: pyarrow.Schema) -> pyarrow.Table:
        """One of them, where a task runs. `schema`: of a table without rows."""
        start, end = self._ends[number : number + 2]
        with open(place_of(self._name), "rb") as file:
            file.seek(start)
            return unpacked([file.read(end - start)], schema)


def place_of(name: str) -> str:
    """The path at which a worker has a file that it was sent."""
    from pyspark import SparkFiles

    return SparkFiles.get(name)
