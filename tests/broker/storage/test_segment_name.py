"""Names of segments, and which files are in force."""

from broker.storage.segment_name import SegmentName, in_force


def name(*given: int) -> SegmentName:
    return SegmentName(*given)


def test_a_name_is_read_as_it_is_written() -> None:
    for each in (name(0), name(17), name(5, 90, 3)):
        assert in_force([each.stem + ".log"]) == ([each], [])


def test_what_is_no_segment_is_left_alone() -> None:
    others = [
        "partition.meta",
        "cleaner.tmp",
        "5.log",
        f"{5:020d}.index",
        f"{5:020d}.log.damaged-1",
        f"{5:020d}-9-1.log",
    ]
    assert in_force(others) == ([], [])


def test_a_file_of_a_later_round_covers_those_that_begin_in_it() -> None:
    files = [name(0), name(10), name(20), name(0, 20, 1), name(30)]
    assert in_force(each.stem + ".log" for each in files) == ([name(0, 20, 1), name(20), name(30)], [name(0), name(10)])


def test_the_latest_round_counts_whatever_earlier_ones_cover() -> None:
    files = [name(0, 40, 2), name(0, 20, 1), name(20, 40, 1), name(40, 60, 1), name(60)]
    kept, replaced = in_force(each.stem + ".log" for each in files)
    assert kept == [name(0, 40, 2), name(40, 60, 1), name(60)]
    assert sorted(replaced) == [name(0, 20, 1), name(20, 40, 1)]


def test_what_a_damaged_segment_was_split_into_does_not_cover_itself() -> None:
    files = [name(0, 40, 1), name(0, 10, 2), name(15, 40, 2), name(40)]
    kept, replaced = in_force(each.stem + ".log" for each in files)
    assert (kept, replaced) == ([name(0, 10, 2), name(15, 40, 2), name(40)], [name(0, 40, 1)])
