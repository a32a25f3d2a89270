"""Whether a topic's name as a whole matches an expression, in time that grows with the name alone (RE2's way).

The expression becomes a program of steps, many of which may be true at once; which they are after a name's beginning is a
state, and what follows a state and a character is remembered.

M1  A name is read once, from its first character to its last.
M2  At most MAX_STEPS steps and MAX_KNOWN transitions are kept of an expression.
"""

from __future__ import annotations

from broker.groups.consumer.character_sets import BIT, WORD
from broker.groups.consumer.re2_syntax import (
    ANY_OF,
    AT,
    BOUNDARY,
    CHARS,
    CONCAT,
    END,
    START,
    InvalidRegularExpression,
    Node,
    parse,
)

MAX_STEPS = 5000
"""What is longer when its repetitions are written out is refused."""
MAX_LENGTH = 20_000
"""Characters of an expression that is read at all."""
MAX_KNOWN = 10_000
_TAKE, _SPLIT, _ASSERT, _MATCH = range(4)
_Steps = frozenset[int]
_State = tuple[_Steps, str]
"""Steps that are to be followed, and the character before them, "" at the start."""


class TopicPattern:
    """A compiled expression. Raises InvalidRegularExpression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._program: list[tuple[int, int, int]] = []  # (kind, operand, where it goes on); _SPLIT: both ways
        if len(text) > MAX_LENGTH:
            raise InvalidRegularExpression(f"it has more than {MAX_LENGTH} characters")
        self._emitted = 0
        self._emit(parse(text))
        self._add(_MATCH, 0)
        self._known: dict[tuple[_State, str], _State] = {}
        self._start: _State = (frozenset({0}), "")

    def matches(self, name: str) -> bool:
        state = self._start
        for character in name:
            after = self._known.get((state, character))
            if after is None:
                after = self._follow(state, character)
            if not after[0]:
                return False
            state = after
        return any(self._program[at][0] == _MATCH for at in self._closure(state, ""))

    def _follow(self, state: _State, character: str) -> _State:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        bit = BIT.get(character, 0)
        steps = [self._program[at] for at in self._closure(state, character)]
        after = frozenset(goes for kind, operand, goes in steps if kind == _TAKE and operand & bit), character
        self._known[state, character] = after
        return after

    def _closure(self, state: _State, behind: str) -> set[int]:
        """The steps that are reached without taking a character; `behind` is the next one, "" at the end."""
        steps, before = state
        seen: set[int] = set()
        waiting = [*steps]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, operand, goes = self._program[at]
            if kind == _SPLIT:
                waiting += (operand, goes)
            elif kind == _ASSERT and _holds(operand, before, behind):
                waiting.append(goes)
        return seen

    # --- compiling -----------------------------------------------------------------------------------------------------

    def _add(self, kind: int, operand: int) -> int:
        """A step that goes on with the next one; where it is."""
        at = len(self._program)
        if at >= MAX_STEPS:
            raise InvalidRegularExpression(f"it has more than {MAX_STEPS} steps")
        self._program.append((kind, operand, at + 1))
        return at

    def _aim(self, at: int, operand: int, goes: int) -> None:
        self._program[at] = (self._program[at][0], operand, goes)

    def _emit(self, node: Node) -> None:
        self._emitted += 1  # repetitions of nothing add no step
        if self._emitted > 4 * MAX_STEPS:
            raise InvalidRegularExpression(f"it has more than {MAX_STEPS} steps")
        kind = node[0]
        if kind == CHARS:
            self._add(_TAKE, node[1])
        elif kind == AT:
            self._add(_ASSERT, node[1])
        elif kind == CONCAT:
            for each in node[1]:
                self._emit(each)
        elif kind == ANY_OF:
            self._emit_alternatives(node[1])
        else:
            self._emit_repeat(node[1], node[2], node[3])

    def _emit_alternatives(self, nodes: tuple[Node, ...]) -> None:
        ends = []
        for node in nodes[:-1]:
            split = self._add(_SPLIT, 0)
            self._emit(node)
            ends.append(self._add(_SPLIT, 0))
            self._aim(split, split + 1, len(self._program))
        self._emit(nodes[-1])
        for end in ends:
            self._aim(end, len(self._program), len(self._program))

    def _emit_repeat(self, node: Node, least: int, most: int | None) -> None:
        for _ in range(least):
            self._emit(node)
        if most is None:
            split = self._add(_SPLIT, 0)
            self._emit(node)
            again = self._add(_SPLIT, 0)
            self._aim(again, split, split)
            self._aim(split, split + 1, len(self._program))
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._add(_SPLIT, 0))
            self._emit(node)
        for split in splits:
            self._aim(split, split + 1, len(self._program))


def _holds(place: int, before: str, behind: str) -> bool:
    if place == START:
        return not before
    if place == END:
        return not behind
    return (_is_word(before) != _is_word(behind)) == (place == BOUNDARY)


def _is_word(character: str) -> bool:
    return bool(BIT.get(character, 0) & WORD)
