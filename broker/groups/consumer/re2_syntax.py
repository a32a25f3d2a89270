"""Regular expressions of SubscribedTopicRegex: RE2's syntax, read into a tree. What RE2 can't do is refused.

Python's own `re` goes back and tries again, so that a client's expression could keep a shard busy for hours; RE2, which
Kafka uses for this (KIP-848), does not, and has no back references and no looking ahead or behind.

A node is one of these, as a tuple:

    (CHARS, set)               one character of it
    (CONCAT, nodes)            one after the other; () is the empty string
    (ANY_OF, nodes)
    (REPEAT, node, least, most)  most None: no bound; greed does not matter, as only whole names match
    (AT, place)                START, END, BOUNDARY or NO_BOUNDARY

Source: RE2's syntax (github.com/google/re2/wiki/Syntax), of which com.google.re2j takes all that is here. Not known here:
scripts of Unicode that are rarely written (character_sets.py).
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from broker.groups.consumer.character_sets import (
    EVERY,
    PERL,
    POSIX,
    UNICODE,
    CharacterSet,
    folded,
    of_character,
    of_range,
)

CHARS, CONCAT, ANY_OF, REPEAT, AT = range(5)
START, END, BOUNDARY, NO_BOUNDARY = range(4)
MAX_REPEAT = 1000
MAX_DEPTH = 100
"""Groups within groups; RE2/J takes 1000."""
_REPETITION = re.compile(r"[*+?]|\{(\d{1,9})(,(\d{0,9}))?\}", re.ASCII)
_FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])", re.ASCII)
_NAMED = re.compile(r"\?P?<(\w+)>", re.ASCII)
_PLACES = {"A": START, "z": END, "b": BOUNDARY, "B": NO_BOUNDARY}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", re.ASCII)
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,8})\})", re.ASCII)
_PROPERTY = re.compile(r"([pP])(?:\{(\^?)(\w+)\}|(\w))", re.ASCII)
_POSIX = re.compile(r"\[:(\^?)(\w+):\]", re.ASCII)

Node: TypeAlias = tuple[Any, ...]


class InvalidRegularExpression(Exception):
    """The text is no expression that can be matched here; the message says why."""


def parse(text: str) -> Node:
    """Raises InvalidRegularExpression."""
    reader = _Reader(text)
    tree = reader.alternatives(0)
    if reader.at < len(text):
        raise InvalidRegularExpression("unexpected )")
    return tree


class _Reader:
    """`at`: what of `text` is read. `fold`: whether letters of either case match."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.fold = False
        self.names: set[str] = set()

    def _next(self) -> str:
        """The next character, "" at the end; it is not taken."""
        return self.text[self.at : self.at + 1]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def alternatives(self, depth: int) -> Node:
        """Up to the end or to a ")", which is not taken."""
        if depth > MAX_DEPTH:
            raise InvalidRegularExpression(f"groups are nested more than {MAX_DEPTH} deep")
        fold = self.fold
        branches: list[list[Node]] = [[]]
        while self._next() not in ("", ")"):
            if self._next() == "|":
                self.at += 1
                branches.append([])
            elif self.text.startswith(r"\Q", self.at):
                branches[-1] += self._quoted()
            else:
                branches[-1] += self._repeated(self._atom(depth))
        self.fold = fold
        nodes = [nodes[0] if len(nodes) == 1 else (CONCAT, tuple(nodes)) for nodes in branches]
        return nodes[0] if len(nodes) == 1 else (ANY_OF, tuple(nodes))

    def _quoted(self) -> list[Node]:
        end = self.text.find(r"\E", self.at)
        quoted = self.text[self.at + 2 : end if end >= 0 else None]
        self.at = end + 2 if end >= 0 else len(self.text)
        nodes = [self._literal(each) for each in quoted]
        return nodes[:-1] + self._repeated(nodes[-1]) if nodes else []

    def _repeated(self, node: Node | None) -> list[Node]:
        """The node with the repetition behind it, if there is one; None: of flags, which nothing is of."""
        before = self.at
        found = self._take(_REPETITION)
        if found is None:
            return [] if node is None else [node]
        if node is None:
            raise InvalidRegularExpression(f"nothing to repeat before {found[0]}")
        if self._next() == "?":
            self.at += 1
        if _REPETITION.match(self.text, self.at):
            raise InvalidRegularExpression(f"invalid nested repetition {self.text[before : self.at + 1]}")
        if found[1] is None:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0]]
        else:
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise InvalidRegularExpression(f"invalid repeat count {found[0]}")
        return [(REPEAT, node, least, most)]

    def _atom(self, depth: int) -> Node | None:
        if _REPETITION.match(self.text, self.at):
            raise InvalidRegularExpression(f"nothing to repeat before {self._next()}")
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return CHARS, self._class()
        self.at += 1
        if character == "\\":
            return self._escape()
        places = {"^": (AT, START), "$": (AT, END), ".": (CHARS, EVERY)}
        return places.get(character) or self._literal(character)

    def _literal(self, character: str) -> Node:
        return CHARS, of_character(character, fold=self.fold)

    def _group(self, depth: int) -> Node | None:
        self.at += 1
        fold = self.fold
        if (named := self._take(_NAMED)) is not None:
            if named[1] in self.names:
                raise InvalidRegularExpression(f"two groups are named {named[1]}")
            self.names.add(named[1])
        elif self._next() == "?":
            flags = self._take(_FLAGS)
            if flags is None:
                raise InvalidRegularExpression(f"invalid group ({self.text[self.at : self.at + 3]}")
            self.fold = ("i" in flags[1] or self.fold) and "i" not in (flags[2] or "")
            if flags[3] == ")":
                return None  # they hold until the group that they are in ends
        node = self.alternatives(depth + 1)
        if self._next() != ")":
            raise InvalidRegularExpression("missing )")
        self.at += 1
        self.fold = fold
        return node

    # --- escapes and classes -----------------------------------------------------------------------------------------

    def _escape(self) -> Node:
        if self._next() in _PLACES:
            place = _PLACES[self._next()]
            self.at += 1
            return AT, place
        found = self._shorthand()
        if found is not None:
            return CHARS, found
        return self._literal(self._escaped())

    def _shorthand(self) -> CharacterSet | None:
        r"""\d, \W, \pL and the like, behind their backslash; None: something else is there."""
        name = self._next()
        if name and name.lower() in PERL:
            self.at += 1
            return PERL[name] if name.islower() else EVERY & ~PERL[name.lower()]
        found = self._take(_PROPERTY)
        if found is None:
            return None
        wanted = found[3] or found[4]
        if wanted not in UNICODE:
            raise InvalidRegularExpression(f"unknown Unicode class {wanted}")
        characters = folded(UNICODE[wanted]) if self.fold else UNICODE[wanted]
        negated = (found[1] == "P") != (found[2] == "^")
        return EVERY & ~characters if negated else characters

    def _escaped(self) -> str:
        if (octal := self._take(_OCTAL)) is not None:
            return chr(int(octal[0], 8))
        if (hexadecimal := self._take(_HEX)) is not None:
            code = int(hexadecimal[1] or hexadecimal[2], 16)
            if code > 0x10FFFF:
                raise InvalidRegularExpression(rf"invalid escape \{hexadecimal[0]}")
            return chr(code)
        character = self._next()
        self.at += 1
        if character in _CONTROL:
            return _CONTROL[character]
        if not character:
            raise InvalidRegularExpression("a backslash ends the expression")
        if character.isalnum() or not character.isascii():
            raise InvalidRegularExpression(rf"invalid escape \{character}")
        return character

    def _class(self) -> CharacterSet:
        self.at += 1
        negated = self._next() == "^"
        self.at += negated
        found = 0
        first = True
        while first or self._next() != "]":
            first = False
            if not self._next():
                raise InvalidRegularExpression("missing ]")
            found |= self._class_part()
        self.at += 1
        return EVERY & ~found if negated else found

    def _class_part(self) -> CharacterSet:
        if (named := self._take(_POSIX)) is not None:
            if named[2] not in POSIX:
                raise InvalidRegularExpression(f"invalid class {named[0]}")
            characters = folded(POSIX[named[2]]) if self.fold else POSIX[named[2]]
            return EVERY & ~characters if named[1] else characters
        if self._next() == "\\":
            self.at += 1
            shorthand = self._shorthand()
            if shorthand is not None:
                return shorthand
            self.at -= 1
        low = self._class_character()
        high = low
        if self._next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            high = self._class_character()
        if high < low:
            raise InvalidRegularExpression(f"invalid range {low}-{high}")
        return of_range(low, high, fold=self.fold)

    def _class_character(self) -> str:
        character = self._next()
        self.at += 1
        if not character:
            raise InvalidRegularExpression("missing ]")
        return self._escaped() if character == "\\" else character
