"""The sums that the tasks of a plan answer (task_sums.py), added up: bounded by minutes, steps of levels and a few entities
of each task, not by connections.
"""

from collections import defaultdict

import pyarrow
import pyarrow.compute

from turnstile.pipeline.inputs.entities import IP, EntityType
from turnstile.pipeline.plan.excess import MOST
from turnstile.pipeline.plan.recommend import LogLevels
from turnstile.pipeline.plan.talkers import Greedy
from turnstile.pipeline.plan.task_sums import NETWORKS


class LogSums:
    """The sums of a whole log."""

    def __init__(self, tells: pyarrow.Table, by: EntityType = IP) -> None:
        """`tells`: TELLS of all tasks."""
        self._by = by
        self.of_candidate: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.minutes: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.by_name: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self.by_number: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._of_entity: defaultdict[str, dict[int, int]] = defaultdict(dict)
        summed = tells.group_by(["what", "candidate", "name", "number"]).aggregate([("n", "sum")])
        is_network = pyarrow.compute.is_in(summed["what"], pyarrow.array(NETWORKS))
        networks = summed.filter(is_network).group_by("candidate").aggregate([([], "count_all")])
        for candidate, count in zip(networks["candidate"].to_pylist(), networks["count_all"].to_pylist(), strict=True):
            self.of_candidate["network", candidate] = count
        rest = summed.filter(pyarrow.compute.invert(is_network))
        columns = (rest[name].to_pylist() for name in ("what", "candidate", "name", "number", "n_sum"))
        for what, candidate, name, number, n in zip(*columns, strict=True):
            if what == "minute":
                self.minutes[candidate][number] = n
            elif candidate is not None:
                self.of_candidate[what, candidate] = n
            elif what == "of_level":
                self._of_entity[name][number] = n
            elif name is not None:
                self.by_name[what][name] = n
            else:
                self.by_number[what][number] = n

    def levels(self) -> LogLevels:
        """Levels, as a recommendation is made from them."""
        names, numbers = self.by_name, self.by_number
        return LogLevels(numbers["level"], self._of_entity, names["peak_of"], numbers["peak"], self._by)

    def greedy(self) -> list[Greedy]:
        """The MOST entities with the highest peaks, highest first."""
        names = self.by_name
        every = [
            Greedy(
                name,
                names["peak_of"][name],
                count,
                names["typical_us"].get(name),
                names["never"][name],
                names["fullest_hour"][name],
            )
            for name, count in names["connections_of"].items()
        ]
        return sorted(every, key=lambda each: (-each.peak, self._by.rank(each.name)))[:MOST]
