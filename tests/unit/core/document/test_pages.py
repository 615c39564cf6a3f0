"""Documents as Markdown and HTML: escaped, statuses marked, nothing left out."""

from __future__ import annotations

from html.parser import HTMLParser

from separatrix.core.document import Document, Heading, Line, Plot, Table

DOCUMENT = Document(
    Heading("a < b", "4 layers & more"),
    Line("  moved <script>"),
    Heading(),
    Table(["Costs", ["cache|x", "FAILS from n = 4 on\nR"]], ["at", "model"], labels=True),
    Plot('said "so"', ["1 |*", "<"]),
)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_well_formed_and_marks_statuses() -> None:
    for text in (DOCUMENT.html(), DOCUMENT.page()):
        read = Elements()
        read.feed(text)
        assert read.open == []
        assert "script" not in [tag for tag, _ in read.seen]
        assert ("b", {"class": "fails"}) in read.seen
        assert ("th", {"colspan": "2", "scope": "rowgroup"}) in read.seen
        assert ("pre", {}) in read.seen


def test_markdown_shows_texts_as_they_stand() -> None:
    assert DOCUMENT.markdown() == (
        "### a \\< b\n\n4 layers & more\n\nmoved \\<script>\n\n"
        "| at | model |\n| --- | --- |\n| Costs |  |\n| cache\\|x | FAILS from n = 4 on R |\n\n"
        'said "so"\n\n```\n1 |*\n<\n```\n'
    )


def test_documents_are_joined() -> None:
    one, other = Document(Line("a")), Document(Line("b"))
    assert (one + other).parts == (Line("a"), Line("b"))
