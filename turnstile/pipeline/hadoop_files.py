"""Files at any place that Spark reaches, by Hadoop's `FileSystem` in Spark's JVM: what there is, and what a job leaves.

What goes wrong raises as any call to Spark does; `errors.sentence` makes it a sentence.
"""

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class ParquetFooter(NamedTuple):
    """The rows of a Parquet file, its schema as Parquet spells it, and of each row group its rows, and the least and
    greatest of a column of numbers."""

    rows: int
    schema: str
    groups: list[tuple[int, int, int]]


class _HadoopPlace(NamedTuple):
    """A file system of Hadoop's, and a path in it; both are Java's."""

    files: Any
    path: Any


class HadoopFiles:
    """Files as `spark` sees them, with its settings (`spark.hadoop.*`)."""

    def __init__(self, spark: SparkSession) -> None:
        java, context = spark.sparkContext._jvm, spark.sparkContext._jsc
        assert java is not None and context is not None  # of a session that runs
        self._path = java.org.apache.hadoop.fs.Path
        self._conf = context.hadoopConfiguration()
        self._reader = java.org.apache.parquet.hadoop.ParquetFileReader
        self._input = java.org.apache.parquet.hadoop.util.HadoopInputFile

    def check(self, place: str) -> None:
        """Raises when Spark has no filesystem for it."""
        self._at(place)

    def is_there(self, place: str) -> bool:
        """True if there is a file or a folder."""
        files, path = self._at(place)
        return bool(files.exists(path))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; none when there is no such folder."""
        files, path = self._at(folder)
        if not files.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in files.listStatus(path))

    def write(self, place: str, content: bytes) -> None:
        """A file with that content, in place of any."""
        files, path = self._at(place)
        stream = files.create(path, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def delete(self, place: str) -> None:
        """Removes a file, or a folder with all that is in it."""
        files, path = self._at(place)
        files.delete(path, True)

    def footer(self, place: str, column: str) -> ParquetFooter:
        """Of a Parquet file; `column` is one of numbers."""
        reader = self._reader.open(self._input.fromPath(self._path(place), self._conf))
        try:
            schema = reader.getFileMetaData().getSchema()
            spans = []
            for group in reader.getRowGroups() if schema.containsField(column) else ():
                said = group.getColumns().get(schema.getFieldIndex(column)).getStatistics()
                if said is not None and said.hasNonNullValue():
                    spans.append((int(group.getRowCount()), int(said.genericGetMin()), int(said.genericGetMax())))
            return ParquetFooter(int(reader.getRecordCount()), str(schema.toString()), spans)
        finally:
            reader.close()

    def _at(self, place: str) -> _HadoopPlace:
        path = self._path(place)
        return _HadoopPlace(path.getFileSystem(self._conf), path)
