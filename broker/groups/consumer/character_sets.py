"""Sets of characters as RE2 spells them, cut down to the characters that a topic's name may have.

Topic names are of 65 characters, so a set is an int with a bit for each: Unicode classes and the rest of the world come down
to which of them they contain.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable

ALPHABET = string.ascii_letters + string.digits + "._-"
BIT = {character: 1 << at for at, character in enumerate(ALPHABET)}
EVERY = (1 << len(ALPHABET)) - 1

CharacterSet = int


def of(member: Callable[[str], bool]) -> CharacterSet:
    return sum(bit for character, bit in BIT.items() if member(character))


def of_range(low: str, high: str, *, fold: bool) -> CharacterSet:
    """From `low` to `high`, both included; `fold`: letters of either case."""
    found = of(lambda each: low <= each <= high)
    return folded(found) if fold else found


def of_character(character: str, *, fold: bool) -> CharacterSet:
    found = BIT.get(character, 0)
    return found | BIT.get(character.swapcase(), 0) if fold else found


def folded(characters: CharacterSet) -> CharacterSet:
    return of(lambda each: bool(characters & (BIT[each] | BIT[each.swapcase()])))


WORD = of(lambda each: each.isalnum() or each == "_")
PERL = {"d": of(str.isdigit), "s": 0, "w": WORD}
POSIX = {
    "alnum": of(str.isalnum),
    "alpha": of(str.isalpha),
    "ascii": EVERY,
    "blank": 0,
    "cntrl": 0,
    "digit": of(str.isdigit),
    "graph": EVERY,
    "lower": of(str.islower),
    "print": EVERY,
    "punct": of(lambda each: each in "._-"),
    "space": 0,
    "upper": of(str.isupper),
    "word": WORD,
    "xdigit": of(lambda each: each in string.hexdigits),
}
_CATEGORIES = (
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd",
    "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
)  # fmt: skip
_SCRIPTS = (
    "Arabic", "Armenian", "Bengali", "Bopomofo", "Braille", "Cherokee", "Cyrillic", "Devanagari", "Ethiopic", "Georgian",
    "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hebrew", "Hiragana", "Inherited", "Kannada", "Katakana", "Khmer",
    "Lao", "Malayalam", "Mongolian", "Myanmar", "Oriya", "Runic", "Sinhala", "Syriac", "Tamil", "Telugu", "Thaana", "Thai",
    "Tibetan", "Yi",
)  # fmt: skip
"""Those whose letters no topic has; which scripts there are besides is not known here."""


def _of_category(name: str) -> CharacterSet:
    return of(lambda each: unicodedata.category(each).startswith(name))


UNICODE = {
    "Any": EVERY,
    "Latin": of(str.isalpha),
    "Common": of(lambda each: not each.isalpha()),
    **dict.fromkeys(_SCRIPTS, 0),
    **{name: _of_category(name) for name in _CATEGORIES},
}
