"""Consumers that take their time over records which stay in the log's files until they are sent."""

import os
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from batches import batch
from confluent_kafka.admin import AdminClient
from harness import connect, running, until
from request_bytes import answer, fetch, produce

from broker.storage.records import PLACE

BATCHES = 40
SIZE = 400_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    home = tmp_path_factory.mktemp("slow")
    listeners = ["PLAIN=127.0.0.1:0"]
    if shutil.which("openssl") is not None:
        cert, key = home / "server.pem", home / "server.key"
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        subprocess.run([*command.split(), "-out", cert, "-keyout", key], check=True, capture_output=True)
        listeners.append(f"TLS=127.0.0.1:0,tls,cert={cert},key={key}")
    options = [word for listener in listeners for word in ("--listener", listener)]
    topics = [word for topic in ("gone", "left", "secret", "large") for word in ("--topic", f"{topic}:1")]
    with running(home / "d", *options, *topics, shards=2) as cluster:
        pids = cluster.processes()
        yield cluster
        assert cluster.processes() == pids, "a process died"


def records(number):
    return batch(bytes([number]) * SIZE)


def stood_in_the_log():
    """The end of the answer to a Fetch of everything: the batches with their places."""
    raws = map(records, range(BATCHES))
    return b"".join(PLACE.pack(number, len(raw) - 12, 0) + raw[PLACE.size :] for number, raw in enumerate(raws))


def filled(cluster, topic):
    """A topic with one record a batch."""
    with connect(cluster.listeners["PLAIN"][0]) as sock:
        for number in range(BATCHES):
            sock.sendall(produce("p", topic, 0, records(number)))
            answer(sock)
    return topic


FETCH = {"max_bytes": 2 * BATCHES * SIZE}


def test_what_was_asked_for_arrives_though_its_topic_is_deleted_meanwhile(cluster):
    topic = filled(cluster, "gone")
    slow = [connect(cluster.listeners["PLAIN"][0]) for _ in range(10)]
    for sock in slow:
        sock.sendall(fetch("slow", topic, **FETCH))
        assert sock.recv(1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(10)
    expected = stood_in_the_log()
    for sock in slow:
        with sock:
            assert answer_behind_first_byte(sock).endswith(expected)
    until(lambda: not deleted_files(cluster), what="nothing keeps the deleted files")


def test_consumers_that_leave_in_the_middle_keep_nothing_open(cluster):
    topic = filled(cluster, "left")
    for _ in range(20):
        with connect(cluster.listeners["PLAIN"][0]) as sock:
            sock.sendall(fetch("slow", topic, **FETCH))
            sock.recv(100_000)
    until(lambda: sum(each["connections"] for each in cluster.get("/v1/shards")["shards"]) == 0, what="all are closed")


def test_over_tls_it_is_the_same(cluster):
    if "TLS" not in cluster.listeners:
        pytest.skip("openssl is not installed")
    topic = filled(cluster, "secret")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(connect(cluster.listeners["TLS"][0]), server_hostname="localhost") as sock:
        sock.sendall(fetch("slow", topic, **FETCH) * 2)
        assert [answer(sock).endswith(stood_in_the_log()) for _ in range(2)] == [True, True]


def test_slow_consumers_take_no_memory(cluster):
    topic = filled(cluster, "large")
    slow = [connect(cluster.listeners["PLAIN"][0]) for _ in range(40)]
    for sock in slow:
        sock.sendall(fetch("slow", topic, **FETCH))
        assert sock.recv(1)
    assert max(map(resident_bytes, cluster.processes())) < 200 << 20, "40 answers are 640 MB"
    for sock in slow:
        assert answer_behind_first_byte(sock).endswith(stood_in_the_log())
        sock.close()


def answer_behind_first_byte(sock):
    """The rest of an answer, of whose length the first byte, 0, was read."""
    length = int.from_bytes(sock.recv(3, socket.MSG_WAITALL), "big")
    data = bytearray()
    while len(data) < length:
        data += sock.recv(length - len(data))
    return data


def deleted_files(cluster):
    links = (link for pid in cluster.processes() for link in Path(f"/proc/{pid}/fd").iterdir())
    return [name for name in map(os.readlink, links) if ".log (deleted)" in name]


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
