import pickle

import pytest

from turnstile.load.sources import Sources


def test_every_address_of_every_network_counts():
    sources = Sources("127.1.0.0/30, 127.2.0.9,127.3.0.0/31")
    assert [sources[i] for i in range(len(sources))] == [
        "127.1.0.0", "127.1.0.1", "127.1.0.2", "127.1.0.3", "127.2.0.9", "127.3.0.0", "127.3.0.1",
    ]  # fmt: skip


def test_it_starts_again_after_the_last():
    assert Sources("127.1.0.0/31")[5] == "127.1.0.1"


def test_a_large_range_is_not_written_out():
    assert Sources("127.0.0.0/8")[16_777_215] == "127.255.255.255"


@pytest.mark.parametrize("text", ["", "127.1.0.0/33", "somewhere", "127.1.0.1/24", "127.0.0.1,::1"])
def test_what_is_no_range_is_said(text):
    with pytest.raises(ValueError, match="sources"):
        Sources(text)


def test_they_travel_to_other_processes():
    sent = Sources("127.1.0.0/30,127.2.0.1")
    received = pickle.loads(pickle.dumps(sent))
    assert (received.text, len(received), received[4]) == (sent.text, 5, "127.2.0.1")
