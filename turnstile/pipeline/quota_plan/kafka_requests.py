"""Kafka's request log: the lines of its logger `kafka.request.logger` at DEBUG, as brokers from 2.7 on write them.

    [2026-11-24 10:00:00,123] DEBUG Completed request:{"isForwarded":false,"requestHeader":{...},"request":{...},"response":{...},
    "connection":"10.0.0.9:9092-10.0.0.1:51234-0-7",...,"localTimeMs":0.4,...,"principal":"User:alice",...} (kafka.request.logger)

A line of JSON with that text in it as its `message`, and a time (@timestamp, timestamp, time, timeMillis), is read as well.

charged_before_the_answer  A charge is placed at the time of its line, less `sendTimeMs` and `responseQueueTimeMs`: the log is
    written after the answer.
size_is_that_of_the_records  The log has no size of a request, only that of its records (`recordsSizeInBytes`). A broker charges
    some hundred bytes a request more; these are left out.
request_time_is_that_of_the_handler  Handler time is `localTimeMs`. The time of the network thread, which Kafka counts as well,
    is not in the log.
brokers_are_not_charged  What brokers send to each other is not charged; nor is Produce without acknowledgement, by request
    time.
throttled_fetch_counts_once  A Fetch that was throttled was answered without records, and counts when it is asked again.
mutations_are_partitions  Of CreateTopics the partitions that were created count; of DeleteTopics those that an earlier line
    tells. Brokers forward both to the controller, which logs them again: where any is forwarded, only those are taken.

Source: RequestChannel.updateRequestMetrics, RequestConvertToJson (Apache Kafka).
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from shards.limits.client_quota_managers import FETCH, MUTATION, PRODUCE, REQUEST
from turnstile.pipeline.errors import NoInput, PipelineError
from turnstile.pipeline.quota_plan.usage import Charge, Usage, in_order

_PRODUCE, _FETCH, _CREATE_TOPICS, _DELETE_TOPICS, _CREATE_PARTITIONS, _SHARE_FETCH = 0, 1, 19, 20, 37, 78
_BETWEEN_BROKERS: Final = frozenset((4, 5, 6, 7, 27, 52, 53, 54, 55, 56, 58, 59, 62, 63, 67, 70, 73, 82))
_ADD_PARTITIONS_TO_TXN, _BATCHED_SINCE = 24, 4
_STRICT_SINCE = {_CREATE_TOPICS: 6, _DELETE_TOPICS: 5, _CREATE_PARTITIONS: 3}
_MARK: Final = "Completed request:"
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)[.,](\d{3})\d*(Z|[+-]\d\d:?\d\d)?")
_TIME_FIELDS = ("@timestamp", "timestamp", "time", "timeMillis", "ts")
_decoder = json.JSONDecoder()
_TIMES: Final = range(1_577_836_800_000, 4_102_444_800_000)
"""The times from 2020, the year of the first broker that writes such a log, to 2100."""
_MOST: Final = (1 << 31) - 1
"""Bytes of a request, partitions, or milliseconds that one takes: Kafka counts all of them in 32 bits, times aside."""

NO_MARK = "not a line of kafka.request.logger"
NO_TIME = "a line without a time"
NO_JSON = "a request that is not whole JSON: the logger is not at DEBUG, or the line was cut"
IMPOSSIBLE = (
    "a request with a number that can't be: negative, text, not finite, too large, or a time before 2020 or after 2100"
)
NOT_A_REQUEST = "a request without requestHeader, principal or localTimeMs, as brokers before 2.7 write"
BETWEEN_BROKERS = "what brokers send to each other"
UNKNOWN_PARTITIONS = "partitions added or deleted whose number the log does not tell"
TWICE = "mutations that the controller logged again"
NOTES = (
    "Bytes are those of records: Kafka's log has no size of a request, which is some hundred bytes more.",
    "Handler time is localTimeMs: the time of network threads, which Kafka counts as well, is not in its log.",
    "Times without a zone are read as UTC.",
)


def read(paths: Sequence[str]) -> Usage:
    """The charges of request logs: files, folders and globs, gzip or not. Raises NoInput, or PipelineError when nothing in them
    can be used."""
    bad: Counter[str] = Counter()
    uses: list[Charge] = []
    mutations: dict[bool, list[Charge]] = {False: [], True: []}
    topics: dict[str, int] = {}
    for line in _lines(paths):
        at_ms, text = _placed(line)
        if text is None:
            bad[NO_MARK] += 1
            continue
        try:
            request = _decoder.raw_decode(text)[0]
        except (ValueError, RecursionError):
            bad[NO_JSON] += 1
            continue
        if at_ms is None:
            bad[NO_TIME] += 1
            continue
        try:
            _charges(request, at_ms, uses, mutations, topics, bad)
        except _Impossible:
            bad[IMPOSSIBLE] += 1
        except (KeyError, TypeError, ValueError, AttributeError):
            bad[NOT_A_REQUEST] += 1
    forwarded = bool(mutations[True])
    bad[TWICE] += len(mutations[False]) if forwarded else 0
    uses = in_order([*uses, *mutations[forwarded]])
    if not uses:
        raise PipelineError(_nothing(paths, +bad))
    return Usage(uses, +bad, list(NOTES))


def _nothing(paths: Sequence[str], bad: Counter[str]) -> str:
    where = ", ".join(paths)
    if not bad:
        return f"There is nothing in {where}: no line."
    reason, count = bad.most_common(1)[0]
    return (
        f"None of the {bad.total():,} lines of {where} can be used as Kafka's request log; {count:,} of them: {reason}. "
        "Brokers write it with log4j's logger kafka.request.logger at DEBUG."
    )


def _lines(paths: Sequence[str]) -> Iterator[str]:
    for path in _files(paths):
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            try:
                for line in file:
                    if not line.isspace():
                        yield line
            except (OSError, EOFError) as error:
                raise PipelineError(f"{path} can't be read to its end: {error}") from None


def _files(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if each.is_file())
        elif path.is_file():
            files = [path]
        else:
            files = sorted(each for each in path.parent.glob(path.name) if each.is_file()) if path.name else []
        if not files:
            raise NoInput(f"There is no {text}.")
        found += files
    return found


class _LoggedRequest(NamedTuple):
    """The time at which a request was logged, in epoch ms, and its JSON; None for what a line does not have."""

    at_ms: int | None
    text: str | None


def _placed(line: str) -> _LoggedRequest:
    if line.startswith("{"):
        try:
            whole = json.loads(line)
        except (ValueError, RecursionError):
            whole = None
        if isinstance(whole, dict):
            message = next((each for each in whole.values() if isinstance(each, str) and _MARK in each), None)
            if message is None:
                return _LoggedRequest(None, line if "requestHeader" in whole else None)
            return _LoggedRequest(_time_of(whole), message.partition(_MARK)[2].lstrip())
    before, mark, text = line.partition(_MARK)
    return _LoggedRequest(_instant(before), text.lstrip()) if mark else _LoggedRequest(None, None)


def _time_of(fields: dict[str, object]) -> int | None:
    for name in _TIME_FIELDS:
        value = fields.get(name)
        if isinstance(value, str):
            return _instant(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value if value > 1e11 else value * 1000)
    return None


def _instant(text: str) -> int | None:
    """Epoch milliseconds of the first time in a text."""
    found = _TIME.search(text)
    if found is None:
        return None
    try:
        whole = datetime.fromisoformat(found[1].replace(" ", "T") + (found[3] or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    whole = whole if whole.tzinfo else whole.replace(tzinfo=UTC)
    return int(whole.timestamp()) * 1000 + int(found[2])


def _charges(
    request: Any,
    logged_ms: int,
    uses: list[Charge],
    mutations: dict[bool, list[Charge]],
    topics: dict[str, int],
    bad: Counter[str],
) -> None:
    """Adds the charges of one request. Raises _Impossible for one with a number that can't be; KeyError, TypeError, ValueError or
    AttributeError for what is none."""
    header, body = request["requestHeader"], request["request"] or {}
    key, version = int(header["requestApiKey"]), int(header["requestApiVersion"])
    spent_ms = _number(request["localTimeMs"])
    if _is_between_brokers(key, version, body):
        bad[BETWEEN_BROKERS] += 1
        return
    after_ms = _number(request.get("sendTimeMs", 0)) + _number(request.get("responseQueueTimeMs", 0))
    broker = str(request["connection"]).partition("-")[0].rpartition(":")[0]
    client_id, (kind, user) = header.get("clientId") or "", request["principal"].split(":", 1)
    if not (kind and isinstance(client_id, str)):
        raise ValueError
    if logged_ms not in _TIMES:
        raise _Impossible
    same = (int(logged_ms - after_ms), broker, user, client_id)
    answer = request.get("response") or {}
    if key == _PRODUCE:
        uses.append(Charge(*same, PRODUCE, _record_bytes(body.get("topicData", ()), "partitionData")))
    elif key in (_FETCH, _SHARE_FETCH) and (size := _record_bytes(answer.get("responses", ()), "partitions")):
        uses.append(Charge(*same, FETCH, size))
    elif key in _STRICT_SINCE:
        strict = version >= _STRICT_SINCE[key]
        counts, unknown = _mutated(key, body, answer, topics)
        bad[UNKNOWN_PARTITIONS] += unknown
        mutations[bool(request.get("isForwarded"))] += [Charge(*same, MUTATION, count, strict) for count in counts]
    if not (key == _PRODUCE and body.get("acks") == 0):
        uses.append(Charge(*same, REQUEST, spent_ms))


def _is_between_brokers(key: int, version: int, body: Any) -> bool:
    if key == _FETCH:
        replica = (
            body.get("replicaState", {}).get("replicaId", -1) if "replicaState" in body else body.get("replicaId", -1)
        )
        return int(replica) >= 0
    return key in _BETWEEN_BROKERS or (key == _ADD_PARTITIONS_TO_TXN and version >= _BATCHED_SINCE)


def _record_bytes(topics: Iterable[Any], partitions: str) -> int:
    """The bytes of the records of all partitions."""
    return sum(_count(each.get("recordsSizeInBytes") or 0) for topic in topics for each in topic.get(partitions, ()))


class _Impossible(ValueError):
    """A number of a request that can't be."""


def _number(value: object, *, least: float = 0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _MOST:
        raise _Impossible
    return value


def _count(value: object, *, least: int = 0) -> int:
    return int(_number(value, least=least))


class _Mutations(NamedTuple):
    """Partitions of each topic that was created or deleted, and how many topics there are of which that is not told."""

    counts: list[int]
    unknown: int


def _mutated(key: int, body: Any, answer: Any, topics: dict[str, int]) -> _Mutations:
    """`topics`: partitions of those created."""
    done = {
        each["name"]: each
        for each in answer.get("topics", answer.get("responses", answer.get("results", ()))) or ()
        if each.get("errorCode") == 0 and each.get("name") is not None
    }
    counts: list[int] = []
    if key == _CREATE_TOPICS:
        for topic in body.get("topics", ()):
            if topic["name"] in done:
                answered = _count(done[topic["name"]].get("numPartitions", -1), least=-1)
                asked = _count(topic.get("numPartitions", -1), least=-1)
                count = answered if answered > 0 else asked if asked > 0 else len(topic.get("assignments", ())) or 1
                topics[topic["name"]] = count
                counts.append(count)
        return _Mutations(counts, 0)
    unknown = 0
    for name in done:
        if key == _DELETE_TOPICS and name in topics:
            counts.append(topics.pop(name))
        elif key == _CREATE_PARTITIONS and name in topics:
            wanted = next(
                (_count(each["count"]) for each in body.get("topics", ()) if each["name"] == name), topics[name]
            )
            counts.append(max(wanted - topics[name], 0))
            topics[name] = wanted
        else:
            unknown += 1
    return _Mutations(counts, unknown)
