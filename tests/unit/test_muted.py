"""Muted channels: counted by quota, and gone as soon as their connection is."""

from broker.muted import Muted


class Delays:
    """Delays that come due when told to."""

    def __init__(self):
        self.waiting = []

    def after(self, delay_ms, function):
        self.waiting.append(function)
        return function

    def cancel(self, function):
        self.waiting.remove(function)


class Channel:
    went_on = 0

    def go_on(self):
        self.went_on += 1


def test_a_channel_goes_on_when_its_delay_is_over():
    delays, channel = Delays(), Channel()
    muted = Muted(delays)
    muted.mute(channel, "producer_byte_rate", 500)
    assert (len(muted), muted.sizes["producer_byte_rate"], channel.went_on) == (1, 1, 0)
    delays.waiting.pop()()
    assert (len(muted), muted.sizes["producer_byte_rate"], channel.went_on) == (0, 0, 1)


def test_clients_that_come_back_instead_of_waiting_leave_nothing_behind():
    delays = Delays()
    muted = Muted(delays)
    for _ in range(1000):
        channel = Channel()
        muted.mute(channel, "consumer_byte_rate", 86_400_000)
        muted.forget(channel)
        assert channel.went_on == 0
    assert (len(muted), muted.sizes["consumer_byte_rate"], delays.waiting) == (0, 0, [])


def test_each_quota_has_its_own_queue():
    delays, channels = Delays(), [Channel(), Channel(), Channel()]
    muted = Muted(delays)
    for channel, kind in zip(channels, ("a", "b", "b"), strict=True):
        muted.mute(channel, kind, 100)
    assert muted.sizes == {"a": 1, "b": 2}
    muted.forget(channels[1])
    assert muted.sizes == {"a": 1, "b": 1}
