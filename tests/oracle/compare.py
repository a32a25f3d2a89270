"""`make oracle`: the same scenarios through Turnstile and through Kafka's own classes, answer for answer.

    python tests/oracle/compare.py [--scenarios 300] [--records 200] [--seed 1] [--length 400] [--write-golden]

Exit code 0: no difference. 1: a difference; the scenario lies in build/ and the first differing answer is printed.
2: the oracle can't be built here.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import oracle_golden
import oracle_kafka
from oracle_cases import CASES
from oracle_golden import Golden
from oracle_scenarios import Scenario, connection_scenario, record_scenario

from turnstile.replay.stream import replay

_KEPT = {"connections": 40, "records": 30}  # of the generated scenarios, this many become golden ones


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=300, help="generated connection scenarios")
    parser.add_argument("--records", type=int, default=200, help="generated record scenarios")
    parser.add_argument("--seed", type=int, default=1, help="of the first generated scenario; the others follow")
    parser.add_argument("--length", type=int, default=400, help="lines of a generated scenario")
    parser.add_argument(
        "--write-golden", action="store_true", help=f"keep cases and some scenarios in {oracle_golden.PATH.name}"
    )
    options = parser.parse_args()
    try:
        oracle_kafka.build()
    except oracle_kafka.OracleUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    scenarios = dict(CASES)
    seeds = range(options.seed, options.seed + options.scenarios)
    scenarios |= {f"connections-{seed}": connection_scenario(seed, options.length) for seed in seeds}
    seeds = range(options.seed, options.seed + options.records)
    scenarios |= {f"records-{seed}": record_scenario(seed, options.length) for seed in seeds}
    return _compare(scenarios, options.write_golden)


def _compare(scenarios: dict[str, Scenario], write_golden: bool) -> int:
    tally: Counter[str] = Counter()
    golden: list[Golden] = []
    differing = 0
    all_answers = oracle_kafka.answers(list(scenarios.values()))
    for number, ((name, lines), expected) in enumerate(zip(scenarios.items(), all_answers, strict=True), 1):
        actual = [json.loads(answer) for answer in replay(lines)]
        if actual != expected:
            differing += 1
            _report(name, lines, expected, actual)
        tally.update(_kind(line, answer) for line, answer in zip(_asking(lines), expected, strict=True))
        golden.append(Golden(name, lines, expected))
        if sys.stderr.isatty():
            print(f"\r{number} of {len(scenarios)} scenarios", end="", file=sys.stderr)
    print(f"\r{len(scenarios)} scenarios, {tally.total():,} answers, {differing} differing" + " " * 20)
    for kind, count in sorted(tally.items()):
        print(f"  {count:9,}  {kind}")
    if write_golden and not differing:
        kept = [one for one in golden if one.name in CASES or _is_kept(one.name, golden)]
        oracle_golden.write(kept)
        print(f"kept {len(kept)} in {oracle_golden.PATH.name}, {oracle_golden.PATH.stat().st_size:,} bytes")
    return 1 if differing else 0


def _is_kept(name: str, golden: list[Golden]) -> bool:
    kind, _, _ = name.partition("-")
    of_kind = [one.name for one in golden if one.name not in CASES and one.name.startswith(kind)]
    return name in of_kind[: _KEPT[kind]]


def _asking(lines: Scenario) -> list[dict[str, Any]]:
    """The events that get an answer."""
    return [event for event in map(json.loads, lines) if event["do"] in ("connect", "record")]


def _kind(event: dict[str, Any], answer: dict[str, Any]) -> str:
    if event["do"] == "record":
        return f"{event['quota']}: {answer['outcome']}" + (", throttled" if answer["throttle_ms"] else "")
    later = answer["at"] is not None and answer["at"] > event["at"]
    return (
        f"connect: {answer['outcome']}"
        + (f", {answer['reason']}" if answer["reason"] else "")
        + (", later" if later else "")
    )


def _report(name: str, lines: Scenario, expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> None:
    path = Path("build") / f"oracle-{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    for index, (event, kafka, ours) in enumerate(zip(_asking(lines), expected, actual, strict=False)):
        if kafka != ours:
            print(f"\n{path}, answer {index + 1}, to {json.dumps(event)}\n  Kafka:     {kafka}\n  Turnstile: {ours}")
            return
    print(f"\n{path}: Kafka gave {len(expected)} answers, Turnstile {len(actual)}")


if __name__ == "__main__":
    sys.exit(main())
