"""Pieces of the page: everything is escaped, everything is closed, nothing is fetched."""

from html.parser import HTMLParser

from anyfill.interface import page

VOID = {"meta", "img", "source", "br"}


class Checker(HTMLParser):
    """Complains about a tag that is not closed in turn, and collects what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def check(document: str) -> list[str]:
    checker = Checker()
    checker.feed(document)
    assert checker.open == []
    assert "http:" not in document
    assert "https:" not in document
    return checker.links


def test_a_page_of_every_piece() -> None:
    evil = "<u>&\"'"
    document = page.page(
        evil,
        [
            page.heading(evil),
            page.paragraph(evil, "lead"),
            page.point(evil, evil),
            page.picture("name", evil, 100),
            page.table((evil, "n"), [[page.text(evil, evil), page.kind(evil)]], numbers=(1,), short=(0,), best=0),
            page.bars([(evil, 0.5), ("none", 0.0), ("below", -0.1)]),
            page.facts([(evil, evil)]),
            page.program(evil),
            page.footer(evil),
        ],
    )
    assert check(document) == ["name-dark.png", "name.png"]
    assert "<u>" not in document
    assert "width:100.0%" in document
    assert "width:0.0%" in document


def test_bars_of_nothing() -> None:
    assert page.bars([]) == ""
    assert "width:0.0%" in page.bars([("a", 0.0)])
