"""The source of `read(b, i, end) -> (instance, i)`, which reads a structure, compiled by broker/wire/codec.py."""

import struct

from broker.wire.primitives import MAX_STRING_BYTES
from broker.wire.shapes import FIXED, Field, Shape

FROM_WIRE = {
    "timedelta_i32": "to_timedelta",
    "timedelta_i64": "to_timedelta",
    "datetime_i64": "to_datetime",
    "uuid": "to_uuid",
}


class ReaderSource:
    """The source of a reader: b is the buffer, i the place in it, n a length, -1 for null, and j the end of a value."""

    def __init__(self, shape: Shape) -> None:
        self.flexible = shape.flexible
        self.plain = shape.plain
        self.tagged = shape.tagged
        self.names = shape.names

    def lines(self) -> list[str]:
        lines = ["def read(b, i, end):", "    self = new(cls)"]
        run: list[Field] = []
        for field in self.plain:
            if field.kind in FIXED and not field.array:
                run.append(field)
                continue
            lines += self._read_run(run)
            run = []
            lines += self._read(field, "    ")
        lines += self._read_run(run)
        for field in self.tagged:
            lines.append(f"    self.{field.name} = D_{field.name}")
        if self.tagged:
            lines += self._read_tagged()
        elif self.flexible:
            lines += ["    if b[i]: i = skip_tags(b, i, end)", "    else: i += 1"]
        return [*lines, "    return self, i"]

    def _read_run(self, run: list[Field]) -> list[str]:
        """Neighbouring fields of fixed size, in one unpacking."""
        if not run:
            return []
        shape = struct.Struct(">" + "".join(FIXED[field.kind] for field in run))
        name = f"U_{run[0].name}"
        self.names[name] = shape.unpack_from
        targets = "".join(f"self.{field.name}, " for field in run)
        lines = [f"    {targets}= {name}(b, i); i += {shape.size}"]
        converted = [field for field in run if field.kind in FROM_WIRE]
        return lines + [f"    self.{field.name} = {FROM_WIRE[field.kind]}(self.{field.name})" for field in converted]

    def _read_tagged(self) -> list[str]:
        lines = [
            "    count = b[i]; i += 1",
            "    if count > 127: count, i = read_uvarint(b, count, i)",
            "    if count > FREE_TAGS: claim_tags(count)",
            "    for _ in range(count):",
            "        tag, i, stop = read_tag(b, i, end)",
        ]
        for branch, field in zip(["if"] + ["elif"] * len(self.tagged), self.tagged, strict=False):
            lines.append(f"        {branch} tag == {field.tag}:")
            lines += self._read(field, " " * 12)
            lines.append("            if i != stop: malformed('a tagged field of another length than it says')")
        return [*lines, "        i = stop"]

    def _length(self, field: Field, legacy: str, indent: str) -> list[str]:
        """Statements that leave the length in n; -1 is null. `legacy` is the struct format of the old encoding."""
        if self.flexible:
            return [f"{indent}n = b[i]; i += 1", f"{indent}if n > 127: n, i = read_uvarint(b, n, i)", f"{indent}n -= 1"]
        size = struct.calcsize(legacy)
        return [f"{indent}n = unpack_from('>{legacy}', b, i)[0]; i += {size}"]

    def _null(self, field: Field, indent: str) -> list[str]:
        if field.nullable:
            return [f"{indent}if n < 0: self.{field.name} = None"]
        return [f"{indent}if n < 0: malformed('{field.name} is null')"]

    def _read(self, field: Field, indent: str) -> list[str]:
        if field.array:
            lines = [*self._length(field, "i", indent), *self._null(field, indent), f"{indent}else:"]
            return lines + self._read_items(field, indent + "    ")
        return self._read_one(field, f"self.{field.name}", indent)

    def _read_items(self, field: Field, indent: str) -> list[str]:
        if field.kind in FIXED:
            size = struct.calcsize(">" + FIXED[field.kind])
            convert = FROM_WIRE.get(field.kind)
            values = f"unpack_from('>' + '{FIXED[field.kind]}' * n, b, i)"
            if FIXED[field.kind] != "16s":
                values = f"unpack_from(f'>{{n}}{FIXED[field.kind]}', b, i)"
            return [
                f"{indent}if n > (end - i) // {size}: malformed('{field.name} has more items than bytes')",
                f"{indent}if end > COUNT_ITEMS_ABOVE_BYTES: ITEMS.claim(n)",
                f"{indent}self.{field.name} = {f'tuple(map({convert}, {values}))' if convert else values}",
                f"{indent}i += n * {size}",
            ]
        least = self.names[f"T_{field.name}"].least_size_bytes if field.kind == "entity" else 1
        return [
            f"{indent}if n > (end - i) // {max(least, 1)}: malformed('{field.name} has more items than bytes')",
            f"{indent}if end > COUNT_ITEMS_ABOVE_BYTES: ITEMS.claim(n)",
            f"{indent}items = []",
            f"{indent}for _ in range(n):",
            *self._read_one(field._replace(nullable=False), "item", indent + "    "),
            f"{indent}    items.append(item)",
            f"{indent}self.{field.name} = tuple(items)",
        ]

    def _read_one(self, field: Field, target: str, indent: str) -> list[str]:
        if field.kind in FIXED:
            name = f"U_{field.name}"
            self.names[name] = struct.Struct(">" + FIXED[field.kind]).unpack_from
            convert = FROM_WIRE.get(field.kind, "")
            return [f"{indent}{target} = {convert}({name}(b, i)[0]); i += {struct.calcsize('>' + FIXED[field.kind])}"]
        if field.kind == "entity":
            read = f"{target}, i = T_{field.name}.read(b, i, end)"
            if not field.nullable:
                return [f"{indent}{read}"]
            return [  # KIP-893: a marker byte, negative for null
                f"{indent}marker = b[i]; i += 1",
                f"{indent}if marker > 127: {target} = None",
                f"{indent}else: {read}",
            ]
        lines = self._length(field, "h" if field.kind == "string" else "i", indent)
        lines += [line.replace(f"self.{field.name}", target) for line in self._null(field, indent)]
        value = "str(b[i:j], 'utf-8')" if field.kind == "string" else "bytes(b[i:j])"
        too_long = f"n > {MAX_STRING_BYTES} or j > end" if field.kind == "string" and self.flexible else "j > end"
        return [
            *lines,
            f"{indent}else:",
            f"{indent}    j = i + n",
            f"{indent}    if {too_long}: malformed('{field.name} is longer than the message')",
            f"{indent}    {target} = {value}; i = j",
        ]
