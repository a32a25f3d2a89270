"""A topic's configs, row by row. Data; config_def.py looks them up.

Names, types, ranges and defaults are those of LogConfig (Kafka 4.1). `broker_names`: the broker's settings that stand in
for a config that a topic does not have, and the factor to its unit.
"""

from shards.settings.broker_settings import CODECS
from shards.settings.config_key import ConfigKey, shown
from shards.settings.config_types import BOOLEAN, long, number, one_of, whole, words
from shards.settings.ranges import LONG_MAX

_HOUR_MS = 3_600_000
TOPIC_SETTINGS = [
    ConfigKey("cleanup.policy", words("compact", "delete"), ("delete",),
          "delete: records go by retention; compact: the last of each key stays; or both.", dynamic=True,
          broker_names=(("log.cleanup.policy", 1),)),
    shown("compression.gzip.level", whole(1, 9, also=(-1,)), -1, "", dynamic=True),
    shown("compression.lz4.level", whole(1, 17), 9, "", dynamic=True),
    shown("compression.type", CODECS, "producer", "", dynamic=True, broker_names=(("compression.type", 1),)),
    shown("compression.zstd.level", whole(-131_072, 22), 3, "", dynamic=True),
    ConfigKey("delete.retention.ms", long(0), 86_400_000, "How long a tombstone stays once the cleaner has met it.", dynamic=True,
          broker_names=(("log.cleaner.delete.retention.ms", 1),)),
    shown("file.delete.delay.ms", long(0), 60_000, "", dynamic=True,
          broker_names=(("log.segment.delete.delay.ms", 1),)),
    shown("flush.messages", long(1), LONG_MAX, "", dynamic=True,
          broker_names=(("log.flush.interval.messages", 1),)),
    shown("flush.ms", long(0), LONG_MAX, "", dynamic=True, broker_names=(("log.flush.interval.ms", 1),)),
    shown("follower.replication.throttled.replicas", words(), (), "", dynamic=True),
    shown("index.interval.bytes", whole(0), 4096, "Bytes between two index entries.", dynamic=True,
          broker_names=(("log.index.interval.bytes", 1),)),
    shown("leader.replication.throttled.replicas", words(), (), "", dynamic=True),
    shown("local.retention.bytes", long(-2), -2, "", dynamic=True),
    shown("local.retention.ms", long(-2), -2, "", dynamic=True),
    ConfigKey("max.compaction.lag.ms", long(1), LONG_MAX,
          "A compacted log with older records is cleaned, whatever its dirty ratio; segments of it are closed after this long.",
          dynamic=True,
          broker_names=(("log.cleaner.max.compaction.lag.ms", 1),)),
    ConfigKey("max.message.bytes", whole(0), 1_048_588, "Largest record batch.", dynamic=True,
          broker_names=(("message.max.bytes", 1),)),
    ConfigKey("message.timestamp.after.max.ms", long(0), _HOUR_MS,
          "How far ahead of the broker's time a record's timestamp may be.", dynamic=True,
          broker_names=(("log.message.timestamp.after.max.ms", 1),)),
    ConfigKey("message.timestamp.before.max.ms", long(0), LONG_MAX,
          "How long ago a record's timestamp may be.", dynamic=True,
          broker_names=(("log.message.timestamp.before.max.ms", 1),)),
    ConfigKey("message.timestamp.type", one_of("CreateTime", "LogAppendTime"), "CreateTime",
          "Time of a record: its producer's or the broker's.", dynamic=True,
          broker_names=(("log.message.timestamp.type", 1),)),
    ConfigKey("min.cleanable.dirty.ratio", number(0, 1), 0.5,
          "A log is cleaned once more than this part of what could be cleaned has come since the last time.", dynamic=True,
          broker_names=(("log.cleaner.min.cleanable.ratio", 1),)),
    ConfigKey("min.compaction.lag.ms", long(0), 0, "How long a record stays in any case.", dynamic=True,
          broker_names=(("log.cleaner.min.compaction.lag.ms", 1),)),
    shown("min.insync.replicas", whole(1), 1, "", dynamic=True, broker_names=(("min.insync.replicas", 1),)),
    shown("preallocate", BOOLEAN, False, "", dynamic=True, broker_names=(("log.preallocate", 1),)),
    shown("remote.log.copy.disable", BOOLEAN, False, "", dynamic=True),
    shown("remote.log.delete.on.disable", BOOLEAN, False, "", dynamic=True),
    shown("remote.storage.enable", BOOLEAN, False, "", dynamic=True),
    ConfigKey("retention.bytes", long(), -1, "Bytes retained of each partition; -1: all.", dynamic=True,
          broker_names=(("log.retention.bytes", 1),)),
    ConfigKey("retention.ms", long(-1), 168 * _HOUR_MS, "Milliseconds records are retained; -1: for ever.", dynamic=True,
          broker_names=(("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", _HOUR_MS))),
    ConfigKey("segment.bytes", whole(1_048_576), 1_073_741_824, "Size of a log file.", dynamic=True,
          broker_names=(("log.segment.bytes", 1),)),
    shown("segment.index.bytes", whole(4), 10_485_760, "", dynamic=True,
          broker_names=(("log.index.size.max.bytes", 1),)),
    shown("segment.jitter.ms", long(0), 0, "", dynamic=True, broker_names=(("log.roll.jitter.ms", 1),)),
    ConfigKey("segment.ms", long(1), 168 * _HOUR_MS,
          "A log file whose first record is so much older than the next one is closed.", dynamic=True,
          broker_names=(("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS))),
    shown("unclean.leader.election.enable", BOOLEAN, False, "", dynamic=True,
          broker_names=(("unclean.leader.election.enable", 1),)),
]  # fmt: skip
