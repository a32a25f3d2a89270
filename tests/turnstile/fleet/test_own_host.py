import ipaddress
import socket

from turnstile.fleet import own_host
from turnstile.fleet.own_host import local_4, local_6, usable
from turnstile.load.sources import Sources

ROUTES = """\
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 10.1.2.0/24 2 0 2
           |-- 10.1.2.0
              /24 link UNICAST
           |-- 10.1.2.7
              /32 host LOCAL
           |-- 10.9.0.0
              /30 host LOCAL
"""


def test_the_kernels_table_says_what_is_delivered_here():
    assert {str(each) for each in local_4(ROUTES)} == {"127.0.0.0/8", "127.0.0.1/32", "10.1.2.7/32", "10.9.0.0/30"}
    assert list(map(str, local_6("fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n"))) == [
        "fe80::fc:ff:fe00:1/128"
    ]


def test_of_a_large_range_a_host_has_its_own(tmp_path, monkeypatch):
    (tmp_path / "fib_trie").write_text(ROUTES)
    monkeypatch.setattr(own_host, "ROUTES", tmp_path / "fib_trie")
    assert usable(Sources("10.0.0.0/8")) == ["10.1.2.7", "10.9.0.0", "10.9.0.1", "10.9.0.2", "10.9.0.3"]
    assert usable(Sources("10.9.0.2,10.9.0.9")) == ["10.9.0.2"]
    assert usable(Sources("192.0.2.0/24")) == []
    assert len(usable(Sources("127.0.0.0/8"))) == own_host.MOST


def test_this_host_can_connect_from_what_it_says():
    for address in usable(Sources("127.3.0.0/30")):
        with socket.socket() as sock:
            sock.bind((address, 0))
            assert ipaddress.ip_address(address).is_loopback
