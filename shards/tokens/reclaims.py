"""What a home has asked shards to give up, and whether they have answered what it had asked before some instant.

C1  A shard reads what it is asked in order, and has given it up when the pass ends in which it answers. So a shard that
    has given n answers since an instant has given up what it was first asked for by n `reclaim` that were open then.
C2  What is asked after the mark does not move it: the answers that it waits for only become fewer, however many
    connections are forced in beyond a cap and make the home ask again.
"""


class Reclaims:
    """The answers to `reclaim` that shards owe to one home, of all its pools together, and `mark`, which is an instant."""

    def __init__(self) -> None:
        self._owed: dict[int, int] = {}
        self._marked: dict[int, int] = {}  # of these, the ones owed since before the mark

    @property
    def marked(self) -> bool:
        """Whether anything asked for before the mark has not been answered."""
        return bool(self._marked)

    def mark(self) -> None:
        """The mark is now."""
        self._marked = dict(self._owed)

    def asked(self, shard: int) -> None:
        """A shard was sent a `reclaim`."""
        self._owed[shard] = self._owed.get(shard, 0) + 1

    def answered(self, shard: int, answers: int) -> None:
        """A shard gave so many answers, or they are not waited for any more."""
        for counts in (self._owed, self._marked):
            left = counts.get(shard, 0) - answers
            if left > 0:
                counts[shard] = left
            else:
                counts.pop(shard, None)

    def owed(self) -> dict[int, int]:
        """{shard: answers}, for check(); a copy."""
        return dict(self._owed)
