import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnstile.fleet.messages import BadFrame, Done, End, Go, Incoming, Join, Ping, Progress, frame

SENT = [
    Join("secret", 3, "worker-3", 4711, ["10.0.0.1"], []),
    Ping(),
    Go(12.5),
    Progress([[1, 2, 3]], 7, 0, True),
    Done([[1, [2]]], 0.25),
    End(),
]


@given(st.lists(st.integers(1, 40)))
def test_messages_arrive_whole_and_in_order_however_they_are_cut(cuts):
    data, incoming, arrived = b"".join(map(frame, SENT)), Incoming(), []
    while data:
        size = cuts.pop() if cuts else len(data)
        arrived += incoming.feed(data[:size])
        data = data[size:]
    assert arrived == SENT


@pytest.mark.parametrize("body", [b"{", b"[]", b'["Nope"]', b'["Go"]', b'["Go", 1, 2]', b"7", b"[[" * 100_000, b"\xff"])
def test_what_is_no_message_is_said_so(body):
    with pytest.raises(BadFrame):
        list(Incoming().feed(len(body).to_bytes(4, "big") + body))


def test_a_frame_may_not_be_longer_than_is_allowed():
    with pytest.raises(BadFrame, match="1,000 bytes"):
        list(Incoming(999).feed((1000).to_bytes(4, "big")))
