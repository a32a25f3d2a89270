"""Make a realistic connection log of any size from a seed, in a day's rhythm.

Clients are many ordinary ones (a few connections each, minutes to hours long), NAT gateways with hundreds of clients
behind one address, leaking clients whose connections pile up, and deploys that open everything at once. The same
arguments give the same log.

    python scripts/make_connlog.py --connections 1000000 --seed 7 --out conn.log                (Zeek TSV; .gz is compressed)
    python scripts/make_connlog.py --connections 50000000 --format parquet --out conns/
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy
import pyarrow
import pyarrow.parquet

DAY_S = 86_400
START_S = 1_767_571_200  # Monday, 5 January 2026, 00:00 UTC
CHUNK = 1_000_000
ROW_GROUP = 250_000
"""Rows of a Parquet row group, which is the least that one task reads."""
PORT = 9092
MIX = (("ordinary", 0.62), ("nat", 0.25), ("leak", 0.01), ("deploy", 0.12))
ZEEK_FIELDS = (
    "ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service", "duration", "orig_bytes",
    "resp_bytes", "conn_state",
)  # fmt: skip
Columns = dict[str, Any]


def chunks(connections: int, seed: int, *, ips: int, nats: int, leaks: int, days: float) -> Iterator[Columns]:
    """Chunks of ip (codes), port, opened_us, lasted_us, bytes, in order of opening."""
    random = numpy.random.default_rng(seed)
    total = -(-connections // CHUNK)
    span_s = DAY_S * days
    deploys = numpy.sort(random.uniform(0, span_s, size=max(1, int(days * 3))))
    weights = random.pareto(3.0, size=max(1, ips)) + 1
    weights /= weights.sum()
    for number in range(total):
        count = min(CHUNK, connections - number * CHUNK)
        # Each chunk is a slice of time, so that a log of any size comes out in order without being held.
        low, high = _when(number / total, span_s), _when((number + 1) / total, span_s)
        yield _chunk(random, count, low, high, span_s, ips, weights, nats, leaks, deploys)


def _when(share: float, span_s: float) -> float:
    """The instant by which that share of a diurnal load has come: busiest at 15:00, a third of that at 03:00."""
    grid = numpy.linspace(0, span_s, 2001)
    load = numpy.cumsum(1 - 0.5 * numpy.cos((grid / DAY_S - 0.125) * 2 * numpy.pi))
    return float(numpy.interp(share, (load - load[0]) / (load[-1] - load[0]), grid))


def _chunk(
    random: numpy.random.Generator, count: int, low: float, high: float, span_s: float, ips: int, weights: Any, nats: int,
    leaks: int, deploys: Any,
) -> Columns:  # fmt: skip
    kinds = random.choice(len(MIX), size=count, p=[share for _, share in MIX])
    opened = random.uniform(low, high, size=count)
    inside = deploys[(deploys >= low) & (deploys < high)]
    is_deploy = kinds == 3
    if len(inside):  # a deploy opens everything within seconds; outside one, its clients are ordinary ones
        opened[is_deploy] = random.choice(inside, size=int(is_deploy.sum())) + random.exponential(
            4, size=int(is_deploy.sum())
        )
    lasted = random.lognormal(5.5, 1.3, size=count)  # half of them under four minutes, a few for hours
    ip = random.choice(ips, size=count, p=weights)
    ip[kinds == 1] = ips + random.integers(0, max(1, nats), size=int((kinds == 1).sum()))
    is_leak = kinds == 2
    ip[is_leak] = ips + nats + random.integers(0, max(1, leaks), size=int(is_leak.sum()))
    lasted[is_leak] = span_s  # never closed while the log lasts
    order = numpy.argsort(opened, kind="stable")
    return {
        "ip": ip[order],
        "port": random.integers(32_768, 61_000, size=count)[order],
        "opened_us": ((START_S + opened) * 1e6).astype("i8")[order],
        "lasted_us": (lasted * 1e6).astype("i8")[order],
        "bytes": random.lognormal(9, 2, size=count).astype("i8")[order],
    }


def address(code: int, ips: int, nats: int) -> str:
    """The address of a client: 10/8 ordinary ones, 192.0.2/24 on NAT gateways, 198.51.100/24 on leaking ones."""
    if code < ips:
        return f"10.{code >> 16 & 255}.{code >> 8 & 255}.{code & 255}"
    code -= ips
    if code < nats:
        return f"192.0.{2 + (code >> 8)}.{code & 255}"
    code -= nats
    return f"198.51.{100 + (code >> 8)}.{code & 255}"


def write(out: Path, format: str, made: Iterator[Columns], names: list[str]) -> None:
    """All chunks to a file (zeek, json, csv; compressed by the ending .gz) or a folder (parquet)."""
    if format == "parquet":
        out.mkdir(parents=True, exist_ok=True)
        addresses = pyarrow.array(names)
        for number, chunk in enumerate(made):
            _write_parquet(out / f"part-{number:05d}.parquet", chunk, addresses)
        return
    writers = {"zeek": _zeek, "json": _json, "csv": _csv}
    opener = gzip.open if out.suffix == ".gz" else open
    with opener(out, "wt") as file:
        writers[format](file, made, names)


def _write_parquet(path: Path, chunk: Columns, addresses: pyarrow.Array) -> None:
    # Only the addresses of this chunk: a dictionary is written whole, and there may be a million of them.
    codes, indices = numpy.unique(chunk["ip"], return_inverse=True)
    ips = pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices.astype("i4")), addresses.take(pyarrow.array(codes)))
    opened = pyarrow.array(chunk["opened_us"])
    stamp = pyarrow.timestamp("us", tz="UTC")
    closed = pyarrow.array(chunk["opened_us"] + chunk["lasted_us"])
    table = pyarrow.table(
        {
            "ip": ips,
            "port": pyarrow.array(chunk["port"].astype("i4")),
            "opened_at": opened.cast(stamp),
            "closed_at": closed.cast(stamp),
            "bytes": pyarrow.array(chunk["bytes"]),
        }
    )
    pyarrow.parquet.write_table(table, path, compression="zstd", compression_level=1, row_group_size=ROW_GROUP)


def _rows(made: Iterator[Columns], names: list[str]) -> Iterator[tuple[str, int, int, int, int]]:
    for chunk in made:
        columns = [chunk[name].tolist() for name in ("ip", "port", "opened_us", "lasted_us", "bytes")]
        for ip, *rest in zip(*columns, strict=True):
            yield (names[ip], *rest)


def _zeek(file: IO[str], made: Iterator[Columns], names: list[str]) -> None:
    file.write("#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n")
    file.write("#fields\t" + "\t".join(ZEEK_FIELDS) + "\n")
    for number, (ip, port, opened, lasted, size) in enumerate(_rows(made, names)):
        file.write(
            f"{_seconds(opened)}\tC{number:x}\t{ip}\t{port}\t10.255.0.1\t{PORT}\ttcp\tkafka\t{_seconds(lasted)}\t"
            f"{size}\t{size // 3}\tSF\n"
        )


def _json(file: IO[str], made: Iterator[Columns], names: list[str]) -> None:
    for number, (ip, port, opened, lasted, size) in enumerate(_rows(made, names)):
        row = {"ts": opened / 1e6, "uid": f"C{number:x}", "id.orig_h": ip, "id.orig_p": port, "id.resp_h": "10.255.0.1",
               "id.resp_p": PORT, "proto": "tcp", "duration": lasted / 1e6, "orig_bytes": size,
               "resp_bytes": size // 3, "conn_state": "SF"}  # fmt: skip
        file.write(json.dumps(row) + "\n")


def _csv(file: IO[str], made: Iterator[Columns], names: list[str]) -> None:
    file.write("ip,port,opened_at,closed_at,bytes\n")
    for ip, port, opened, lasted, size in _rows(made, names):
        file.write(f"{ip},{port},{_seconds(opened)},{_seconds(opened + lasted)},{size}\n")


def _seconds(micros: int) -> str:
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"


def main() -> None:
    """Arguments in, a log out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--ips", type=int, default=None, help="ordinary addresses  [default: a fiftieth of the connections]"
    )
    parser.add_argument("--nats", type=int, default=3, help="NAT gateways; they share a quarter of the connections")
    parser.add_argument("--leaks", type=int, default=2, help="leaking clients; they share a hundredth")
    parser.add_argument("--days", type=float, default=1.0)
    parser.add_argument("--format", choices=("zeek", "json", "csv", "parquet"), default="zeek")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    ips = given.ips or max(10, given.connections // 50)
    names = [address(code, ips, given.nats) for code in range(ips + given.nats + given.leaks)]
    made = chunks(given.connections, given.seed, ips=ips, nats=given.nats, leaks=given.leaks, days=given.days)
    write(given.out, given.format, made, names)
    print(f"{given.connections} connections of {len(names)} addresses in {given.out}")


if __name__ == "__main__":
    main()
