"""What a share partition's home reads of a log: batches one behind the other, with records."""

from batches import batch
from cleaned import clean
from shards_in_process import Broker

from broker.kafka.share.share_reads import ShareRead, read

NOW = 1_700_000_000_000


def spans(found: ShareRead) -> list[tuple[int, int]]:
    return [(span.first, span.last) for span in found.spans]


def test_where_the_cleaner_removed_batches_there_is_a_hole(broker: Broker) -> None:
    broker.put_topic("c", 1, topic_id=2, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    log = broker.logs[0].log("c", 0)
    for number in range(12):
        key = b"%d" % number if 4 <= number < 6 else b"again"
        log.append(batch(b"v", keys=[key]), NOW)
    with log:
        log._roll()
    assert clean(log, NOW)
    log.append(batch(b"behind", keys=[b"again"]), NOW)

    def ask(offset: int) -> list[tuple[int, int]]:
        return spans(read(broker.partitions[1], "c", 0, offset, max_bytes=1 << 20, max_records=100, committed=False))

    assert ask(0) == ask(4) == [(4, 4), (5, 5)]
    assert ask(6) == [(11, 11), (12, 12)]
    assert ask(13) == []
