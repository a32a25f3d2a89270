"""A loss of events is logged once when it begins and once when it is over."""

from types import SimpleNamespace

from broker.runtime.journal_loss import QUIET_S, JournalLoss


class Log(list):
    def warning(self, event, **fields):
        self.append((event, fields))


def test_a_loss_is_logged_when_it_begins_and_when_it_is_over() -> None:
    journal, log = SimpleNamespace(dropped=0, fault=""), Log()
    loss = JournalLoss(journal, log)
    loss.tick(0)
    assert not log
    for dropped in (5, 5, 700):
        journal.dropped, journal.fault = dropped, "No space left on device"
        loss.tick(1)
        assert loss.is_losing
    assert [fields for _, fields in log] == [{"why": "No space left on device"}]
    loss.tick(1 + QUIET_S / 2)
    assert loss.is_losing and len(log) == 1
    loss.tick(1 + QUIET_S)
    assert not loss.is_losing
    assert log[1:] == [("no more journal events are dropped", {"dropped": 700})]
    journal.dropped = 701
    loss.tick(10)
    loss.tick(20)
    loss.tick(30)
    assert log[-1][1] == {"dropped": 1}
    assert (len(log), loss.dropped) == (4, 701)
