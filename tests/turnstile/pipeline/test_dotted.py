"""Plain IPv4 addresses by numpy: each as `socket.inet_pton` reads it, and nothing else."""

import pyarrow
from hypothesis import example, given
from hypothesis import strategies as st

from turnstile.pipeline.inputs.addresses import numbers, parse
from turnstile.pipeline.inputs.dotted import dotted

part = st.one_of(st.integers(0, 300).map(str), st.sampled_from(["", "00", "01", "1000", "-1", " 1", "٣", "x"]))
texts = st.lists(
    st.one_of(
        st.lists(part, min_size=1, max_size=5).map(".".join),
        st.ip_addresses().map(str),
        st.sampled_from(
            ["", ".", "...", "1.2.3.", ".1.2.3", "::ffff:10.0.0.1", " 10.0.0.1", "10.0.0.1%eth0", "10.0.0.1\0"]
        ),
        st.text(max_size=6),
    )
)


@given(texts, st.integers(0, 3))
@example(["...", "1.2.3."], 0)
def test_each_is_read_as_the_c_library_does(log: list[str], skipped: int) -> None:
    array = pyarrow.array(log, pyarrow.string())[skipped:]
    high, low, is_address = numbers(array)
    found = [(int(one), int(two)) if known else None for one, two, known in zip(high, low, is_address, strict=True)]
    assert found == [parse(text) for text in log[skipped:]]
    bits, is_plain = dotted(array)
    assert all(
        parse(text) == (0, 0xFFFF << 32 | int(each))
        for text, each, plain in zip(log[skipped:], bits, is_plain, strict=True)
        if plain
    )


def test_ordinary_ones_are_all_plain_and_null_is_none() -> None:
    plain = ["0.0.0.0", "255.255.255.255", "10.0.0.1", "192.168.100.20"]
    assert dotted(pyarrow.array(plain))[1].all()
    assert numbers(pyarrow.array([None, "10.0.0.1"], pyarrow.string()))[2].tolist() == [False, True]
    assert numbers(pyarrow.array([], pyarrow.string()))[2].tolist() == []
