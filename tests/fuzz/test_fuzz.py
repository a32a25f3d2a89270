"""Some thousand frames of one seed against a real cluster; `make fuzz` sends as many as one likes."""

from pathlib import Path

from fuzz.driver import Fuzzer
from fuzz.frames import Frames
from harness import running


def test_nothing_comes_to_harm(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--topic", "a:4", "--topic", "b:1") as cluster:
        Fuzzer(cluster, seed=1).run(3000)


def test_a_seed_sends_the_same_frames_again() -> None:
    first, second, other = Frames(5), Frames(5), Frames(6)
    frames = [first.next() for _ in range(200)]
    assert frames == [second.next() for _ in range(200)]
    assert frames != [other.next() for _ in range(200)]
    assert sum(frame.answered for frame in frames) > 100, "most are requests"
