"""HTML pages that open without a network: their frame, headings and tables. Everything that comes from a journal is escaped."""

from collections.abc import Sequence
from html import escape

NOTHING = '<p class="none">Nothing of this kind happened.</p>'
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6875; --line: #d7dce2; --page: #fff; --card: #f6f7f9 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa5b1; --line: #3a434e; --page: #14181d; --card: #1c2229 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 900px; padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 2.2rem 0 .2rem }
p { margin: .2rem 0 .6rem; color: var(--soft) } .none { font-style: italic }
svg { width: 100%; min-width: 620px; height: auto; display: block } caption { text-align: left; color: var(--soft);
  font-size: 13px; padding: .2rem 0 } svg text { fill: var(--soft); font: 12px system-ui, sans-serif }
svg .ink { fill: var(--ink) } .grid { stroke: var(--line) } .mark { stroke: var(--soft); stroke-dasharray: 4 3 }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: 13px; color: var(--soft) }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; vertical-align: -1px }
.scroll { overflow-x: auto; margin-bottom: .8rem } table { border-collapse: collapse; font-size: 13px; width: 100% }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  font-variant-numeric: tabular-nums }
tbody th { color: inherit; font-weight: inherit } .text th, .text td { text-align: left; white-space: normal }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: break-word }
th { color: var(--soft); font-weight: 600 }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere }
"""


def document(title: str, subtitle: str, sections: Sequence[str]) -> str:
    """A whole page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1><p>{escape(subtitle)}</p>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def section(title: str, words: str, *bodies: str) -> str:
    """A heading, a sentence, and what follows (HTML)."""
    return f"<section><h2>{escape(title)}</h2><p>{escape(words)}</p>{''.join(bodies)}</section>"


def preformatted(text: str) -> str:
    """Lines to copy."""
    return f"<pre>{escape(text)}</pre>"


def table(rows: Sequence[Sequence[object]], *, caption: str = "", is_text: bool = False) -> str:
    """The first row is the heading, the first column names each row; the others are numbers, or with `is_text` text."""
    if len(rows) < 2:
        return NOTHING
    head = "".join(f'<th scope="col">{escape(str(cell))}</th>' for cell in rows[0])
    body = "".join(
        f'<tr><th scope="row">{escape(str(row[0]))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows[1:]
    )
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    kind = ' class="text"' if is_text else ""
    return f'<div class="scroll"><table{kind}>{named}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
