"""`turnstile replay`: a scenario through the limits alone, under virtual time; no cluster is involved."""

from __future__ import annotations

import sys

import click

from turnstile.replay.stream import run


@click.command()
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
def replay(scenario: str) -> None:
    """Run a SCENARIO through the limits under virtual time, and print one JSON line for each decision.

    SCENARIO is a file of JSON lines; - is standard input. A line that can't be read ends the run with exit code 2, and with the
    number of the line on standard error.

    \b
    {"at":0,"do":"setup","listeners":["EXTERNAL","INTERNAL"],"inter_broker":"INTERNAL","ssl":["EXTERNAL"]}
    {"at":0,"do":"set","name":"max.connections.per.ip","value":"5"}
    {"at":0,"do":"quota","entity":{"ip":"10.0.0.1"},"key":"connection_creation_rate","value":5}
    {"at":12,"do":"connect","id":"a","ip":"10.0.0.1","listener":"EXTERNAL"}
    {"at":20,"do":"connect","id":"b","ip":"10.0.0.2","listener":"EXTERNAL","user":"alice"}
    {"at":40,"do":"close","id":"a"}
    {"at":50,"do":"record","quota":"produce","user":"alice","client_id":"app","amount":1000}
    """
    sys.exit(run(scenario, sys.stdout))
