"""`turnstile schema`: what files and the admin API look like, for editors, checkers and generators of clients."""

from __future__ import annotations

import click

from turnstile.cli.output import show_json

_WHAT = ("config", "scenario", "openapi")


@click.command()
@click.argument("what", type=click.Choice(_WHAT))
def schema(what: str) -> None:
    """Print the JSON Schema of a file, or the OpenAPI document of the admin API.

    config is the schema of files for `turnstile up --config`, scenario that of files for `turnstile load --scenario`. An editor
    completes and checks a TOML file whose first line names its schema: #:schema ./turnstile.schema.json

    \b
    turnstile schema config > turnstile.schema.json
    turnstile schema scenario > scenario.schema.json
    turnstile schema openapi                  what a cluster serves at /v1/openapi.json
    """
    if what == "openapi":
        from broker.admin.openapi import document

        show_json(document())
    else:
        from turnstile.cli import file_schemas

        show_json(file_schemas.config_schema() if what == "config" else file_schemas.scenario_schema())
