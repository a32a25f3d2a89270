"""Files for `turnstile up --config`: TOML and server.properties in, what they ask for out."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness import running

from shards.settings.config_types import HIDDEN
from turnstile.cli.config_file import ConfigFileInvalid, read, write
from turnstile.cli.main import turnstile
from turnstile.cli.up_params import Listener

WHOLE = """
[cluster]
shards = 1
[listeners]
EXTERNAL = "127.0.0.1:0"
INTERNAL = "127.0.0.1:0,sasl"
[limits]
kafka_connections_max_per_ip = 50
max.connections = 1000
"listener.name.external.max.connections" = 7
kafka_connections_max_overrides = {"10.0.0.1" = 5, "2001:db8::/32" = 2}
kafka_connection_rate_limit_overrides = ["10.0.0.1:9"]
[topics]
orders = 6
[users]
alice = "secret"
[[quota]]
user = "alice"
client-id = "<default>"
producer_byte_rate = 1048576
[[quota]]
ip = "<default>"
connection_creation_rate = 20
"""


def toml(folder: Path, text: str) -> Path:
    path = folder / "turnstile.toml"
    path.write_text(text)
    return path


def test_toml_file_has_options_settings_and_quotas(tmp_path: Path) -> None:
    found = read(toml(tmp_path, WHOLE))
    assert found.cluster == {"shards": 1} and found.users == {"alice": "secret"} and found.topics == ["orders:6"]
    assert found.listeners == ["EXTERNAL=127.0.0.1:0", "INTERNAL=127.0.0.1:0,sasl"]
    assert dict(found.settings) == {
        "kafka_connections_max_per_ip": "50",
        "max.connections": "1000",
        "listener.name.external.max.connections": "7",
        "kafka_connections_max_overrides": "10.0.0.1:5,[2001:db8::]/32:2",
        "kafka_connection_rate_limit_overrides": "10.0.0.1:9",
    }
    assert found.quotas == [
        ({"user": "alice", "client-id": None}, {"producer_byte_rate": 1048576.0}),
        ({"ip": None}, {"connection_creation_rate": 20.0}),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[cluster", "turnstile.toml: Expected"),
        ("[limit]\n", "[limit] is not a table of this file: cluster, listeners"),
        ("limits = 5\n", "limits must be a table"),
        ("[cluster]\nshard = 1\n", "[cluster] has no 'shard'"),
        ("[cluster]\nshards = 'two'\n", "[cluster] shards must be a number"),
        ("[topics]\norders = true\n", "[topics] orders must be a number"),
        ("[quota]\nuser = 'a'\n", "must be [[quota]]"),
        ("[[quota]]\nuser = 'a'\n", "needs a user, client-id or ip, and a rate"),
        ("[[quota]]\nuser = 'a'\nproducer_byte_rate = 'x'\n", "producer_byte_rate must be a number"),
    ],
)
def test_wrong_toml_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigFileInvalid) as raised:
        read(toml(tmp_path, text))
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


def test_server_properties_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "# a broker\nprocess.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
        "listeners=CLIENTS://:9092,INSIDE://10.0.0.1:9094,CONTROLLER://:9093\nadvertised.listeners=CLIENTS://host:9092\n"
        "listener.security.protocol.map=CLIENTS:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "inter.broker.listener.name=INSIDE\nmax.connections.per.ip = 20\nmax.connections.per.ip.overrides=10.0.0.1:5,\\\n"
        "    10.0.0.2:6\nlistener.name.clients.max.connections: 100\nlog.dirs=/tmp/kafka\ngroup.share.max.groups=8\n"
    )
    found = read(path)
    assert found.listeners == ["CLIENTS=*:9092", "INSIDE=10.0.0.1:9094,sasl"]
    settings = dict(found.settings)
    assert settings["max.connections.per.ip"] == "20" and settings["listener.name.clients.max.connections"] == "100"
    assert settings["max.connections.per.ip.overrides"] == "10.0.0.1:5,10.0.0.2:6"
    assert settings["inter.broker.listener.name"] == "INSIDE"
    assert found.ignored == ["group.share.max.groups"]
    path.write_text("listeners=SSL://:9092\n")
    with pytest.raises(ConfigFileInvalid, match="name its certificate"):
        read(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[limits]\nmax.conections = 5\n", "did you mean"),
        ("[[quota]]\nip = 'x'\nconnection_creation_rate = 5\n", "not a valid IP"),
        ("[listeners]\nX = 'nowhere'\n", "is not NAME=host:port"),
        ("[topics]\n'a b' = 1\n", "is not a topic name"),
        ("[topics]\n__consumer_offsets = 50\n", "is an internal topic"),
        ("[users]\n'' = 'x'\n", "must have a name"),
        ("[listeners]\nX = '127.0.0.1:0,tls,key=a b,file=c'\n", "'file=c' is not an option of a listener"),
    ],
)
def test_what_cannot_be_started_is_wrong_usage(tmp_path: Path, text: str, sentence: str) -> None:
    result = CliRunner().invoke(turnstile, ["up", "--config", str(toml(tmp_path, text))])
    assert result.exit_code == 2 and sentence in " ".join(result.output.split()), result.output


def test_each_option_has_a_variable() -> None:
    result = CliRunner().invoke(turnstile, ["up"], env={"TURNSTILE_UP_BROKERS": "99"})
    assert result.exit_code == 2 and "99 is not in the range" in result.output
    result = CliRunner().invoke(turnstile, ["up"], env={"TURNSTILE_UP_TOPIC": "a:1 b:x"})
    assert result.exit_code == 2 and "'x' is not a number of partitions" in " ".join(result.output.split())


def test_an_export_reads_back_whatever_clients_chose_as_names_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    names = ['quo"te', "back\\slash", "caf\u00e9 \U0001f600", "tab\t and \x7f", "\x9b31m"]
    about = {"brokers": 2, "shards": 1, "topics": {"orders": 6, "__consumer_offsets": 50}, "listeners": []}
    quotas = [{"entity": {"client-id": name}, "values": {"producer_byte_rate": 5.0}} for name in names]
    exported = write(about, {}, quotas, names, {"1": {"max.connections": 3}})
    again = read(toml(tmp_path, exported))
    assert again.topics == ["orders:6"], "internal topics come by themselves"
    assert [entity["client-id"] for entity, _ in again.quotas] == names and exported.replace("\n", "").isprintable()
    assert '# broker 1 has "max.connections" = 3 of its own\n' in exported and "# [users]" in exported


def test_an_export_has_no_password() -> None:
    about = {"brokers": 1, "shards": 1, "listeners": [], "topics": {}}
    exported = write(about, {"delegation.token.secret.key": HIDDEN, "max.connections": 5}, [], [], {})
    assert tomllib.loads(exported)["limits"] == {"max.connections": 5}
    assert '# [limits] has no password to write: "delegation.token.secret.key"' in exported


def test_a_certificate_is_found_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = Listener().convert("T=127.0.0.1:0,tls,cert=of me/a.pem,key=/b.pem", None, None)
    assert spec.options == ("tls", f"cert={tmp_path}/of me/a.pem", "key=/b.pem")


def test_a_cluster_is_what_its_file_says_and_its_export_says_the_same(tmp_path: Path) -> None:
    config = ("--config", str(toml(tmp_path, WHOLE)))
    with running(
        tmp_path / "data", *config, "--listener", "EXTERNAL=127.0.0.1:0", "--topic", "more:2", shards=1
    ) as cluster:
        exported = cluster.turnstile("config", "export")
        about, quotas, users = (cluster.get(path) for path in ("/v1/cluster", "/v1/quotas", "/v1/users"))
        assert about["topics"] == {"orders": 6, "more": 2}, "the command line adds to the file's"
        assert [each["name"] for each in about["listeners"]] == ["EXTERNAL"], (
            "the command line's listeners replace the file's"
        )
        assert [each["name"] for each in users["users"]] == ["alice"]
        cluster.reset()
        assert [cluster.get("/v1/quotas"), cluster.get("/v1/users")] == [quotas, users], "they hold again after a reset"
    asked, again = (read(toml(tmp_path, text)) for text in (WHOLE, exported))
    assert dict(again.settings) == dict(asked.settings) and again.topics == ["orders:6", "more:2"]
    assert sorted(again.quotas, key=str) == sorted(asked.quotas, key=str) and again.cluster == {
        "brokers": 1,
        "shards": 1,
    }
    assert again.listeners[0].startswith("EXTERNAL=127.0.0.1:") and "# [users]" in exported
