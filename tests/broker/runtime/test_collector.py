"""How much the collector looks at, at a time, in a shard."""

import subprocess
import sys

CODE = """
import gc
from broker.runtime import collector
collector.make_rare()
most, made, pauses = 0, [], []
gc.callbacks.append(lambda phase, info: pauses.append((info["generation"], len(gc.get_objects(1)))) if phase == "start" else None)
while len([each for each, _ in pauses if each == 1]) < 3:
    made.append([])
print(max(young for each, young in pauses if each == 1))
"""


def test_a_collection_that_is_not_of_all_objects_looks_at_some_ten_thousand_of_them() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) <= 40_000
