"""`turnstile plan --quotas`: a log of requests against candidate client quotas."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from broker.runtime.printable import printable
from turnstile.cli.output import CommandFailed
from turnstile.cli.param_type import ParamType
from turnstile.cli.spark_job import check_writable, failing_in_one_sentence, prepared_journal, write_page
from turnstile.entities import entity_name
from turnstile.pipeline.paths_and_uris import is_uri
from turnstile.pipeline.progress import shown, step
from turnstile.quantities import written

if TYPE_CHECKING:
    from turnstile.pipeline.quota_plan.usage import Usage

FORMATS = ("journal", "kafka-requests", "redpanda-requests")
"""Formats of logs of requests; redpanda-requests is here only to be refused with a reason (REDPANDA)."""
BY = ("user", "client-id", "user,client-id")
REDPANDA = (
    "Redpanda logs no sizes of requests: at TRACE its kafka logger names the request and the client id, its audit log the "
    "user, and neither says how many bytes a request moved or how long it took. Run the clients against Turnstile and plan "
    "from its journal (--format journal), or plan from the log of a Kafka broker (--format kafka-requests)."
)
Parsed = dict[tuple[tuple[str, str | None], ...], dict[str, float]]


class QuotaSpec(ParamType[Parsed]):
    """`client-id=<default> producer_byte_rate=1000; client-id=app producer_byte_rate=5000`"""

    name = "'ENTITY KEY=VALUE; ...'"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Parsed:
        from shards.limits.quota_entities import CLIENT_KEYS, entity_of, quota_of
        from shards.settings.errors import ConfigInvalid

        if isinstance(value, dict):
            return value
        found: Parsed = {}
        try:
            parts = _parts(str(value))
        except ValueError as fault:
            self.fail(f"{value!r}: {str(fault).lower()}", param, ctx)
        for part in parts:
            names: dict[str, str | None] = {}
            values: dict[str, str] = {}
            for word in part:
                name, is_set, given = word.partition("=")
                if not is_set or not given:
                    self.fail(
                        f"{word!r} is not of the form NAME=VALUE, such as client-id=app or producer_byte_rate=1000",
                        param,
                        ctx,
                    )
                if name in CLIENT_KEYS:
                    values[name] = given
                else:
                    names[name] = entity_name(given)
            if "ip" in names:
                self.fail(
                    "ip has no client quota: --ip-rate, without --quotas, plans connection rates of addresses",
                    param,
                    ctx,
                )
            if not values:
                self.fail(
                    f"{' '.join(part)!r} sets no quota: one of {', '.join(CLIENT_KEYS)}, such as producer_byte_rate=1000",
                    param,
                    ctx,
                )
            try:
                entity = entity_of(names)
                quotas = {key: quota_of(entity, key, written(text)) for key, text in values.items()}
                found.setdefault(entity, {}).update(quotas)
            except ConfigInvalid as fault:
                self.fail(str(fault), param, ctx)
            except ValueError as not_a_number:
                self.fail(
                    f"a quota cannot be {str(not_a_number)!r}: it is a number, such as 1000000 or 1MB/s", param, ctx
                )
        if not found:
            self.fail("it is empty", param, ctx)
        return found


def _parts(text: str) -> list[list[str]]:
    """The words between semicolons; quotes and backslashes as in a shell, for names with spaces. Raises ValueError."""
    words = shlex.shlex(text, posix=True, punctuation_chars=";")
    words.whitespace_split, words.commenters = True, ""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.strip(";"):
            parts[-1].append(word)
        else:
            parts.append([])
    return [part for part in parts if part]


def plan_quotas(
    inputs: Sequence[str], format: str, candidates: Sequence[Parsed], *, by: str | None, at_most_throttled: float,
    headroom: Fraction, html: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Prints the plan, and writes its page."""
    check_writable(html)
    if format == "redpanda-requests":
        raise CommandFailed(REDPANDA)
    if any(map(is_uri, (*inputs, html or ""))):
        raise CommandFailed("plan --quotas reads and writes local files: copy the log here.")
    with failing_in_one_sentence():
        from turnstile.pipeline.quota_plan.quota_page import page
        from turnstile.pipeline.quota_plan.quota_plan import quota_plan
        from turnstile.pipeline.quota_plan.quota_text import lines

        with shown("plan"):
            usage = _read(inputs, format)
            step("replaying")
            found = quota_plan(usage, candidates, by=by, at_most_throttled=at_most_throttled, headroom=headroom)
        if html is not None:
            write_page(page(found, of=", ".join(inputs)), html, None)
    if as_json:
        click.echo(json.dumps(found.as_json()))
        return
    for line in lines(found):
        click.echo(printable(line))
    click.echo(f"\n{html}: the same with pictures" if html else "\nWith pictures: --html quotas.html")


def _read(inputs: Sequence[str], format: str) -> Usage:
    if format == "kafka-requests":
        from turnstile.pipeline.quota_plan.kafka_requests import read

        return read(inputs)
    from turnstile.pipeline.quota_plan import journal_charges

    if len(inputs) > 1:
        raise CommandFailed(
            "plan --quotas takes only one journal: times in journals of different machines can't be put in order."
        )
    with prepared_journal(inputs[0]) as prepared:
        return journal_charges.read(prepared.folders, inputs, until_ns=prepared.until_ns)
