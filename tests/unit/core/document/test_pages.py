"""Documents as Markdown and HTML: escaped, statuses marked, nothing left out."""

from __future__ import annotations

from html.parser import HTMLParser

from separatrix.core.document import Document, Fold, Heading, Line, Plot, Table

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


def test_a_picture_is_told_in_words() -> None:
    html = Document(Plot('said "so"', svg="<svg></svg>")).html()
    read = Elements()
    read.feed(html)
    assert ("div", {"role": "img", "aria-label": 'said "so"'}) in read.seen
    assert "figcaption" not in html
    told = Document(Plot("words", svg="<svg></svg>", caption="A < B\nin bits")).html()
    assert "<figcaption><b>A &lt; B</b> in bits</figcaption>" in told
    assert Document(Plot("rises", caption="Bits")).text(80) == "Bits\nrises"


def test_what_is_folded_opens_in_a_page_and_stands_below_its_line_elsewhere() -> None:
    folded = Document(Fold(("FAILS", "by I <"), [Heading("Why"), Line("b|c")], opened=True))
    assert folded.html() == (
        '<details open><summary><span><b class="fails">FAILS</b></span>'
        "<span>by I &lt;</span></summary>\n<h3>Why</h3>\n<p>b|c</p>\n</details>"
    )
    assert folded.text(80).split("\n") == ["FAILS   by I <", "", "Why", "b|c"]
    assert folded.markdown() == "FAILS by I \\<\n\n### Why\n\nb\\|c\n"
