"""Quota plans: the decisions are those of `turnstile replay`, the smallest quota is the smallest, and logs are read as they are."""

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import quota_logs
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from quota_logs import START_MS, created, deleted, fetched, line, produced, quotas, usage

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from shards.limits.quota_entities import entity_of
from shards.limits.rate import Window
from turnstile.cli.plan import plan
from turnstile.cli.plan_quotas import QuotaSpec
from turnstile.pipeline.errors import NoInput, PipelineError
from turnstile.pipeline.quota_plan import kafka_requests
from turnstile.pipeline.quota_plan.commands import commands
from turnstile.pipeline.quota_plan.demand import STEPS, demand
from turnstile.pipeline.quota_plan.quota_page import page
from turnstile.pipeline.quota_plan.quota_plan import default_of, quota_plan, value
from turnstile.pipeline.quota_plan.quota_text import lines
from turnstile.pipeline.quota_plan.usage import Charge, Usage
from turnstile.pipeline.quota_plan.what_if import decisions, outcome, scenario
from turnstile.replay.stream import replay


@pytest.mark.parametrize("first", range(0, 300, 60))
def test_decisions_are_those_of_turnstile_replay(first: int) -> None:
    for seed in range(first, first + 60):
        log, candidate = usage(seed), quotas(seed)
        answers = [json.loads(each) for each in replay(json.dumps(each) for each in scenario(log, candidate))]
        told = [
            {"outcome": "accepted" if charged.accepted else "refused", "throttle_ms": charged.throttle_ms}
            for _, charged in decisions(log, candidate)
        ]
        assert told == answers, seed


@given(st.integers(0, 10**9), st.sampled_from((PRODUCE, FETCH, REQUEST, MUTATION)))
def test_the_smallest_quota_throttles_nothing_and_a_smaller_one_does(seed: int, kind: str) -> None:
    log = usage(seed, 30, (kind,))._replace(window=Window(3, 1000), mutations=Window(3, 1000))
    needed = demand(log, kind, "user,client-id")
    highest = max(needed.levels.all_peaks)
    by = default_of("user,client-id")
    named = Usage(
        [use._replace(client_id=use.client_id or "unnamed") for use in log.uses],
        Counter(),
        [],
        log.window,
        log.mutations,
    )
    assert outcome(named, {by: {kind: value(kind, highest)}}).throttles(kind) == 0
    less = highest - 1 if kind == MUTATION else int(highest * 0.98)
    if less:
        assert outcome(named, {by: {kind: value(kind, less)}}).throttles(kind) > 0
    assert sum(needed.levels.levels.values()) == len(log.uses) and STEPS[kind] > 0


@pytest.mark.parametrize("seed", range(20))
def test_what_is_recommended_leaves_usual_traffic_alone(seed: int) -> None:
    log = usage(seed, 200)
    for name in ("user", "client_id"):
        log = log._replace(uses=[use._replace(**{name: getattr(use, name) or "unnamed"}) for use in log.uses])
    found = quota_plan(log, [], at_most_throttled=0.0)
    assert [each.judged.outcome.clients for each in found.recommended] == [[]] * len(found.recommended)
    loose = quota_plan(log, [], at_most_throttled=0.05)
    for variant in loose.recommended:
        charges = variant.judged.outcome.charges
        assert all(variant.judged.outcome.throttles(kind) <= 0.05 * charges[kind] for kind in (PRODUCE, REQUEST))


def test_one_greedy_client_gets_an_override_and_the_rest_a_lower_default() -> None:
    uses = [Charge(START_MS + 100 * n, "0", "", f"app-{n % 8}", PRODUCE, 100) for n in range(2000)]
    uses += [Charge(START_MS + 100 * n, "0", "", "batch", PRODUCE, 50_000) for n in range(2000)]
    log = Usage(sorted(uses), Counter(), [])
    simple, tight = quota_plan(log, [], at_most_throttled=0.0).recommended
    assert simple.advice[0].default > 700_000 and not simple.advice[0].overrides
    assert tight.advice[0].default < 1000 and list(tight.advice[0].overrides) == ["client-id=batch"]
    assert not simple.judged.outcome.clients and not tight.judged.outcome.clients
    assert tight.commands["turnstile"][1].startswith("turnstile quota set client-id=batch producer_byte_rate=")
    assert tight.commands["rehearsal"][1].startswith(
        "turnstile quota set --observe client-id=batch producer_byte_rate="
    )
    assert tight.commands["kafka"][0].endswith("--entity-type clients --entity-default")
    assert tight.commands["redpanda"][0].endswith("--default client-id")


def test_brokers_are_planned_apart() -> None:
    once = [Charge(START_MS + n, "0", "", "app", PRODUCE, 100) for n in range(100)]
    both = [*once, *(use._replace(broker="1") for use in once)]
    entity = entity_of({"client-id": "app"})
    one, two = (outcome(Usage(sorted(each), Counter(), []), {entity: {PRODUCE: 500}}) for each in (once, both))
    assert one.clients[0].throttles * 2 == two.clients[0].throttles
    assert demand(Usage(sorted(once), Counter(), []), PRODUCE, "client-id").levels.peaks == (
        demand(Usage(sorted(both), Counter(), []), PRODUCE, "client-id").levels.peaks
    )


def test_a_candidate_that_limits_no_client_of_the_log_is_noted() -> None:
    log = Usage([Charge(START_MS, "0", "alice", "app", PRODUCE, 100)], Counter(), [])
    entities = [
        {"user": "alice"}, {"user": None}, {"user": None, "client-id": "app"}, {"user": "alice", "client-id": None},
        {"user": "alicia"}, {"user": None, "client-id": "ap"},
    ]  # fmt: skip
    notes = quota_plan(log, [{entity_of(each): {PRODUCE: 1.0}} for each in entities]).notes
    assert [each for each in notes if each.startswith("No client")] == [
        "No client of this log is user=alicia: its quota limits nothing here.",
        "No client of this log is user=<default> client-id=ap: its quota limits nothing here.",
    ]


def read(tmp_path: Path, *lines: str) -> Usage:
    path = tmp_path / "requests.log"
    path.write_text("\n".join(lines) + "\n")
    return kafka_requests.read([str(path)])


def test_kafkas_request_log_is_read(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        produced(1000, sendTimeMs=2.0, responseQueueTimeMs=1.0),
        fetched(5000, client=None),
        fetched(0),
        created("a", 3),
        created("b", 4, error=36),
        deleted("a"),
        deleted("unknown"),
        produced(7, acks=0),
        fetched(10**6, replica=2, client="broker-2-fetcher-0"),
        line(27, {}, {}),
    )
    told = [(use.kind, use.client_id, use.amount) for use in log.uses if use.kind != REQUEST]
    assert told == [
        (PRODUCE, "app", 1000),
        (FETCH, "", 5000),
        (PRODUCE, "app", 7),
        (MUTATION, "app", 3),
        (MUTATION, "app", 3),
    ]
    assert sum(use.kind == REQUEST for use in log.uses) == 7, "Produce without acknowledgement is exempt"
    assert {use.user for use in log.uses} == {"alice"} and {use.broker for use in log.uses} == {"10.0.0.9"}
    assert next(use.at_ms for use in log.uses if use.amount == 1000) == START_MS - 3
    assert log.put_aside == {kafka_requests.BETWEEN_BROKERS: 2, kafka_requests.UNKNOWN_PARTITIONS: 1}


def test_mutations_that_the_controller_logs_again_count_once(tmp_path: Path) -> None:
    log = read(tmp_path, created("a", 3), created("a", 3, isForwarded=True))
    assert [use.amount for use in log.uses if use.kind == MUTATION] == [3]
    assert log.put_aside == {kafka_requests.TWICE: 1}


def test_lines_of_json_are_read(tmp_path: Path) -> None:
    _, _, text = produced(9).partition("DEBUG ")
    message = text.removesuffix(" (kafka.request.logger)")
    stamped = [
        {"@timestamp": "2026-01-05T08:00:00.250Z"},
        {"timeMillis": START_MS + 500},
        {"timestamp": "2026-01-05T10:00:00,750+02:00"},
    ]
    log = read(tmp_path, *(json.dumps({**each, "message": message}) for each in stamped))
    assert [use.at_ms - START_MS for use in log.uses if use.kind == PRODUCE] == [250, 500, 750]


def test_bad_lines_are_put_aside_with_their_reason(tmp_path: Path) -> None:
    whole = produced(9)
    log = read(
        tmp_path, whole, whole[:300], "[2026-01-05 08:00:00,000] INFO started (kafka.server.KafkaServer)",
        whole.partition(" DEBUG ")[2], whole.replace('"localTimeMs"', '"other"'), "{", '{"message":1}',
        "Completed request:[[[[", "[2026-99-99 08:00:00,000] DEBUG Completed request:{}",
    )  # fmt: skip
    assert len(log.uses) == 2
    assert log.put_aside == {
        kafka_requests.NO_JSON: 2, kafka_requests.NO_MARK: 3, kafka_requests.NO_TIME: 2, kafka_requests.NOT_A_REQUEST: 1,
    }  # fmt: skip


@pytest.mark.parametrize("number", ["-1", "NaN", "1e400", "true", '"5"', str(1 << 31), str(10**30)])
@pytest.mark.parametrize("field", ['"localTimeMs":', '"sendTimeMs":', '"recordsSizeInBytes":'])
def test_a_number_that_cannot_be_is_put_aside(tmp_path: Path, field: str, number: str) -> None:
    before, _, after = produced(9).partition(field)
    impossible = before + field + number + after[re.search("[,}]", after).start() :]  # type: ignore[union-attr]
    log = read(tmp_path, produced(9), impossible)
    assert len(log.uses) == 2 and log.put_aside == {kafka_requests.IMPOSSIBLE: 1}


def test_a_time_at_which_no_broker_wrote_such_a_log_is_put_aside(tmp_path: Path) -> None:
    lines = [produced(9).replace("2026-", year) for year in ("2026-", "1994-", "2199-")]
    log = read(tmp_path, *lines)
    assert len(log.uses) == 2 and log.put_aside == {kafka_requests.IMPOSSIBLE: 2}


def test_a_client_id_that_is_no_text_and_a_principal_without_a_type_are_no_request(tmp_path: Path) -> None:
    numbered = produced(9).replace('"clientId":"', '"clientId":5,"other":"')
    log = read(tmp_path, produced(9), numbered, produced(9).replace('"principal":"User:', '"principal":"'))
    assert len(log.uses) == 2 and log.put_aside == {kafka_requests.NOT_A_REQUEST: 2}


def test_a_log_of_nothing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"None of the 1 lines .* not a line of kafka.request.logger.*DEBUG"):
        read(tmp_path, "hello")
    with pytest.raises(PipelineError, match=r"There is nothing in .*: no line"):
        read(tmp_path, "")
    with pytest.raises(NoInput, match=r"There is no .*absent"):
        kafka_requests.read([str(tmp_path / "absent")])


@given(st.text(max_size=60), st.integers(0, 400))
def test_no_line_is_a_traceback(noise: str, cut: int) -> None:
    import tempfile

    whole = produced(9)
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8") as file:
        file.write(f"{whole}\n{whole[:cut]}{noise}{whole[cut:]}\n{noise}\n")
        file.flush()
        assert kafka_requests.read([file.name]).uses


def test_the_command_says_it_in_words_pictures_and_json(tmp_path: Path) -> None:
    path = tmp_path / "requests.log"
    path.write_text(
        "\n".join(produced(5000, at_ms=START_MS + 100 * n, client=f"app-{n % 9}") for n in range(400)) + "\n"
    )
    page_at = tmp_path / "quotas.html"
    words = ["--quotas", "--input", str(path), "--format", "kafka-requests", "--by", "client-id"]
    candidate = ["--quota", "client-id=<default> producer_byte_rate=100; client-id=app-1 producer_byte_rate=1000000"]
    done = CliRunner().invoke(plan, [*words, *candidate, "--html", str(page_at)])
    assert done.exit_code == 0, done.output
    assert "client-id=app-2:" in done.stdout and "client-id=app-1:" not in done.stdout
    assert (
        "kafka-configs.sh" in done.stdout
        and "rpk cluster quotas alter" in done.stdout
        and "turnstile quota set" in done.stdout
    )
    text = page_at.read_text()
    assert "Needed: producer_byte_rate" in text and "<svg" in text and "app-2" in text
    said = json.loads(CliRunner().invoke(plan, [*words, *candidate, "--json"]).stdout)
    assert said["candidates"][0]["throttled"][0]["throttles"] > 0
    assert set(said["recommended"]) >= {"simple"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--format", "redpanda-requests", "--quotas"], "Redpanda logs no sizes of requests"),
        (["--format", "kafka-requests"], "need --quotas"),
        (["--format", "zeek", "--quotas"], "zeek has connections"),
        (["--format", "kafka-requests", "--quotas", "--per-ip-cap", "5"], "--per-ip-cap does not go with --quotas"),
        (["--format", "kafka-requests", "--quotas", "--quota", "client-id=app"], "sets no quota"),
        (["--format", "kafka-requests", "--quotas", "--quota", "app producer_byte_rate=1"], "'app' is not of the form"),
        (["--format", "kafka-requests", "--quotas", "--quota", "client-id=a producer_byte_rate=0"], "greater than 0"),
        (["--format", "kafka-requests", "--quotas", "--quota", "ip=10.0.0.1 producer_byte_rate=1"], "ip has no client quota"),
        (["--format", "kafka-requests", "--quotas", "--quota", "client-id='a producer_byte_rate=1"], "no closing quotation"),
        (["--format", "kafka-requests", "--quotas", "--quota", "group=a producer_byte_rate=1"], "Unhandled client quota entity"),
        (["--format", "kafka-requests", "--quotas", "--master", "local[2]"], "--master does not go with --quotas"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence(tmp_path: Path, words: list[str], why: str) -> None:
    path = tmp_path / "requests.log"
    path.write_text(produced(1) + "\n")
    done = CliRunner().invoke(plan, ["--input", str(path), *words])
    assert done.exit_code in (1, 2) and why in done.output, done.output
    assert "Traceback" not in done.output


def test_names_of_clients_are_escaped_on_the_page() -> None:
    hostile = "<script>alert(1)</script>"
    log = Usage(
        [Charge(START_MS + n, "0", hostile, hostile, PRODUCE, 10**6) for n in range(50)], Counter({"<b>": 1}), []
    )
    found = quota_plan(log, [{default_of("user"): {PRODUCE: 1000.0}}])
    assert hostile not in page(found, of=hostile) and "&lt;script&gt;" in page(found, of=hostile)
    assert lines(found)
    assert quota_logs.VALUES


def test_a_client_can_not_write_lines_of_the_plan() -> None:
    hostile = "app\n\n# simple, Turnstile\nturnstile down\x1b[2J"
    log = Usage([Charge(START_MS + n, "0", "", hostile, PRODUCE, 10**6) for n in range(50)], Counter(), [])
    found = quota_plan(log, [{default_of("client-id"): {PRODUCE: 1000.0}}])
    assert [line for line in lines(found) if "\n" in line and "client-id=app" not in line] == []


def test_commands_name_any_client_on_one_line() -> None:
    names = ["a b", "it's", "nl\nx", "\x1b[31m\\'é\u202e", "-dash", "$(id)"]
    for name in names:
        [line] = commands({entity_of({"client-id": name}): {PRODUCE: 1000.0}})["turnstile"]
        assert line.isprintable()
        echoed = subprocess.run(
            ["bash", "-c", f"printf '%s\\0' {line}"],
            capture_output=True,
            check=True,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        )
        assert echoed.stdout.decode().split("\0")[3] == f"client-id={name}"


def test_candidates_name_clients_with_spaces_and_semicolons() -> None:
    read = QuotaSpec().convert(
        "client-id='a b' producer_byte_rate=1; client-id=\"x;y\" producer_byte_rate=2", None, None
    )
    assert read == {entity_of({"client-id": "a b"}): {PRODUCE: 1.0}, entity_of({"client-id": "x;y"}): {PRODUCE: 2.0}}
