"""Plans of limits of users: decided as by a plain replay of logins, on Spark as here, of tables and of journals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from one_shard import OneShard
from plain import Row, replay

from turnstile.cli.plan import plan as command
from turnstile.pipeline.errors import PipelineError
from turnstile.pipeline.inputs.connection_logs import load
from turnstile.pipeline.inputs.entities import USER
from turnstile.pipeline.inputs.small_log import SmallLog, read_small_log
from turnstile.pipeline.plan.candidates import Candidate, commands, grid
from turnstile.pipeline.plan.plan import LimitPlan, plan
from turnstile.pipeline.plan.plan_page import page
from turnstile.pipeline.plan.plan_text import printed
from turnstile.pipeline.plan.what_if import NEVER

START_US = 1_767_600_000_000_000
USERS = ["alice", "smith, j", "zoë", "10.0.0.1", "a:b", *(f"u{number}" for number in range(30))]
CANDIDATES = [
    Candidate(cap=1, by=USER),
    Candidate(cap=2, rate=1, by=USER),
    Candidate(cap=1, overrides='["smith, j:4", "a:b:2", "zoë:0"]', by=USER),
    Candidate(rate=1, by=USER),
]


def logins(seed: int, count: int = 400) -> list[Row]:
    """Logins in order of arrival, all from one address: of a few busy users and many quiet ones."""
    chance = random.Random(seed)
    log = []
    for opened in sorted(chance.randrange(60_000) for _ in range(count)):
        user = chance.choice(USERS[: chance.choice([2, 5, len(USERS)])])
        lasted_us = chance.choice([0, NEVER, chance.randrange(20_000_000), chance.randrange(2_000_000)])
        opened_us = START_US + opened * 1000
        log.append((user, opened_us, NEVER if lasted_us == NEVER else opened_us + lasted_us, "SASL"))
    return log


def written(folder: Path, log: list[Row], **more: list[Any]) -> Path:
    """A Parquet file, with rows of `more` behind the others."""
    names = ("login", "opened_at", "closed_at")
    rows = [(user, opened, None if closed == NEVER else closed) for user, opened, closed, _ in log]
    columns = {name: [row[place] for row in rows] + more.get(name, []) for place, name in enumerate(names)}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "logins.parquet")
    return folder


def read_here(folder: Path) -> SmallLog:
    log = read_small_log([str(folder)], "parquet", columns={"user": "login"}, by=USER)
    assert log is not None
    return log


@pytest.mark.parametrize("seed", range(3))
def test_users_are_decided_as_by_a_plain_replay(tmp_path: Path, seed: int) -> None:
    log = logins(seed)
    found = plan(read_here(written(tmp_path, log)), CANDIDATES)
    assert (found.by, found.entities) == (USER, len({row[0] for row in log}))
    for candidate, one in zip(CANDIDATES, found.candidates, strict=True):
        refused = replay(log, candidate)
        assert refused and one["refused"] == len(refused), candidate
        assert one["entities_affected"] == len({log[index][0] for index in refused}), candidate
    for each in found.recommended:
        overrides = json.dumps([f"{user}:{cap}" for user, cap in each.overrides.items()]) if each.overrides else ""
        assert each.refused == len(replay(log, Candidate(cap=each.cap, overrides=overrides, by=USER)))


def test_spark_makes_the_plan_that_is_made_here(spark: Any, tmp_path: Path) -> None:
    nobody = {"login": [None, "", "eve"], "opened_at": [START_US, START_US, None], "closed_at": [None, None, None]}
    folder = written(tmp_path, logins(7), **nobody)
    here = plan(read_here(folder), CANDIDATES)
    assert here.bad_reasons == {"no user": 2, "no time of opening": 1}
    source = load(spark, [str(folder)], "parquet", columns={"user": "login"}, by=USER)
    assert plan(source, CANDIDATES).as_json() == here.as_json()


class Logins(OneShard):
    """The journal of a shard with a listener for SASL and one without."""

    def __init__(self) -> None:
        super().__init__()

    def opened(self, conn: int, user: str | None, reason: str | None = None) -> dict[str, Any]:
        same = {"conn": conn, "ip": "10.0.0.1", "port": 1000 + conn, "listener": "SASL" if user else "PLAIN"}
        event = self.add("admitted", version=1, held_ms=0.1, **same)
        if user is not None:
            self.pause()
            event = self.add("authenticated", version=1, held_ms=0.1, user=user, reason=reason, **same)
        return event


def test_logins_of_a_journal_are_what_counts(spark: Any, tmp_path: Path) -> None:
    """A connection counts from its login to its end; refused logins, and clients that do not log in, do not count."""
    journal = Logins()
    for conn, user in ((1, "alice"), (2, "alice"), (3, "bob"), (4, None)):
        journal.opened(conn, user)
    journal.close(journal.opened(5, "alice", "user_cap"))
    journal.close(journal.opened(6, None) | {"user": "ANONYMOUS"})
    journal.close(journal.opened(7, "bob"))
    journal.opened(8, "bob")
    journal.written(tmp_path)
    log = read_small_log([str(tmp_path)], "journal", by=USER)
    assert log is not None
    found = plan(log, [Candidate(cap=1, by=USER)])
    assert (found.connections, found.entities, found.bad_rows, found.peaks) == (5, 2, 0, {2: 2})
    assert found.candidates[0]["refused"] == 3
    assert (
        plan(load(spark, [str(tmp_path)], "journal", by=USER), [Candidate(cap=1, by=USER)]).as_json() == found.as_json()
    )


def test_a_log_without_logins_says_so(spark: Any, tmp_path: Path) -> None:
    journal = Logins()
    journal.close(journal.opened(1, None))
    journal.written(tmp_path)
    log = read_small_log([str(tmp_path)], "journal", by=USER)
    assert log is not None
    for source in (log, load(spark, [str(tmp_path)], "journal", by=USER)):
        with pytest.raises(PipelineError, match="No user logs in"):
            plan(source, [])
    with pytest.raises(PipelineError, match="has no users"):
        load(spark, [str(tmp_path)], "zeek", by=USER)


def told(found: LimitPlan) -> list[str]:
    return [printed(found), page(found, of="x"), json.dumps(found.as_json())]


def test_a_plan_of_users_speaks_of_users(tmp_path: Path) -> None:
    found = plan(read_here(written(tmp_path, logins(1))), CANDIDATES[:2])
    for text in told(found):
        assert "address" not in text and "network" not in text and "kafka_connections" not in text and "rpk" not in text
    terminal, html, _ = told(found)
    assert "cap for each user" in terminal and "Open at once, by user" in html
    answer = found.as_json()
    assert answer["by"] == "user" and answer["users"] == found.entities
    assert set(answer["candidates"][0]) >= {"users_affected", "refused"}
    assert {"per_user_cap", "users_hit", "users_close"} <= set(answer["recommended"]["simple"])


def test_commands_set_and_rehearse_the_caps_of_users() -> None:
    name = "turnstile.max.connections.per.user"
    assert commands(5, {"smith, j": 9}, USER) == {
        "turnstile": [f"turnstile config set {name} 5", f"turnstile config set {name}.overrides '[\"smith, j:9\"]'"],
        "rehearsal": [
            f"turnstile config set --observe {name} 5",
            f"turnstile config set --observe {name}.overrides '[\"smith, j:9\"]'",
        ],
    }
    with pytest.raises(PipelineError, match="can't be set"):
        grid([5], [], [], [], "alice", USER)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--by", "user", "--format", "zeek"], "has no users"),
        (["--by", "user", "--format", "csv", "--per-ip-cap", "5"], "--per-ip-cap needs --by ip"),
        (["--by", "user", "--format", "csv", "--broker-cap", "5"], "--broker-cap needs --by ip"),
        (["--format", "csv", "--user-rate", "5"], "--user-rate needs --by user"),
        (["--by", "client-id", "--format", "csv"], "need --quotas"),
        (["--by", "ip", "--quotas", "--format", "kafka-requests"], "only by user or client-id"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], says: str) -> None:
    done = CliRunner().invoke(command, ["--input", "x", *options])
    assert done.exit_code == 2 and says in done.output


def test_the_command_plans_a_table_of_logins(tmp_path: Path) -> None:
    rows = "".join(f"{user},10.0.0.1,{1767607200 + n},5\n" for n, user in enumerate(["alice", "bob", "alice", "alice"]))
    (tmp_path / "a.csv").write_text("login,ip,opened_at,duration_s\n" + rows)
    asked = ["--by", "user", "--format", "csv", "--columns", "user=login", "--per-user-cap", "1,2", "--json"]
    done = CliRunner().invoke(command, ["--input", str(tmp_path / "a.csv"), *asked])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [each["refused"] for each in answer["candidates"]] == [2, 1] and answer["users"] == 2
