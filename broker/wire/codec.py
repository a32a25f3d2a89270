"""Compiles Kafka's message definitions, as kio's dataclasses state them, to plain Python readers and writers.

Why not kio's own: its native reader allocates as much as an array's length asks for, so twelve hostile bytes abort the
process, and its writer takes 12 us for the smallest produce response. A compiled class reads and writes in about a
third of that, and holds its own against any input:

readers_allocate_in_proportion  a reader never allocates more than a small multiple of the bytes it was given: lengths are
    checked against them, and of a long message it takes no more array items than it is allowed (primitives.ITEMS)
readers_raise_known_errors  a reader raises nothing but Malformed, struct.error, IndexError, UnicodeDecodeError or
    OverflowError
written_reads_back_by_kio  a written message is read back by kio as the same values; and the other way round

A compiled class has the fields of kio's, as ordinary attributes. Instances are made with keyword arguments. Durations
are `timedelta` and times `datetime | None` as in kio; on writing, whole milliseconds will do as well.
"""

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from functools import partial, partialmethod
from typing import Any

from broker.wire.codec_reader import ReaderSource
from broker.wire.codec_writer import WriterSource
from broker.wire.primitives import Buffer
from broker.wire.shapes import Shape

Dropped = Callable[[str, list[str]], None]
"""(class name, field names this version lacks) -> None; raises TypeError if no version has them."""
Absent = Callable[[str, str], object]
"""(class name, field name this version lacks) -> its default; raises AttributeError if no version has it."""


class Compiler:
    """Compiles the classes of one message.

    `dropped` is asked about fields given to a constructor that its version does not have, `absent` about those that are
    read; None: reading them is an AttributeError.
    """

    def __init__(self, dropped: Dropped, absent: Absent | None = None) -> None:
        self.compiled: dict[type, object] = {}
        self._dropped = dropped
        self._absent = absent

    def compile(self, entity: type) -> Any:
        """The plain class for kio's `entity`, with `read(buffer, at, end) -> (instance, at)` and `write(self, out)`."""
        if entity in self.compiled:
            return self.compiled[entity]
        shape = Shape(entity, self.compile)
        source = "\n".join([*_init_source(shape), *ReaderSource(shape).lines(), *WriterSource(shape).lines()])
        namespace = shape.names
        known: set[str] = set()  # names that this version lacks and another has
        namespace["dropped_before"] = known
        namespace["refuse_dropped"] = partial(self._refuse_dropped, entity.__name__, known)
        exec(compile(source, f"<codec {entity.__module__}.{entity.__name__}>", "exec"), namespace)
        names = tuple(field.name for field in shape.fields)
        made = type(
            entity.__name__,
            (Message,),
            {
                "__slots__": names,
                "__init__": namespace["init"],
                "read": staticmethod(namespace["read"]),
                "write": namespace["write"],
                "least_size_bytes": shape.least_size_bytes(),
                "field_names": names,
            },
        )
        if self._absent is not None:
            made.__getattr__ = partialmethod(_read_absent, self._absent)  # type: ignore[attr-defined]
        namespace["cls"] = made
        self.compiled[entity] = made
        return made

    def _refuse_dropped(self, class_name: str, known: set[str], given: dict[str, object]) -> None:
        self._dropped(class_name, list(given))
        known.update(given)


class Message:
    """The base of all compiled classes; two messages are equal if they are of one class and all their fields are equal."""

    __slots__ = ()
    field_names: tuple[str, ...]
    least_size_bytes: int
    throttle_time: timedelta | int
    """Of the responses that have one; as a number, milliseconds."""

    @staticmethod
    def read(buffer: Buffer, at: int, end: int) -> tuple[Any, int]:
        """The instance that begins at `at`, and where it ends (readers_raise_known_errors)."""
        raise NotImplementedError

    def write(self, out: Callable[[bytes], object]) -> None:
        """Gives its bytes to `out`, piece by piece."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, n) == getattr(other, n) for n in self.field_names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.field_names)})"


def _read_absent(self: Message, absent: Absent, name: str) -> object:
    """A field that this version lacks, asked for the first time: from then on it is an attribute of the class."""
    cls = type(self)
    if name.startswith("_") or name in cls.field_names:
        raise AttributeError(f"{cls.__name__} has no {name}")
    default = absent(cls.__name__, name)
    setattr(cls, name, default)
    return default


def _init_source(shape: Shape) -> list[str]:
    parameters, body = [], ["    if dropped and not dropped.keys() <= dropped_before: refuse_dropped(dropped)"]
    for field in shape.fields:
        default = shape.default(field)
        if default is dataclasses.MISSING:
            parameters.append(field.name)
        else:
            parameters.append(f"{field.name}=D_{field.name}")
        body.append(f"    self.{field.name} = {field.name}")
    keywords = f"*, {', '.join(parameters)}, " if parameters else ""
    return [f"def init(self, {keywords}**dropped):", *body]
