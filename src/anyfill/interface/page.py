"""A small page of results: HTML written by hand, one style sheet inside, light and dark, nothing fetched from anywhere.

Every function returns a piece of HTML whose text is escaped; ``page`` puts pieces into a document.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape

STYLE = """
:root { --page: #fbfaf8; --text: #1d1f23; --faint: #6d7178; --line: #e2dfd9; --accent: #a8440a; --tint: #fdeedd; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15171a; --text: #eceae6; --faint: #9a9ea6; --line: #2c3036; --accent: #ffb26b; --tint: #38291c; }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; }
body { margin: 0 auto; padding: 3.5rem 1.5rem 5rem; max-width: 58rem; background: var(--page); color: var(--text);
       font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
       font-variant-numeric: tabular-nums; }
h1 { font-size: 2.3rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .6rem; }
h2 { font-size: 1.45rem; letter-spacing: -.01em; margin: 3.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 2rem 0 .4rem; }
p { margin: .5rem 0 1rem; max-width: 44rem; }
p.lead { font-size: 1.2rem; line-height: 1.5; }
.faint, footer { color: var(--faint); }
img { display: block; max-width: 100%; height: auto; margin: 1.4rem 0; }
.scroll { overflow-x: auto; margin: 1.2rem 0; }
table { border-collapse: collapse; width: 100%; min-width: 46rem; font-size: .93rem; line-height: 1.45; }
th, td { text-align: left; vertical-align: baseline; padding: .5rem 1.1rem .5rem 0;
         border-bottom: 1px solid var(--line); }
th { font-weight: 500; color: var(--faint); font-size: .84rem; }
th.number, td.number { text-align: right; white-space: nowrap; }
tr.best td { background: var(--tint); }
th:first-child, td:first-child { padding-left: .6rem; }
td small { color: var(--faint); font-size: .82rem; }
td.short { white-space: nowrap; }
.kind { display: inline-block; border: 1px solid var(--line); border-radius: 1rem; padding: 0 .55rem; font-size: .8rem;
        color: var(--faint); white-space: nowrap; }
.bar { display: grid; grid-template-columns: 6.5rem minmax(3rem, 1fr) 4rem; gap: .6rem; align-items: center;
       font-size: .88rem; }
.bar i { display: block; height: .6rem; border-radius: .3rem; background: var(--accent); min-width: 2px; }
.bar b { font-weight: 500; text-align: right; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); gap: .9rem; margin: 1.2rem 0; }
dt { color: var(--faint); font-size: .82rem; } dd { margin: 0; font-size: 1.02rem; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
pre { background: var(--tint); border-radius: .5rem; padding: .9rem 1.1rem; overflow-x: auto; line-height: 1.5; }
footer { margin-top: 4rem; font-size: .88rem; border-top: 1px solid var(--line); padding-top: 1rem; }
"""


def page(title: str, pieces: Iterable[str]) -> str:
    """A whole document."""
    body = "\n".join(pieces)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, style: str = "") -> str:
    """A paragraph; ``style`` is "lead", "faint" or nothing."""
    return f'<p class="{style}">{escape(text)}</p>' if style else f"<p>{escape(text)}</p>"


def point(name: str, words: str) -> str:
    """A paragraph about something that has a name."""
    return f"<p><b>{escape(name)}</b>: {escape(words)}</p>"


def picture(name: str, description: str, width: int, *, dark: bool = True) -> str:
    """A picture NAME.png, and if ``dark`` NAME-dark.png for dark pages, as wide as it was drawn."""
    other = f'<source srcset="{escape(name)}-dark.png" media="(prefers-color-scheme: dark)">' if dark else ""
    return f'<picture>{other}<img src="{escape(name)}.png" alt="{escape(description)}" width="{width}"></picture>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[int] = (),
    short: Collection[int] = (),
    best: int | None = None,
) -> str:
    """A table of pieces of HTML.

    Args:
        head: titles of the columns, plain text.
        rows: cells, as HTML.
        numbers: columns that are set flush right.
        short: columns whose cells stay on one line.
        best: the row to mark.
    """

    def style(column: int) -> str:
        return ' class="number"' if column in numbers else ' class="short"' if column in short else ""

    titles = "".join(f"<th{style(j)}>{escape(title)}</th>" for j, title in enumerate(head))
    lines = (
        ('<tr class="best">' if i == best else "<tr>")
        + "".join(f"<td{style(j)}>{cell}</td>" for j, cell in enumerate(row))
        + "</tr>"
        for i, row in enumerate(rows)
    )
    return f'<div class="scroll"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def text(words: str, note: str = "") -> str:
    """Plain text for a cell, with a small note after it."""
    return escape(words) + (f" <small>{escape(note)}</small>" if note else "")


def kind(label: str) -> str:
    """The label exact, bound or estimate."""
    return f'<span class="kind">{escape(label)}</span>'


def bars(shares: Sequence[tuple[str, float]], form: str = "{:.1%}") -> str:
    """Bars for named values from 0 up, the longest as wide as there is room."""
    most = max([value for _, value in shares] + [1e-12])
    return "".join(
        f'<div class="bar"><span>{escape(name)}</span>'
        f'<i style="width:{100 * max(value, 0) / most:.1f}%"></i><b>{escape(form.format(value))}</b></div>'
        for name, value in shares
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with their values, side by side."""
    return "<dl>" + "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs) + "</dl>"


def program(lines: str) -> str:
    """A few lines of code."""
    return f"<pre><code>{escape(lines.strip())}</code></pre>"


def footer(words: str) -> str:
    """The small print."""
    return f"<footer>{escape(words)}</footer>"
