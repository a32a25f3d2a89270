"""HTML pages that open without a network: their frame, headings and tables. Everything that comes from a journal is escaped."""

import re
from collections.abc import Collection, Sequence
from html import escape
from typing import NamedTuple

NOTHING = '<p class="none">Nothing of this kind happened.</p>'
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6875; --line: #d7dce2; --page: #fff; --card: #f6f7f9 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9aa5b1; --line: #3a434e; --page: #14181d; --card: #1c2229 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
  max-width: 900px; padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 2.2rem 0 .2rem }
.copied { display: grid; grid-template-columns: 1fr auto; align-items: center; gap: 0 .6rem; margin: .6rem 0 }
.copied h3 { font-size: .95rem; font-weight: 600; margin: 0 } .copied pre { grid-column: 1 / -1; margin: .3rem 0 }
button { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; padding: .15rem .7rem; cursor: pointer }
p { margin: .2rem 0 .6rem; color: var(--soft); overflow-wrap: anywhere } .none { font-style: italic }
.bars { margin-bottom: .8rem } .bars td { width: 99% } .bars td, .bars th:last-child { text-align: left }
.bars i { display: inline-block; height: 1.05em; vertical-align: -.2em } .bars th:first-child { white-space: nowrap }
.bars span { padding-left: .5em; color: var(--soft) } .bars td, .bars tbody th { border: 0; padding: .12rem .6rem }
@media (prefers-color-scheme: dark) {
  svg rect, svg path, svg polyline, svg polygon, svg circle, .bars i, .legend i, .cap, .badge { filter: brightness(1.4) } }
svg { width: 100%; min-width: 620px; height: auto; display: block } caption { text-align: left; color: var(--soft);
  font-size: 13px; padding: .2rem 0 } svg text { fill: var(--soft); font: 12px system-ui, sans-serif }
svg .ink { fill: var(--ink) } .grid { stroke: var(--line) } .mark { stroke: var(--soft); stroke-dasharray: 4 3 }
.badge { font-weight: 700; white-space: nowrap } .option { white-space: nowrap }
ul { margin: .3rem 0 .6rem; padding-left: 1.2rem } li { margin: .2rem 0 }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .1rem 1.2rem } a { color: inherit }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: 13px; color: var(--soft) }
.legend i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; vertical-align: -1px }
.scroll { overflow-x: auto; margin-bottom: .8rem } table { border-collapse: collapse; font-size: 13px; width: 100% }
th, td { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  font-variant-numeric: tabular-nums }
tbody th { color: inherit; font-weight: inherit } th.text, td.text { text-align: left; white-space: normal }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: break-word }
th { color: var(--soft); font-weight: 600 }
@media (max-width: 480px) {
  body { margin: 1rem auto } svg { min-width: 480px } th, td { font-size: 12px; padding: .25rem .3rem }
  thead th { white-space: normal } }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere }
"""

_COPY = """
const pre = this.parentElement.querySelector('pre'), done = () => { this.textContent = 'copied' };
const select = () => { getSelection().selectAllChildren(pre); document.execCommand('copy') && done() };
navigator.clipboard ? navigator.clipboard.writeText(pre.textContent).then(done, select) : select();
""".replace("\n", " ").strip()
"""Copies lines. Where the browser has no clipboard for this page, they are selected, and copied by the older command."""


_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]+")


def document(title: str, subtitle: str, sections: Sequence[str]) -> str:
    """A whole page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>{escape(title)}</h1><p>{escape(subtitle)}</p>\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def section(title: str, words: str, *bodies: str) -> str:
    """A heading, a sentence, and what follows (HTML)."""
    return f'<section id="{anchor(title)}"><h2>{escape(title)}</h2>{paragraph(words) if words else ""}{"".join(bodies)}</section>'


def preformatted(text: str) -> str:
    """Lines to copy."""
    return f"<pre>{escape(text).replace(',', ',<wbr>')}</pre>"


def copyable(title: str, text: str) -> str:
    """Lines to copy, with a title and a button that copies them."""
    button = f'<button type="button" onclick="{escape(_COPY)}">copy</button>'
    return f'<div class="copied"><h3>{escape(title)}</h3>{button}{preformatted(text)}</div>'


def paragraph(text: str) -> str:
    """A sentence or two."""
    return f"<p>{escape(text)}</p>"


class Badge(NamedTuple):
    """A verdict in its colour, as a cell of a table."""

    text: str
    colour: str

    def html(self) -> str:
        return f'<span class="badge" style="color:{self.colour}">{escape(self.text)}</span>'


def badge_line(text: str, colour: str, words: str) -> str:
    """A verdict in its colour, and a sentence."""
    return f"<p>{Badge(text, colour).html()} {_words(words)}</p>"


def contents(titles: Sequence[str]) -> str:
    """Links to sections of these titles."""
    links = (f'<li><a href="#{anchor(title)}">{escape(title)}</a></li>' for title in titles)
    return f'<nav aria-label="contents"><ul>{"".join(links)}</ul></nav>'


def anchor(title: str) -> str:
    """The anchor of a section of that title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def bullets(sentences: Sequence[str]) -> str:
    """A sentence each."""
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in sentences)}</ul>"


def table(rows: Sequence[Sequence[object]], *, caption: str, text: Collection[object] = ()) -> str:
    """The first row is the heading, the first column names each row. `text`: the headings of columns that are words; the others
    are numbers."""
    if len(rows) < 2:
        return NOTHING
    kinds = [' class="text"' if name in text else "" for name in rows[0]]
    head = "".join(f'<th scope="col"{kind}>{escape(str(cell))}</th>' for kind, cell in zip(kinds, rows[0], strict=True))
    body = "".join(f"<tr>{_row(row, kinds)}</tr>" for row in rows[1:])
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[object], kinds: Sequence[str]) -> str:
    cells = "".join(f"<td{kind}>{_cell(cell)}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True))
    return f'<th scope="row">{_cell(row[0])}</th>{cells}'


def _cell(cell: object) -> str:
    return cell.html() if isinstance(cell, Badge) else _words(str(cell))


def _words(text: str) -> str:
    """Text in which the name of an option is not broken into two lines."""
    return _OPTION.sub(r'<span class="option">\g<0></span>', escape(text))
