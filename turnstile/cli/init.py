"""`turnstile init`: a commented turnstile.toml to start from (config_file.py reads it)."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path

import click

from broker.runtime.printable import printable
from shards.settings.config_def import BROKER
from turnstile.cli.output import CommandFailed

FILE = "turnstile.toml"
_WIDTH = 110
_HEAD = """\
# turnstile up --config {name}
#
# What stands behind '#' without a space is not in force: an example, to be had without its '#'.
# The command line goes before this file. `turnstile config export` writes such a file of a running cluster.

[cluster]
brokers = 1
# Shard processes of each broker; one for each core if this is left out.
#shards = 2
# A name by which every command finds the cluster, as in `turnstile status --name orders`; its ports are then any free ones.
#name = "orders"
# Port of broker 0 on 127.0.0.1; broker b has port + b.
#port = 9092
#admin_port = 9644
# Any address but loopback needs TURNSTILE_ADMIN_TOKEN.
#admin_host = "0.0.0.0"
# Where logs, offsets, live changes and the journal stay; a temporary folder if this is left out.
#data_dir = "data"
# "spool" ends sooner; audit, report and plan read both.
#journal = "parquet"

# Instead of [cluster] port. Also: ",sasl", ",tls,cert=server.pem,key=server.key", ",advertise=localhost:32801", ",advertise=auto".
[listeners]
#EXTERNAL = "127.0.0.1:9092"
#INTERNAL = "127.0.0.1:9192,sasl"

# Topic and number of partitions.
[topics]
orders = 6

# Limits and other settings, by Kafka's and Redpanda's names. Of two that mean the same, the tighter one holds.
# `turnstile config set` changes them while the cluster runs; `turnstile explain ip=127.0.0.1` shows which hold.
[limits]
"""
_TAIL = """\
#"num.partitions" = 3
#"auto.create.topics.enable" = false

# Users of the listeners with ",sasl", and their passwords.
[users]
#alice = "a password of hers"

# Quotas of clients (KIP-13, KIP-124, KIP-599) and of addresses (KIP-612), each in a table of its own.
#[[quota]]
#user = "alice"
#client-id = "<default>"
#producer_byte_rate = 1048576
#consumer_byte_rate = 2097152
#request_percentage = 50
#controller_mutation_rate = 10

#[[quota]]
#ip = "<default>"
#connection_creation_rate = 20
"""
_IN_FORCE = {"kafka_connections_max_per_ip": "50"}
_EXAMPLES = {
    "kafka_connections_max": "1000",
    "kafka_connections_max_overrides": '["10.0.0.1:500", "10.1.0.0/16:100"]',
    "kafka_connection_rate_limit": "100",
    "kafka_connection_rate_limit_overrides": '["10.0.0.1:10"]',
    "max.connections": "1000",
    "max.connections.per.ip": "50",
    "max.connections.per.ip.overrides": '"10.0.0.1:500"',
    "max.connection.creation.rate": "100",
    "kafka_throughput_limit_node_in_bps": "100_000_000",
    "kafka_throughput_limit_node_out_bps": "200_000_000",
    "kafka_throughput_controlled_api_keys": '["produce", "fetch"]',
    "kafka_throughput_control": '[{ name = "backup", client_id = "backup-[0-9]+" }]',
    "max_kafka_throttle_delay_ms": "30_000",
}


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=FILE)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def init(file: Path, force: bool) -> None:
    """Write a commented FILE for `turnstile up --config FILE`.  [default: turnstile.toml]"""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as target:
            target.write(content(file))
    except FileExistsError:
        raise CommandFailed(f"{file} exists already: name another file, or overwrite it with --force") from None
    except OSError as fault:
        raise CommandFailed(f"{file} can't be written: {fault.strerror}") from None
    click.echo(f"Wrote {printable(str(file))}. Launch it: turnstile up --config {_argument(file)}")


def content(file: Path) -> str:
    """The text of a new file: one cap, one topic, and every limit with what it does."""
    limits = [_limit(name, f"#{_quoted(name)} = {value}") for name, value in _EXAMPLES.items()]
    in_force = [_limit(name, f"{_quoted(name)} = {value}") for name, value in _IN_FORCE.items()]
    return _HEAD.format(name=_argument(file)) + "".join([*in_force, *limits]) + _TAIL


def _argument(file: Path) -> str:
    """The file as a word of a command line, on one line."""
    return printable(shlex.quote(str(file)))


def _limit(name: str, line: str) -> str:
    sentence = textwrap.fill(BROKER[name].doc, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return f"{sentence}\n{line}\n"


def _quoted(name: str) -> str:
    return f'"{name}"' if "." in name else name
