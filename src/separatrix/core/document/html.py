"""A document as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from separatrix.core.document.parts import Fold, Heading, Line, Part, Plot, Table
from separatrix.core.errors import printable

STATUSES = {"SOLVABLE": "solves", "FAILS": "fails", "OPEN": "open"}
"""Status -> its class in a page."""
STYLE = (
    ".separatrix table{border-collapse:collapse;margin:0 0 .6em}"
    ".separatrix th,.separatrix td{text-align:left;vertical-align:top;padding:.1em 1.2em .1em 0}"
    ".separatrix p{margin:.2em 0}.separatrix h3{margin:.8em 0 .3em;font-size:1em}"
    ".separatrix .solves{color:#1a73b8}.separatrix .fails{color:#d5560f}"
    ".separatrix .open{color:#8a6d00}.separatrix .scroll{overflow-x:auto}"
)
Said = Callable[[str], str]
_ARXIV = re.compile(r"arXiv[: ]+(\d{4}\.\d{4,5})")
_STATUS = re.compile(rf"\b({'|'.join(STATUSES)})\b")


def document(parts: Iterable[Part], said: Said) -> str:
    """The elements of parts, one below the other, their texts as `said`."""

    def inline(text: str) -> str:
        return marked("\n".join(map(said, text.split("\n"))))

    def elements(part: Part) -> Iterator[str]:
        match part:
            case Heading():
                if part.text:
                    beside = f" <small>{inline(part.beside)}</small>" if part.beside else ""
                    yield f"<h3>{inline(part.text)}{beside}</h3>"
                elif part.beside:
                    yield f"<p>{inline(part.beside)}</p>"
            case Line():
                blanks = len(part.text) - len(part.text.lstrip())
                moved = f' style="margin-left:{blanks / 2:g}em"' if blanks else ""
                yield f"<p{moved}>{inline(part.text)}</p>"
            case Table():
                yield f'<div class="scroll"><table>{"".join(_rows(part, inline))}</table></div>'
            case Fold():
                opened = " open" if part.opened else ""
                line = "".join(f"<span>{inline(cell)}</span>" for cell in part.line)
                yield f"<details{opened}><summary>{line}</summary>"
                yield from (element for one in part.parts for element in elements(one))
                yield "</details>"
            case Plot(svg=""):
                yield f"<pre>{escape(chr(10).join(part.drawn))}</pre>"
            case Plot():
                title, several, more = part.caption.partition("\n")
                above = f"<b>{inline(title)}</b> {inline(more)}" if several else inline(title)
                caption = f"<figcaption>{above}</figcaption>" if above else ""
                words = escape(printable(part.words), quote=True)
                drawing = f'<div role="img" aria-label="{words}">{part.svg}</div>'
                yield f"<figure>{caption}{drawing}</figure>"

    return "\n".join(element for part in parts for element in elements(part))


def _rows(table: Table, inline: Said) -> Iterator[str]:
    if table.columns:
        cells = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in table.columns)
        yield f"<thead><tr>{cells}</tr></thead>"
    width = max((len(row) for row in table.cells), default=1)
    for row in table.rows:
        if isinstance(row, str):
            yield f'<tr><th colspan="{width}" scope="rowgroup">{inline(row)}</th></tr>'
            continue
        first, *others = map(inline, row)
        label = f'<th scope="row">{first}</th>' if table.labels else f"<td>{first}</td>"
        yield f"<tr>{label}{''.join(f'<td>{cell}</td>' for cell in others)}</tr>"


def marked(text: str) -> str:
    """A text escaped, its statuses, sources and `commands` marked, its lines kept."""
    escaped = escape(printable(text.strip()))
    found = _STATUS.sub(lambda m: f'<b class="{STATUSES[m[1]]}">{m[1]}</b>', escaped)
    found = _ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>', found)
    return re.sub("`([^`<]+)`", r"<code>\1</code>", found).replace("\n", "<br>")
