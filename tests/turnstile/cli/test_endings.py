"""Signals that end a command, in the midst of what it has to undo."""

import signal

import pytest

from turnstile.cli.endings import undone

ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers():
    before = {each: signal.signal(each, signal.default_int_handler) for each in ENDING}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize("ending", ENDING)
def test_each_interrupts_and_no_other_ends_what_undoes(ending):
    undone_ = []
    with pytest.raises(KeyboardInterrupt), undone():
        try:
            signal.raise_signal(ending)
        finally:
            try:
                raise OSError
            except OSError:
                for each in ENDING:
                    signal.raise_signal(each)
            undone_.append(ending)
    assert undone_ == [ending]
    assert {signal.getsignal(each) for each in ENDING} == {signal.default_int_handler}


def test_what_was_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with undone():
        signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
