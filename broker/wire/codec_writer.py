"""The source of `write(self, out)`, which gives to `out`, piece by piece, the bytes of a structure; compiled by codec.py."""

import struct

from broker.wire.primitives import MAX_STRING_BYTES
from broker.wire.shapes import FIXED, Field, Shape

TO_WIRE = {
    "timedelta_i32": "from_timedelta",
    "timedelta_i64": "from_timedelta",
    "datetime_i64": "from_datetime",
    "uuid": "from_uuid",
}


class WriterSource:
    """Neighbouring fields of fixed size are packed in one call. A text that is longer than a string may be is cut."""

    def __init__(self, shape: Shape) -> None:
        self.flexible = shape.flexible
        self.plain = shape.plain
        self.tagged = shape.tagged
        self.names = shape.names

    def lines(self) -> list[str]:
        lines = ["def write(self, out):"]
        run: list[Field] = []
        for field in self.plain:
            if field.kind in FIXED and not field.array:
                run.append(field)
                continue
            lines += self._write_run(run)
            run = []
            lines += self._write(field, "    ")
        lines += self._write_run(run)
        if self.tagged:
            lines += self._write_tagged()
        elif self.flexible:
            lines.append("    out(b'\\0')")
        return lines if len(lines) > 1 else [*lines, "    pass"]

    def _write_run(self, run: list[Field]) -> list[str]:
        if not run:
            return []
        name = f"P_{run[0].name}"
        self.names[name] = struct.Struct(">" + "".join(FIXED[field.kind] for field in run)).pack
        values = ", ".join(f"{TO_WIRE.get(field.kind, '')}(self.{field.name})" for field in run)
        return [f"    out({name}({values}))"]

    def _write_tagged(self) -> list[str]:
        """Fields at their default are left out, as Kafka does."""
        lines = ["    tags = []", "    outer = out"]
        for field in self.tagged:
            lines += [
                f"    if self.{field.name} is not D_{field.name} and self.{field.name} != D_{field.name}:",
                "        parts = []; out = parts.append",
                *self._write(field, " " * 8),
                f"        tags.append(({field.tag}, b''.join(parts)))",
            ]
        return [
            *lines,
            "    outer(uvarint(len(tags)))",
            "    for tag, payload in tags: outer(uvarint(tag) + uvarint(len(payload)) + payload)",
        ]

    def _write_length(self, length: str, legacy: str, indent: str) -> str:
        if self.flexible:
            return f"{indent}n = {length} + 1; out(ONE_BYTE[n] if n < 128 else uvarint(n))"
        return f"{indent}out(pack('>{legacy}', {length}))"

    def _write_null(self, legacy: str) -> str:
        return "out(b'\\0')" if self.flexible else f"out(pack('>{legacy}', -1))"

    def _write(self, field: Field, indent: str) -> list[str]:
        if not field.array:
            return self._write_one(field, f"self.{field.name}", indent)
        lines = [f"{indent}items = self.{field.name}"]
        if field.nullable:
            lines += [f"{indent}if items is None: {self._write_null('i')}", f"{indent}else:"]
            indent += "    "
        lines.append(self._write_length("len(items)", "i", indent))
        one = self._write_one(field._replace(nullable=False), "item", indent + "    ")
        return [*lines, f"{indent}for item in items:", *one]

    def _write_one(self, field: Field, source: str, indent: str) -> list[str]:
        if field.kind in FIXED:
            return [f"{indent}out(pack('>{FIXED[field.kind]}', {TO_WIRE.get(field.kind, '')}({source})))"]
        if field.kind == "entity":
            if not field.nullable:
                return [f"{indent}{source}.write(out)"]
            return [
                f"{indent}if {source} is None: out(b'\\xff')",
                f"{indent}else: out(b'\\x01'); {source}.write(out)",
            ]
        legacy = "h" if field.kind == "string" else "i"
        lines = [f"{indent}value = {source}"]
        if field.nullable:
            lines += [f"{indent}if value is None: {self._write_null(legacy)}", f"{indent}else:"]
            indent += "    "
        if field.kind == "string":
            lines.append(f"{indent}value = value.encode()")
            lines.append(f"{indent}if len(value) > {MAX_STRING_BYTES}: value = cut_text(value)")
        return [*lines, self._write_length("len(value)", legacy, indent), f"{indent}out(value)"]
