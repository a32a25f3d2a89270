"""Headers of the PROXY protocol: as proxies send them, cut into any pieces, and every way in which they can be wrong."""

import ipaddress
import socket
import struct

import pytest
from announcing import CRC32C, LOCAL, PROXY, SIGNATURE, binary, tlv, v1, v2
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from broker.accept.endpoint_ids import endpoint_id
from broker.accept.proxy_header import MOST_BYTES, MOST_LINE_BYTES, HeaderParser, ProxyFault, ProxyHeader
from broker.metrics.shard_counters import PROXY_HEADERS
from shards.config.advertised import Address

BEHIND = b"\0\0\0\x2a a request"
ADDRESSES_4 = b"\x0a\1\2\3\xc0\0\2\1\x12\x67\x23\x84"

ips = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
ports = st.integers(0, 65535)
tlvs = st.lists(st.tuples(st.integers(4, 255).filter(lambda kind: kind != 5), st.binary(max_size=200)), max_size=5)


def parsed(data, *cuts):
    """The parser when it was fed `data` in pieces that end at `cuts`, as a socket that keeps what was not taken."""
    parser, taken = HeaderParser(), 0
    for end in (*sorted(cuts), len(data)):
        if not parser.has_ended:
            taken += parser.feed(data[taken:end])
    assert parser.taken == taken
    return parser


def fault_of(data):
    parser = parsed(data)
    assert parser.header is None
    return parser.fault


# ---- what proxies send


def test_a_line_of_version_1_is_read():
    parser = parsed(v1("10.1.2.3", 4711) + BEHIND)
    assert parser.header == ProxyHeader(1, Address("10.1.2.3", 4711), Address("192.0.2.1", 9092))
    assert parser.taken == len(v1("10.1.2.3", 4711))


@pytest.mark.parametrize("line", [b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ffff:: anything \xff at all\r\n"])
def test_an_unknown_client_has_no_address(line):
    assert parsed(line + BEHIND).header == ProxyHeader(1)


def test_the_longest_line_is_read_and_one_byte_more_is_not():
    rest = b"x" * (MOST_LINE_BYTES - len(b"PROXY UNKNOWN \r\n"))
    assert parsed(b"PROXY UNKNOWN " + rest + b"\r\n").header == ProxyHeader(1)
    assert fault_of(b"PROXY UNKNOWN x" + rest + b"\r\n") is ProxyFault.BAD_HDR


def test_what_aws_sends_is_read():
    """An NLB's header of a client that came by PrivateLink: a checksum in the middle, then the endpoint's id."""
    vpce = tlv(0xEA, b"\1vpce-08d2bf15fac5001c9")
    header = v2("10.1.2.3", 4711, tlvs=vpce, crc=True)
    found = parsed(header + BEHIND).header
    assert found.source == Address("10.1.2.3", 4711) and found.destination == Address("192.0.2.1", 9092)
    assert endpoint_id(found.tlvs) == "aws:vpce-08d2bf15fac5001c9"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (tlv(0xEE, b"\1\1\0\0\7"), "azure:117440513"),
        (tlv(0xE0, (1 << 42).to_bytes(8)), "gcp:4398046511104"),
        (tlv(0xEA, b"\1vpce-\x1b[31m"), None),
        (tlv(0xEA, b"\2vpce-1"), None),
        (tlv(0xEA, b"\1" + b"x" * 200), None),
        (tlv(0xEA, b"") + tlv(0xE0, b"\1"), "gcp:1"),
        (b"", None),
    ],
)
def test_the_endpoint_is_shown_as_its_cloud_writes_it(sent, shown):
    assert endpoint_id(parsed(v2(tlvs=sent)).header.tlvs) == shown


@pytest.mark.parametrize(
    "header",
    [
        binary(LOCAL, 0, b""),
        binary(LOCAL, 0x11, ADDRESSES_4),
        binary(LOCAL, 0xFF, b"\1\2 no tlv and no address"),
        binary(LOCAL, 0, b"", tlv(4, b"padding"), crc=True),
        binary(PROXY, 0, b""),
        binary(PROXY, 0, b"anything"),
        binary(PROXY, 0x01, ADDRESSES_4),
        binary(PROXY, 0x12, ADDRESSES_4),
        binary(PROXY, 0x10, ADDRESSES_4),
        binary(PROXY, 0x31, bytes(216), tlv(4, b"")),
        binary(PROXY, 0x32, bytes(216)),
    ],
)
def test_what_has_no_address_of_a_tcp_client_leaves_the_real_one(header):
    parser = parsed(header + BEHIND)
    assert parser.header is not None and parser.header.source is None
    assert parser.taken == len(header)


def test_a_header_without_a_rest_ends_with_its_sixteenth_byte():
    parser = parsed(binary(LOCAL, 0, b""), *range(1, 16))
    assert parser.header == ProxyHeader(2) and parser.taken == 16


@given(source=ips, destination=ips, ports=st.tuples(ports, ports), sent=tlvs, crc=st.booleans(), data=st.data())
@settings(max_examples=300)
def test_a_right_header_is_read_in_any_pieces_and_nothing_behind_it(source, destination, ports, sent, crc, data):
    assume((":" in source) == (":" in destination))
    old = v1(source, ports[0], destination, ports[1])
    new = v2(source, ports[0], destination, ports[1], b"".join(tlv(*each) for each in sent), crc=crc)
    for version, header in ((1, old), (2, new)):
        cuts = data.draw(st.lists(st.integers(0, len(header) + len(BEHIND)), max_size=8))
        parser = parsed(header + BEHIND, *cuts)
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        spelled = [socket.inet_ntop(family, ipaddress.ip_address(each).packed) for each in (source, destination)]
        assert parser.fault is None and parser.taken == len(header)
        assert parser.header.version == version
        assert parser.header.source == Address(spelled[0], ports[0])
        assert parser.header.destination == Address(spelled[1], ports[1])
        if version == 2:
            kept = dict(parser.header.tlvs)
            assert (CRC32C in kept) is crc
            kept.pop(CRC32C, None)
            assert kept == dict(sent)


# ---- what is wrong


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"PROXY  TCP4 1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_PROTO),
        (b"PROXY TCP4  1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2 ", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1", ProxyFault.BAD_HDR),
        (b"PROXY TCP4", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.04 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.256 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 01 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 65536", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 -1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1\t2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 \xd9\xa1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 ::1 ::2 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP6 1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP6 ::1%lo ::2 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP6 1:2:3:4:5:6:7 ::2 1 2", ProxyFault.BAD_HDR),
        (b"PROXY TCP6 ::1::2 ::2 1 2", ProxyFault.BAD_HDR),
        (b"PROXY tcp4 1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_PROTO),
        (b"PROXY UDP4 1.2.3.4 5.6.7.8 1 2", ProxyFault.BAD_PROTO),
        (b"PROXY UNKNOWN1", ProxyFault.BAD_PROTO),
        (b"PROXY ", ProxyFault.BAD_PROTO),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r", ProxyFault.BAD_HDR),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8\n1 2", ProxyFault.BAD_HDR),
        (b"PROXY UNKNOWN \n", ProxyFault.BAD_HDR),
        (b"proxy TCP4 1.2.3.4 5.6.7.8 1 2", ProxyFault.NOT_HDR),
        (b"PROXYTCP4 1.2.3.4 5.6.7.8 1 2", ProxyFault.NOT_HDR),
        (b"GET / HTTP/1.1", ProxyFault.NOT_HDR),
    ],
)
def test_a_line_that_breaks_a_rule_is_named(line, fault):
    assert fault_of(line + b"\r\n" + BEHIND) is fault


@pytest.mark.parametrize("end", [b"\n", b"\rx"])
def test_a_line_that_ends_by_half_is_refused_without_waiting_for_more(end):
    assert fault_of(b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2" + end) is ProxyFault.BAD_HDR


WRONG = tlv(CRC32C, bytes(4))


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (binary(0x11, 0x11, ADDRESSES_4), ProxyFault.NOT_HDR),
        (binary(0x31, 0x11, ADDRESSES_4), ProxyFault.NOT_HDR),
        (binary(0x22, 0x11, ADDRESSES_4), ProxyFault.BAD_HDR),
        (binary(0x2F, 0x11, ADDRESSES_4), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x41, ADDRESSES_4), ProxyFault.BAD_PROTO),
        (binary(PROXY, 0x13, ADDRESSES_4), ProxyFault.BAD_PROTO),
        (binary(PROXY, 0x11, ADDRESSES_4[:-1]), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x21, ADDRESSES_4), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x31, bytes(215)), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, b"\4"), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, b"\4\0\1"), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, b"\4\0\2x"), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, tlv(5, bytes(129))), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, WRONG), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, tlv(CRC32C, b"abc")), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, WRONG, crc=True), ProxyFault.BAD_HDR),
        (binary(PROXY, 0, b"", WRONG), ProxyFault.BAD_HDR),
        (binary(LOCAL, 0, b"", WRONG), ProxyFault.BAD_HDR),
        (binary(PROXY, 0x11, ADDRESSES_4, tlv(4, bytes(MOST_BYTES))), ProxyFault.BAD_HDR),
    ],
)
def test_a_binary_header_that_breaks_a_rule_is_named(header, fault):
    assert fault_of(header + BEHIND) is fault


@given(at=st.integers(12, 27), bit=st.integers(0, 7), sent=tlvs)
def test_an_address_of_which_one_bit_fell_over_is_found_by_the_checksum(at, bit, sent):
    """Also in the command and the family, unless these say now that no address is to be read."""
    header = bytearray(v2(tlvs=b"".join(tlv(*each) for each in sent), crc=True))
    assume(at not in (14, 15))  # a length that leaves the checksum out is the header of a sender without one
    header[at] ^= 1 << bit
    parser = parsed(bytes(header) + BEHIND)
    assert parser.header is None or parser.header.source is None
    assert at < 16 or parser.fault is ProxyFault.BAD_HDR


@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=6), start=st.integers(0, 3))
@example(data=b"", cuts=[], start=0)
@settings(max_examples=500)
def test_any_bytes_end_the_same_in_any_pieces(data, cuts, start):
    """As the bytes of a header, of none, or cut: never an exception, never a header that is read only in some pieces."""
    data = (b"", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + struct.pack(">BB", PROXY, 0x11))[start] + data
    whole, cut = parsed(data), parsed(data, *cuts)
    assert (whole.header, whole.fault) == (cut.header, cut.fault)
    if whole.header is not None:
        assert whole.taken == cut.taken
    assert whole.taken <= min(len(data), MOST_BYTES)


@pytest.mark.parametrize("header", [v1("10.1.2.3", 1), v2(crc=True), binary(LOCAL, 0, b"")])
def test_a_header_that_is_cut_is_truncated(header):
    for size in range(len(header)):
        parser = parsed(header[:size])
        assert not parser.has_ended
        parser.end()
        assert parser.fault is (ProxyFault.TRUNCATED if size else ProxyFault.EMPTY)


def test_the_end_has_the_name_of_its_reason():
    for fault in (ProxyFault.TIMEOUT, ProxyFault.ABORT):
        parser = parsed(b"PROXY TCP4")
        parser.end(fault)
        assert parser.fault is fault
    nothing, little, wrong = parsed(b""), parsed(b"P"), parsed(b"x")
    for parser in (nothing, little, wrong):
        parser.end()
    assert [nothing.fault, little.fault, wrong.fault] == [ProxyFault.EMPTY, ProxyFault.TRUNCATED, ProxyFault.NOT_HDR]


def test_every_fault_is_counted_by_its_name():
    assert set(PROXY_HEADERS) == {*ProxyFault, "v1", "v2", "none"}
