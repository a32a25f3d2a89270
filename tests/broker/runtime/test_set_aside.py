"""What can't be read stays on disk, under a name that says so."""

from pathlib import Path

from broker.runtime.set_aside import keep_copy, set_aside, set_aside_in


def test_a_file_its_copy_and_a_piece_are_listed_with_their_sizes(tmp_path: Path) -> None:
    below = tmp_path / "topics" / "t-0"
    below.mkdir(parents=True)
    moved, copied, piece = (below / name for name in ("a.log", "b.log", "c.log"))
    for path in (moved, copied, piece):
        path.write_bytes(b"12345")
    names = [
        set_aside(str(moved), "for a test"),
        keep_copy(str(copied), "for a test"),
        set_aside(piece, "for a test", content=b"34"),
    ]
    assert [(each.path, each.size_bytes) for each in set_aside_in(tmp_path)] == [*zip(names, (5, 5, 2), strict=True)]
    assert (moved.exists(), copied.read_bytes(), piece.read_bytes()) == (False, b"12345", b"12345")


def test_two_pieces_of_one_file_in_one_second_have_two_names(tmp_path: Path) -> None:
    names = {set_aside(tmp_path / "a", "for a test", content=b"x") for _ in range(3)}
    assert len(names) == 3


def test_there_is_nothing_in_a_directory_that_is_not_there(tmp_path: Path) -> None:
    assert set_aside_in(tmp_path / "missing") == []
