"""RDDs of many journals at once: what all of them ask next is one job of Spark.

An audit on Spark asks for some twenty jobs, each of which takes longer to start than a small journal takes to be judged. Here
each audit runs in a thread of its own, and asks for its next stage; once all of them ask, a single job does all stages. The
functions are pickled as Spark pickles them, run in Python workers, and what they make goes through Spark's own shuffle.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, reduce
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Stage = Callable[[int, Iterable[Any]], Iterable[Any]]
Partitions = list[list[Any]]


class Asked(NamedTuple):
    """Stages, one after the other, over partitions; `count`: the partitions that their results are sent to (None: they stay)."""

    stages: Sequence[Stage]
    partitions: Partitions
    count: int | None
    number: Callable[[Any], int]
    answer: Future[Partitions]


class Batch:
    """Audits that run side by side. The context is what rows on Spark take for a SparkContext."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self.jobs = 0
        context.addPyFile(__file__)  # for workers

    @property
    def defaultParallelism(self) -> int:
        return int(self._context.defaultParallelism)

    def addFile(self, path: str) -> None:
        self._context.addFile(path)

    def parallelize(self, values: Sequence[Any], count: int) -> BatchedRdd:
        return BatchedRdd(self, [list(values[number::count]) for number in range(count)])

    def made(self, audits: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Runs the audits; returns the result of each."""
        with ThreadPoolExecutor(len(audits)) as threads:
            running = {name: threads.submit(self._run, audit) for name, audit in audits.items()}
            left, asked = len(audits), list[Asked]()
            while left:
                question = self._asked.get()
                if question is None:
                    left -= 1
                else:
                    asked.append(question)
                if asked and len(asked) == left:
                    self._answer(asked)
                    asked.clear()
        return {name: each.result() for name, each in running.items()}

    def ask(self, stages: Sequence[Stage], partitions: Partitions, count: int | None, number: Any) -> Partitions:
        """The results of stages over partitions."""
        answer: Future[Partitions] = Future()
        self._asked.put(Asked(stages, partitions, count, number, answer))
        return answer.result()

    def _run(self, audit: Callable[[], T]) -> T:
        try:
            return audit()
        finally:
            self._asked.put(None)

    def _answer(self, asked: Sequence[Asked]) -> None:
        try:
            made = self._job(asked)
        except BaseException as error:
            for each in asked:
                each.answer.set_exception(error)
            return
        for number, each in enumerate(asked):
            count = len(each.partitions) if each.count is None else each.count
            each.answer.set_result([made.get((number, target), []) for target in range(count)])

    def _job(self, asked: Sequence[Asked]) -> dict[tuple[int, int], list[Any]]:
        """Runs one job. (number of the asker, number of its partition) -> what is sent there, in the order in which it arrives."""
        from pyspark.cloudpickle import dumps

        self.jobs += 1
        tasks = 2 * self.defaultParallelism
        work = []
        for number, each in enumerate(asked):
            todo = dumps((each.stages, each.count is not None, each.number))
            for task in range(tasks):
                share = [(index, each.partitions[index]) for index in range(task, len(each.partitions), tasks)]
                work.append((number, todo, share))
        sent = self._context.parallelize(work, tasks).flatMap(done).partitionBy(tasks, sum)
        found: dict[tuple[int, int], list[Any]] = {}
        for key, value in sent.collect():
            found.setdefault(key, []).append(value)
        return found


def done(work: tuple[int, bytes, list[tuple[int, list[Any]]]]) -> Iterator[tuple[tuple[int, int], Any]]:
    """Runs in a worker: the results of stages over some partitions, by (asker, the partition that they are sent to)."""
    asker, todo, partitions = work
    if not partitions:
        return
    stages, is_sent, number = pickle.loads(todo)
    for index, values in partitions:
        made = reduce(partial(_next, index), stages, values)
        for value in made:
            yield (asker, number(value[0]) if is_sent else index), value


def _next(index: int, values: Iterable[Any], stage: Stage) -> Iterable[Any]:
    return stage(index, iter(values))


class BatchedRdd:
    """Partitions, and the stages that are still to be done to them."""

    def __init__(self, context: Batch, partitions: Partitions, stages: tuple[Stage, ...] = ()) -> None:
        self.context = context
        self._partitions = partitions
        self._stages = stages

    def mapPartitionsWithIndex(self, make: Stage) -> BatchedRdd:
        return BatchedRdd(self.context, self._partitions, (*self._stages, make))

    def mapPartitions(self, make: Callable[[Iterable[Any]], Iterable[Any]]) -> BatchedRdd:
        return self.mapPartitionsWithIndex(partial(_of_values, make))

    def partitionBy(self, count: int, number: Callable[[Any], int]) -> BatchedRdd:
        return BatchedRdd(self.context, self.context.ask(self._stages, self._partitions, count, number))

    def values(self) -> BatchedRdd:
        return self.mapPartitionsWithIndex(_values)

    def union(self, other: BatchedRdd) -> BatchedRdd:
        return BatchedRdd(self.context, [*self._done(), *other._done()])

    def persist(self, level: Any) -> BatchedRdd:
        return BatchedRdd(self.context, self._done())

    def unpersist(self) -> None:
        """Nothing is held."""

    def collect(self) -> list[Any]:
        return [value for each in self._done() for value in each]

    def _done(self) -> Partitions:
        if self._stages:
            self._partitions = self.context.ask(self._stages, self._partitions, None, None)
            self._stages = ()
        return self._partitions


def _of_values(make: Callable[[Iterable[Any]], Iterable[Any]], index: int, values: Iterable[Any]) -> Iterable[Any]:
    return make(values)


def _values(index: int, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    return (value for _, value in pairs)
