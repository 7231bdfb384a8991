"""What is said of a scored text: figures, the most surprising tokens, remarks, and every token in its colour.

One ``Score``, several renderings: words (``repr``, terminal), JSON, a notebook's HTML, and files (page, table), which
appear as a whole or not at all.
"""

import html
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from anyfill.checks import counted, refuse
from anyfill.disk import whole_file
from anyfill.interface.output import require_new, unwritable
from anyfill.interface.progress import metered
from anyfill.text.encoding import brings_space
from anyfill.text.reading import Source
from anyfill.text.scoring import Scorer, Totals
from anyfill.text.surprises import SHORT, Gathered, Surprise, Token
from anyfill.text.vocabulary import is_folded

_READ = 80
"""Characters of a folded text that are shown."""
_SLOW = 100_000
"""Bytes of a file from which on progress is shown."""
LEVELS = (1.0, 3.0, 6.0, 10.0, math.inf)
"""Bits at which the colour changes."""
_COLOURS = ("", "#fff1b8", "#ffd07a", "#ff9a5c", "#e57373")
Sink = Callable[[Token], object]
_HEAD = """<!doctype html>
<meta charset="utf-8">
<title>TITLE</title>
<style>
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.6 system-ui, sans-serif; color: #222;
       background: #fff }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: 15px/1.7 ui-monospace, monospace }
i { font-style: normal } p { color: #666 } STYLE
</style>
<h1>TITLE</h1>
<p>Bits of surprise: <i>below 1</i> <i class="b1">1 to 3</i> <i class="b2">3 to 6</i> <i class="b3">6 to 10</i>
<i class="b4">10 and more</i></p>
<pre>"""
_STYLES = ("", "black on #fff1b8", "black on #ffd07a", "black on #ff9a5c", "white on #c62828")
_NAMES = ("below 1", "1 to 3", "3 to 6", "6 to 10", "10 bits and more")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_VISIBLE = {"\n": "⏎", "\t": "⇥", "\r": "␍"}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Score:
    """A text and what came of scoring it.

    Attributes:
        name: of the text.
        scorer: the model and the protocol.
        totals: of all its tokens.
        surprises: the most surprising tokens, the most surprising first.
        tokens: all of them with their surprise, of a text in memory or a short file; else None (``tsv`` writes them).
    """

    name: str
    scorer: Scorer
    totals: Totals
    surprises: tuple[Surprise, ...] = ()
    tokens: tuple[Token, ...] | None = None

    @property
    def bits(self) -> float:
        """-log2 p of the text; under shuffled orders its bound."""
        return -self.totals.nats / math.log(2)

    @property
    def bits_per_character(self) -> float:
        """Bits for each character of the text as the model sees it."""
        return self.bits / max(self.totals.characters, 1)

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *(f"  note: {remark}" for remark in self.remarks)])

    def _repr_html_(self) -> str:
        shown = f"<p>{'<br>'.join(map(html.escape, self.lines()))}</p>"
        if self.tokens is None:
            return shown
        text = "".join(marked(token, self.scorer.gap, styled=True) for token in self.tokens)
        return f'{shown}<pre style="white-space: pre-wrap">{text}</pre>'

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write all tokens: a web page in the colours of their surprise (``.html``), else offset, token and bits (TSV).

        ValueError if they were not kept; ``score(path, tsv=..., html=...)`` writes those of a long file as it is read.
        """
        if self.tokens is None:
            raise refuse("tokens", expected="those of a short text", got="a long file: score it with tsv= or html=")
        path = Path(path)
        require_new(path, force=force)
        page = path.suffix.lower() in (".html", ".htm")
        with token_writer(path, self.name, self.scorer.gap, page=page) as write:
            for token in self.tokens:
                write(token)

    @property
    def remarks(self) -> list[str]:
        """What must be known to read the figures rightly."""
        found: list[str] = []
        vocabulary, totals = self.scorer.text.vocabulary, self.totals
        if is_folded(vocabulary):
            seen = "the text is scored as this model sees it, folded to a-z and space"
            read = "".join(token.text for token in self.tokens or ())
            shown = read if len(read) <= _READ else f"{read[:_READ]} …"
            found.append(f"{seen}: bits are per such character" + (f"; it reads {shown!r}" if read else ""))
        if totals.unknown:
            what = vocabulary.units
            found.append(f"{totals.unknown:,} of {totals.tokens:,} {what} unknown to the model, scored as one symbol")
        if brings_space(vocabulary):
            found.append("bits are of this cut into pieces; those of the text, over all cuts, are no more")
        if self.scorer.text.lines:
            ends = "its end included" if vocabulary.end is not None else "given its length"
            found.append(f"each of {counted(totals.texts, 'line')} is a text of its own, {ends}")
            if totals.windows > totals.texts:
                found.append(f"some lines are longer than {self.scorer.text.length} tokens, which the model never saw")
        return found

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        totals, scorer, text = self.totals, self.scorer, self.scorer.text
        per_word = self.bits / totals.words if totals.words else math.inf
        found: dict[str, Any] = {
            "file": self.name,
            "model": text.name,
            "kind": scorer.kind,
            "bits": self.bits,
            "bits_per_character": self.bits_per_character,
            "bits_per_token": self.bits / max(totals.tokens, 1),
            "perplexity_per_word": 2.0**per_word if per_word < 1000 else math.inf,
            "characters": totals.characters,
            "words": totals.words,
            "tokens": totals.tokens,
            "units": text.vocabulary.units,
            "unknown": totals.unknown,
            "folded": is_folded(text.vocabulary),
            "lines": text.lines,
            "context": scorer.context,
            "length": text.length,
            "order": scorer.order,
            "windows": totals.windows,
            "passes": totals.passes,
        }
        if scorer.order == "shuffled":
            # one order tells nothing of its error
            variances = (totals.variance, totals.estimate_variance)
            stderr, error = (math.sqrt(one) / math.log(2) if scorer.orders > 1 else math.inf for one in variances)
            bits = -totals.estimate / math.log(2)
            estimate = {"bits": bits, "bits_per_character": bits / max(totals.characters, 1), "stderr": error}
            found |= {"orders": scorer.orders, "seed": scorer.seed, "stderr": stderr}
            found["estimate"] = {"kind": "estimate"} | estimate
        surprises = [
            {"offset": token.offset, "token": token.text, "bits": token.bits, "before": before, "behind": behind}
            for token, before, behind in self.surprises
        ]
        return found | {"remarks": self.remarks, "most_surprising": surprises}

    def lines(self) -> list[str]:
        """The figures in words."""
        totals, found = self.totals, self.to_json()
        each, tokens = found["units"].removesuffix("s"), ""
        if each not in ("character", "word"):
            tokens = f"{found['bits_per_token']:.3f} bits per {each} ({counted(totals.tokens, each)}), "
        words = ""
        if totals.words:
            per_word = self.bits / totals.words
            words = f"{per_word:.2f} bits per word ({counted(totals.words, 'word')}): a perplexity of "
            words += f"{found['perplexity_per_word']:,.0f}" if per_word < 30 else f"2^{per_word:.0f}"
        kind, characters = found["kind"], max(totals.characters, 1)
        if kind == "bound":
            mean = f"mean over {counted(self.scorer.orders, 'order')}: at least the model's, on average"
            kind = f"a bound ({mean}){_error(found['stderr'] / characters)}"
        lines = [self.name, f"  {self.bits_per_character:.3f} bits per character, {kind}"]
        if "estimate" in found:
            estimate, error = found["estimate"]["bits_per_character"], _error(found["estimate"]["stderr"] / characters)
            lines.append(f"  {estimate:.3f} bits per character, an estimate (log of the mean probability){error}")
        lines += [f"  {self.bits:,.1f} bits for {counted(totals.characters, 'character')}"]
        lines += [f"  {tokens}{words}"] if tokens or words else []
        return [*lines, *(f"  {line}" for line in self._protocol())]

    def _protocol(self) -> list[str]:
        totals, length = self.totals, self.scorer.text.length
        how = {"increasing": "from left to right", "decreasing": "from right to left", "shuffled": "in shuffled orders"}
        passes = "one pass each" if totals.passes == totals.windows else f"{totals.passes:,} passes"
        lines = [f"{how[self.scorer.order]}, {counted(totals.windows, 'window')} of {length} tokens, {passes}"]
        if totals.cut:
            lines.append(f"beyond the first {length} tokens each is given at least the {length // 2} before it")
        elif totals.windows > totals.texts:
            lines.append("no window is told of another")
        return lines


def score_text(
    scorer: Scorer,
    source: Source,
    *,
    most: int = 20,
    tsv: Path | None = None,
    html: Path | None = None,
    keep: float = SHORT,
    progress: bool = False,
) -> Score:
    """Score a text, with progress on stderr if it is wanted and the text is long.

    Args:
        scorer: the model and the protocol.
        source: the text.
        most: so many of the most surprising tokens are kept.
        tsv, html: files to be written, if any.
        keep: all tokens of a text of at most so many characters are kept.
        progress: show how far it is.
    """
    totals, gathered = Totals(), Gathered(most, scorer.gap, keep)
    work, cost = scorer.tokens(source, totals), 1 if scorer.text.model.is_one_pass else scorer.text.length
    is_slow = progress and source.size * cost >= _SLOW
    with ExitStack() as stack:
        sinks: list[Sink] = [gathered.take]
        for path, page in ((tsv, False), (html, True)):
            if path is not None:
                sinks.append(stack.enter_context(token_writer(path, source.name, scorer.gap, page=page)))
        for tokens in metered(work, f"scoring {source.name}") if is_slow else (some for some, _ in work):
            for token in tokens:
                for sink in sinks:
                    sink(token)
    return Score(source.name, scorer, totals, gathered.surprises(), gathered.short())


def _error(stderr: float) -> str:
    return f" ± {stderr:.3f}" if math.isfinite(stderr) else ", error not known"


def level(bits: float) -> int:
    """The colour of a surprise, from 0, expected, to 4."""
    return next(number for number, top in enumerate(LEVELS) if bits < top or top == math.inf)


@contextmanager
def token_writer(path: Path, title: str, gap: str, *, page: bool) -> Generator[Sink]:
    """What writes tokens into a page in the colours of their surprise, their bits at the pointer, or into a table.

    A table has a line for each token: offset, token, bits; tabs and ends of lines in a token as ``\\t \\n``.
    """
    with whole_text(path) as write:
        if page:
            write(_HEAD.replace("TITLE", html.escape(title)).replace("STYLE", _style()))
            yield lambda token: write(marked(token, gap))
            write("</pre>\n")
        else:
            write("offset\ttoken\tbits\n")
            yield lambda token: write(f"{token.offset}\t{token.text.translate(_ESCAPES)}\t{token.bits:.6f}\n")


def marked(token: Token, gap: str, *, styled: bool = False) -> str:
    """A token in the colour of its surprise, by a class of the page or, in a notebook, by a style of its own."""
    shown, number = html.escape(token.text), level(token.bits)
    shown = shown.replace("\n", "⏎\n") if number > 1 else shown
    look = f'style="font-style: normal; background: {_COLOURS[number]}"' if styled else f'class="b{number}"'
    return "\n" * token.is_below + f'<i {look} title="{token.bits:.2f} bits">{shown}</i>' + gap


def _style() -> str:
    return " ".join(f".b{number} {{ background: {colour} }}" for number, colour in enumerate(_COLOURS) if colour)


@contextmanager
def whole_text(path: Path) -> Generator[Callable[[str], object]]:
    """What writes text into a file that is there as a whole or not at all; so are the folders on the way to it."""
    made = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        with whole_file(path) as file:
            yield lambda text: file.write(text.encode())
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        for folder in made:
            with suppress(OSError):  # it is in use: the file is there
                folder.rmdir()


def print_scored(scored: Score, console: Console | None = None) -> None:
    """Figures, a short text in colours on a terminal, and the most surprising tokens."""
    console = Console(highlight=False, markup=False, soft_wrap=True) if console is None else console
    name, *figures = scored.lines()
    console.print(Text(name, style="bold"), *figures, sep="\n")
    for remark in scored.remarks:
        console.print(f"  note: {remark}")
    if console.is_terminal and scored.tokens is not None:
        console.print()
        console.print(coloured(scored.tokens, scored.scorer.gap))
        legend = Text("\n").append("bits of surprise: ", "dim")
        for title, style in zip(_NAMES, _STYLES):
            legend.append(title, style).append("  ")
        console.print(legend)
    if scored.surprises:
        what = scored.scorer.text.vocabulary.units
        console.print(f"\n  most surprising {'characters' if what == 'bytes' else what}:")
        width = max(len(f"{one.token.offset:,}") for one in scored.surprises)
        console.print(f"    bits  {'offset':>{max(width, 6)}}  in its text")
        for token, before, behind in scored.surprises:
            line = Text(f"  {token.bits:>6.1f}  {token.offset:>{max(width, 6)},}  ")
            line.append(f"{visible(before):>28}", "dim")
            line.append(f"[{visible(token.text)}]", "bold").append(visible(behind), "dim")
            console.print(line)


def print_total(scored: Sequence[Score]) -> None:
    """All texts as one."""
    characters = sum(one.totals.characters for one in scored)
    bits = sum(one.bits for one in scored)
    Console(highlight=False, markup=False, soft_wrap=True).print(
        f"all {len(scored)} files: {bits / characters:.3f} bits per character, {bits:,.1f} bits for "
        f"{counted(characters, 'character')}"
    )


def coloured(tokens: Sequence[Token], gap: str = "") -> Text:
    """The text in the colours of its surprise."""
    shown = Text()
    for token in tokens:
        number = level(token.bits)
        shown.append("\n" * token.is_below)
        for piece in token.text.splitlines(keepends=True):
            line = piece.rstrip("\r\n")
            ends = line != piece
            shown.append(visible(line) + ("⏎" if ends and number > 1 else ""), _STYLES[number])
            shown.append("\n" if ends else "")
        shown.append(gap)
    return shown


def visible(text: str) -> str:
    """The text on one line, nothing in it that a terminal would obey."""
    return "".join(_VISIBLE.get(one, one) if one.isprintable() or one in _VISIBLE else "\ufffd" for one in text)
