"""The board of restarts: a row for each process."""

from shards.supervisor.restart_board import RestartBoard


def test_the_board_tells_how_often_and_when_next():
    board = RestartBoard(3)
    board.put(1, 7, None)
    board.put(2, 1, 1e9)
    assert [board.get(place).number for place in range(3)] == [0, 7, 1]
    assert board.get(1).due_in_s is None
    assert board.get(2).due_in_s > 0
    board.put(2, 1, 0.0)
    assert board.get(2).due_in_s == 0.0
