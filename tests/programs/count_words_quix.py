"""quixstreams: counts the words of a topic, exactly once, with its state in a changelog; run by the Python of its environment."""

import signal
import sys

from quixstreams import Application, State


def count(word: str, state: State) -> str:
    number = state.get("count", 0) + 1
    state.set("count", number)
    return str(number)


bootstrap, name, folder = sys.argv[1:]
application = Application(
    bootstrap, consumer_group=name, state_dir=folder, processing_guarantee="exactly-once", commit_interval=0.5,
    auto_offset_reset="earliest", consumer_extra_config={"session.timeout.ms": 6000}, loglevel="INFO",
)  # fmt: skip
words = application.topic("lines", key_deserializer="str", value_deserializer="str")
counts = application.topic("counts", key_serializer="str", value_serializer="str")
frame = application.dataframe(words).apply(count, stateful=True).to_topic(counts)
signal.signal(signal.SIGTERM, lambda *_: application.stop())
application.run()
