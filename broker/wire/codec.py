"""Compiles Kafka's message definitions, as kio's dataclasses state them, to plain Python readers and writers.

kio's own reader and writer are not used. Its native reader allocates whatever an array's length claims, so twelve hostile bytes
abort the process. Its writer takes 12 us for the smallest produce response; a compiled class takes about a third of that.

readers_allocate_in_proportion  A reader never allocates more than a small multiple of the bytes that it was given: it checks each
    length against them, and reads no more array items of a long message than it is allowed (primitives.ITEMS).
readers_raise_known_errors  A reader raises nothing but Malformed, struct.error, IndexError, UnicodeDecodeError or
    OverflowError.
written_reads_back_by_kio  kio reads a message that was written here as the same values, and the other way round.

A compiled class has the fields of kio's class, as ordinary attributes. Instances are made with keyword arguments. Durations are
`timedelta` and times `datetime | None`, as in kio; the writers also take whole milliseconds for both.
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

    `dropped` is called when a constructor is given fields that its version lacks, `absent` when such a field is read. Without
    `absent`, reading such a field raises AttributeError.
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
    """Only responses may have it. A number is in milliseconds."""

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
    """The default of a field that this version lacks. Called at its first read, which makes it an attribute of the class."""
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
