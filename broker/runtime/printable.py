"""Text that clients chose, made safe for a terminal: user names, client ids and topics may hold escape codes."""

from __future__ import annotations


def printable(text: str, *, newlines: bool = False) -> str:
    """`text` with every character that a terminal would obey, such as ESC, written as an escape (`\\x1b`).

    `newlines`: line ends stay, for text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or (newlines and c == "\n") else c.encode("unicode_escape").decode() for c in text
    )
