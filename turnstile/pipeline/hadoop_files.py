"""Files and folders at any path or URI that Spark can reach, through Hadoop's `FileSystem` in Spark's JVM.

A call that fails raises what a failed call to Spark raises; `errors.sentence` turns that into one sentence.
"""

from typing import Any, NamedTuple

from pyspark.sql import SparkSession


class ParquetFooter(NamedTuple):
    """The number of rows of a Parquet file, and its schema as Parquet spells it. `groups`: (rows, least value, greatest value) of
    one column, for each row group that has statistics of it."""

    rows: int
    schema: str
    groups: list[tuple[int, int, int]]


class _HadoopPlace(NamedTuple):
    """A Hadoop `FileSystem` and a `Path` in it, both Java objects."""

    files: Any
    path: Any


class HadoopFiles:
    """The file systems that `spark` is configured for (`spark.hadoop.*`)."""

    def __init__(self, spark: SparkSession) -> None:
        java, context = spark.sparkContext._jvm, spark.sparkContext._jsc
        assert java is not None and context is not None  # of a session that runs
        self._path = java.org.apache.hadoop.fs.Path
        self._conf = context.hadoopConfiguration()
        self._reader = java.org.apache.parquet.hadoop.ParquetFileReader
        self._input = java.org.apache.parquet.hadoop.util.HadoopInputFile

    def check(self, place: str) -> None:
        """Raises if Spark has no file system for this URI."""
        self._at(place)

    def is_there(self, place: str) -> bool:
        """True if there is a file or a folder at this place."""
        files, path = self._at(place)
        return bool(files.exists(path))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; an empty list if there is no such folder."""
        files, path = self._at(folder)
        if not files.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in files.listStatus(path))

    def write(self, place: str, content: bytes) -> None:
        """Writes a file with that content; replaces one that is there."""
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
        """The footer of a Parquet file. `column`: the column of integers that `groups` is about."""
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
