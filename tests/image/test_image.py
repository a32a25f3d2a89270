"""The image as people run it: limits by the environment, a mapped port, a read-only root, little memory, not root."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from containers import READY, Container, Engine, program_here, why_not
from harness import admitted, connect, until

from turnstile.admin_client import AdminClient

if reason := why_not():
    pytest.skip(reason, allow_module_level=True)  # one line, not one for each test

TOKEN = "a token of the tests"
TIGHT = ("--read-only", "--memory", "256m", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
MAPPED = ("--publish", "127.0.0.1::9092", "--publish", "127.0.0.1::9644", "--env", f"TURNSTILE_ADMIN_TOKEN={TOKEN}")


def admin(container: Container) -> AdminClient:
    return AdminClient(f"http://127.0.0.1:{container.ports[9644]}", TOKEN)


def brokers(port: int) -> list[str]:
    client = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    found = client.list_topics(timeout=10).brokers
    return [f"{found[each].host}:{found[each].port}" for each in sorted(found)]


def test_a_client_outside_reaches_it_by_an_address_set_after_the_start(started: Any) -> None:
    container = started(*TIGHT, *MAPPED).until_ready()
    port = container.ports[9092]
    with admin(container) as client:
        client.put("/v1/advertise", {"addresses": f"127.0.0.1:{port}"})
        assert brokers(port) == [f"127.0.0.1:{port}"]
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        producer.produce("a-topic", b"from outside")
        assert producer.flush(20) == 0
        assert client.get("/v1/cluster")["topics"]["a-topic"] == 1


def test_three_brokers_are_reached_by_three_mapped_ports(started: Any) -> None:
    ports = [word for port in (9092, 9093, 9094) for word in ("--publish", f"127.0.0.1::{port}")]
    container = started(
        *MAPPED[2:], *ports, command=("up", "--brokers", "3", "--shards", "1", "--topic", "t:3")
    ).until_ready()
    mapped = [container.ports[port] for port in (9092, 9093, 9094)]
    with admin(container) as client:
        client.put("/v1/advertise", {"addresses": [f"127.0.0.1:{port}" for port in mapped]})
    for port in mapped:
        assert brokers(port) == [f"127.0.0.1:{each}" for each in mapped]
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{mapped[0]}", "log_level": 0})
    for partition in range(3):
        producer.produce("t", b"to its leader", partition=partition)
    assert producer.flush(20) == 0


def test_limits_come_from_the_environment_in_both_spellings_and_hold(started: Any) -> None:
    container = started(
        *MAPPED, "--env", "TURNSTILE_KAFKA_CONNECTIONS_MAX=3", "--env", "KAFKA_NUM_PARTITIONS=4", "--env", "KAFKA_NUM_PARTITION=4"
    ).until_ready()  # fmt: skip
    with admin(container) as client:
        values = client.get("/v1/cluster_config")
        assert (values["kafka_connections_max"], values["num.partitions"]) == (3, 4)
        address = ("127.0.0.1", container.ports[9092])
        held = [connect(address) for _ in range(3)]
        assert all(admitted(each) for each in held)
        with connect(address) as refused:
            assert not admitted(refused)
        until(lambda: client.get("/v1/refusals", by="reason")["total"] == 1, what="the refusal is counted")
        for each in held:
            each.close()
    said = container.logs()
    assert "KAFKA_NUM_PARTITION (num.partition) is not a setting: left out; did you mean KAFKA_NUM_PARTITIONS?" in said


def test_a_mounted_file_is_read(started: Any, tmp_path: Path) -> None:
    file = tmp_path / "turnstile.toml"
    file.write_text("[limits]\nkafka_connections_max_per_ip = 7\n[topics]\norders = 6\n")
    container = started(*MAPPED, "--volume", f"{file}:/etc/turnstile/turnstile.toml:ro").until_ready()
    with admin(container) as client:
        assert client.get("/v1/cluster")["topics"] == {"orders": 6}
        assert client.get("/v1/cluster_config")["kafka_connections_max_per_ip"] == 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("server.properties", "listeners=PLAINTEXT://:9092\n"),
        ("turnstile.toml", '[cluster]\nport = 9092\nadmin_port = 9700\nname = "mounted"\n'),
    ],
)
def test_ports_of_a_mounted_file_are_reached_from_outside_and_the_health_check_follows(
    started: Any, engine: Engine, tmp_path: Path, name: str, text: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    container = started(*TIGHT, *MAPPED, "--volume", f"{file}:/etc/turnstile/{name}:ro").until_ready()
    assert brokers(container.ports[9092]) == ["localhost:9092"]
    assert engine.run("healthcheck", "run", container.name, check=False).returncode == 0


def test_options_of_the_command_line_are_reached_and_found_too(started: Any, engine: Engine) -> None:
    container = started(*MAPPED, command=("up", "--name", "up", "--port", "9092", "--admin-port", "9701")).until_ready()
    assert brokers(container.ports[9092]) == ["localhost:9092"]
    assert engine.run("healthcheck", "run", container.name, check=False).returncode == 0


def test_what_can_not_be_meant_is_refused_in_one_sentence(engine: Engine, tmp_path: Path) -> None:
    folder = engine.once("--volume", f"{tmp_path}:/etc/turnstile/turnstile.toml:ro")
    assert folder.returncode == 2 and "/etc/turnstile/turnstile.toml is a folder" in folder.stderr
    detached = engine.once(command=("up", "--detach"))
    assert detached.returncode == 2 and "a container ends with its first process" in detached.stderr
    variable = engine.once("--env", "TURNSTILE_UP_BROKERS=abc")
    assert variable.returncode == 2 and "'TURNSTILE_UP_BROKERS'" in variable.stderr


def test_it_is_not_root_and_says_when_it_is_ready_in_one_line_that_stays(started: Any) -> None:
    container = started(*TIGHT).until_ready()
    assert container.execute("id", "-u").stdout.strip() == "1001"
    assert container.execute("touch", "/a-file").returncode != 0
    assert re.findall(r"^.*ready.*$", container.logs(), re.MULTILINE) == ["Turnstile is ready."]


def test_its_health_check_costs_little_and_fails_when_a_process_is_down(started: Any, engine: Engine) -> None:
    container = started(*TIGHT).until_ready()
    until(lambda: container.execute("turnstile", "health").returncode == 0, what="healthy")
    assert engine.run("healthcheck", "run", container.name, check=False).returncode == 0
    measured = "import resource,subprocess,sys; subprocess.run(['turnstile','health']); " \
               "u=resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime+u.ru_stime)"  # fmt: skip
    costs = [float(container.execute("python", "-c", measured).stdout.split()[-1]) for _ in range(3)]
    assert min(costs) < 0.1, costs
    # A supervisor that is stopped starts nothing again.
    pids = container.execute("python", "-c", "import os; print(*(p for p in os.listdir('/proc') if p.isdigit()))")
    coordinator = sorted(map(int, pids.stdout.split()))[2]
    container.execute("python", "-c", f"import os; os.kill({coordinator}, 19)")
    until(lambda: container.execute("turnstile", "health").returncode == 1, within_s=20, what="unhealthy")


def test_without_a_token_nothing_outside_reaches_the_page(started: Any) -> None:
    container = started("--publish", "127.0.0.1::9644").until_ready()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{container.ports[9644]}/", timeout=10).read()
    assert "can be reached in this container only" in container.logs()
    assert "state" in container.execute("turnstile", "status").stdout


def test_with_a_token_only_those_that_have_it(started: Any) -> None:
    container = started(*MAPPED).until_ready()
    url = f"http://127.0.0.1:{container.ports[9644]}"
    until(lambda: urllib.request.urlopen(f"{url}/healthz", timeout=10).status == 200, what="healthy")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{url}/", timeout=10)
    with AdminClient(url, TOKEN) as client:
        assert "<html" in client.text("/")
    assert "state" in container.execute("turnstile", "status").stdout, "inside, the token is in the environment"


@pytest.mark.parametrize("when", ["starting", "ready", "connected"])
def test_sigterm_ends_it_in_order_and_soon(started: Any, when: str) -> None:
    container = started(*TIGHT, *MAPPED, "--env", "KAFKA_NO_SETTING=1")
    if when == "starting":
        until(lambda: "KAFKA_NO_SETTING" in container.logs(), what="Python has begun")
    else:
        container.until_ready()
    held = [connect(("127.0.0.1", container.ports[9092])) for _ in range(20 if when == "connected" else 0)]
    began_s = time.monotonic()
    container.signal("TERM")
    until(lambda: not container.state["Running"], within_s=9, what="it has ended: docker stop kills after ten seconds")
    print(f"ended {time.monotonic() - began_s:.2f} s after SIGTERM, {when}")
    was_ready = READY in container.logs()  # on a busy machine also where the signal was meant to come before
    assert container.state["ExitCode"] == (0 if was_ready else 143)
    assert not container.state["OOMKilled"]
    for each in held:
        each.close()


def test_what_is_left_behind_by_others_becomes_no_zombie(started: Any) -> None:
    container = started().until_ready()
    orphan = "import os,sys; os.fork() and os._exit(0); os.fork() and os._exit(0); os._exit(0)"
    for _ in range(5):
        container.execute("python", "-c", orphan)
    states = "import glob; print([l for f in glob.glob('/proc/[0-9]*/stat') for l in open(f).read().split(')')[1].split()[:1]])"

    def has_zombies() -> bool:
        return "Z" in container.execute("python", "-c", states).stdout

    until(lambda: not has_zombies(), what="no zombie is left")


def test_a_volume_keeps_what_an_earlier_container_had(started: Any, tmp_path: Path, engine: Engine) -> None:
    volume = tmp_path / "data"
    volume.mkdir()
    volume.chmod(0o777)
    options = (*MAPPED, "--volume", f"{volume}:/var/lib/turnstile")
    first = started(*options).until_ready()
    with admin(first) as client:
        client.put("/v1/cluster_config", {"upsert": {"kafka_connections_max": 9}, "remove": []})
    first.signal("TERM")
    until(lambda: not first.state["Running"], within_s=10, what="it has ended")
    with admin(started(*options).until_ready()) as client:
        assert client.get("/v1/cluster_config")["kafka_connections_max"] == 9
    volume.chmod(0o755)
    said = engine.once(*options).stderr
    assert re.search(r"/var/lib/turnstile.*(Permission denied|not writable|can't)", said), said


def test_other_words_are_commands_of_the_tool(engine: Engine) -> None:
    assert engine.once(command=("--version",)).stdout.startswith("turnstile, version ")
    assert "cap" in engine.once(command=("load", "--list")).stdout
    wrong = engine.once("--env", "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://0.0.0.0:9092")
    assert wrong.returncode == 2 and "clients can't connect to 0.0.0.0" in wrong.stderr


@pytest.mark.parametrize("options", [("--read-only-tmpfs=false",), ("--user", "123456:0"), ("--user", "0:0")])
def test_it_runs_without_a_folder_for_files_and_as_any_user(
    started: Any, engine: Engine, options: tuple[str, ...]
) -> None:
    if options[0].startswith("--read-only-tmpfs") and program_here() != "podman":
        options = ()  # docker has no other folder in any case
    container = started("--read-only", *options).until_ready()
    assert container.execute("turnstile", "health").returncode == 0


def test_its_labels_are_those_of_oci(engine: Engine) -> None:
    found = json.loads(engine.run("inspect", engine.image).stdout)[0]
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in found["Config"]["Labels"].items()}
    assert {"title", "description", "version", "revision", "created", "base.name"} <= labels.keys()
    datetime.fromisoformat(labels["created"])
    assert found["Config"]["User"] == "1001:0"
    assert {"9092/tcp", "9644/tcp"} <= found["Config"]["ExposedPorts"].keys()
    assert found["Config"].get("Volumes") is None
