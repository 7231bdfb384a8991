"""What ``anyfill text score`` says of a text: figures, the most surprising tokens, and a short text in colours."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from anyfill.checks import refuse
from anyfill.interface.output import jsonable
from anyfill.interface.progress import metered
from anyfill.text.alphabet import is_folded, plain, unit
from anyfill.text.scoring import Scorer, Token, Totals
from anyfill.text.source import require_free
from anyfill.text.stream import Source, is_of_pieces
from anyfill.text.surprise import Gathered, Sink, Surprise, html_writer, level, tsv_writer
from anyfill.text.words import Words

_STYLES = ("", "black on #fff1b8", "black on #ffd07a", "black on #ff9a5c", "white on #c62828")
_NAMES = ("below 1", "1 to 3", "3 to 6", "6 to 10", "10 bits and more")
_SLOW = 100_000
"""Bytes of a file from which on progress is shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A text and what came of scoring it.

    Attributes:
        name: of the text.
        scorer: the model and the protocol.
        totals: of all its tokens.
        surprises: the most surprising tokens, the most surprising first.
        short: all tokens, if they are few.
    """

    name: str
    scorer: Scorer
    totals: Totals
    surprises: tuple[Surprise, ...] = ()
    short: tuple[Token, ...] | None = None

    @property
    def bits(self) -> float:
        """-log2 p of the text; under shuffled orders its bound."""
        return -self.totals.nats / math.log(2)

    @property
    def remarks(self) -> list[str]:
        """What must be known to read the figures rightly."""
        found: list[str] = []
        vocabulary, totals = self.scorer.text.vocabulary, self.totals
        if is_folded(vocabulary):
            found.append(
                "the text is scored as this model sees it, folded to a-z and space: bits are per such character"
            )
        if totals.unknown:
            what = unit(vocabulary)
            found.append(f"{totals.unknown:,} of {totals.tokens:,} {what} unknown to the model, scored as one symbol")
        if is_of_pieces(vocabulary):
            found.append("bits are of this cut into pieces; those of the text, over all cuts, are no more")
        if self.scorer.text.lines:
            ends = "its end included" if vocabulary.end is not None else "given its length"
            found.append(f"each of {_count(totals.texts, 'line')} is a text of its own, {ends}")
            if totals.windows > totals.texts:
                found.append(f"some lines are longer than {self.scorer.text.length} tokens, which the model never saw")
        return found

    def summary(self) -> dict[str, Any]:
        """The figures as JSON."""
        totals, protocol, text = self.totals, self.scorer.protocol, self.scorer.text
        found: dict[str, Any] = {
            "file": self.name,
            "model": text.name,
            "kind": self.scorer.kind,
            "bits": self.bits,
            "bits_per_character": self.bits / max(totals.characters, 1),
            "bits_per_token": self.bits / max(totals.tokens, 1),
            "perplexity_per_word": _perplexity(self.bits, totals.words),
            "characters": totals.characters,
            "words": totals.words,
            "tokens": totals.tokens,
            "units": unit(text.vocabulary),
            "unknown": totals.unknown,
            "folded": is_folded(text.vocabulary),
            "lines": text.lines,
            "context": protocol.context,
            "length": text.length,
            "order": protocol.order,
            "windows": totals.windows,
            "passes": totals.passes,
        }
        if protocol.order == "shuffled":
            stderr, estimate = _errors(totals, protocol.orders)
            found |= {"orders": protocol.orders, "seed": protocol.seed, "stderr": stderr}
            found["estimate"] = {
                "kind": "estimate",
                "bits": -totals.estimate / math.log(2),
                "bits_per_character": -totals.estimate / math.log(2) / max(totals.characters, 1),
                "stderr": estimate,
            }
        surprises = [
            {"offset": one.token.offset, "token": one.token.text, "bits": one.token.bits}
            | {"before": one.before, "behind": one.behind}
            for one in self.surprises
        ]
        return found | {"remarks": self.remarks, "most_surprising": surprises}

    def lines(self) -> list[str]:
        """The figures in words."""
        totals, found = self.totals, self.summary()
        each, tokens = found["units"].removesuffix("s"), ""
        if each not in ("character", "word"):
            tokens = f"{found['bits_per_token']:.3f} bits per {each} ({_count(totals.tokens, each)}), "
        words = ""
        if totals.words:
            per_word = self.bits / totals.words
            words = f"{per_word:.2f} bits per word ({_count(totals.words, 'word')}): a perplexity of "
            words += f"{found['perplexity_per_word']:,.0f}" if per_word < 30 else f"2^{per_word:.0f}"
        lines = [self.name, f"  {found['bits_per_character']:.3f} bits per character, {self._kind()}"]
        if "estimate" in found:
            error = _error(found["estimate"]["stderr"] / totals.characters)
            estimate = found["estimate"]["bits_per_character"]
            lines.append(f"  {estimate:.3f} bits per character, an estimate (log of the mean probability){error}")
        lines += [f"  {self.bits:,.1f} bits for {_count(totals.characters, 'character')}"]
        lines += [f"  {tokens}{words}"] if tokens or words else []
        return [*lines, *(f"  {line}" for line in self._protocol())]

    def _kind(self) -> str:
        kind, orders = self.scorer.kind, self.scorer.protocol.orders
        if kind != "bound":
            return kind
        stderr, _ = _errors(self.totals, orders)
        error = _error(stderr / max(self.totals.characters, 1))
        return f"a bound (mean over {_count(orders, 'order')}: at least the model's, on average){error}"

    def _protocol(self) -> list[str]:
        totals, length = self.totals, self.scorer.text.length
        how = {"increasing": "from left to right", "decreasing": "from right to left", "shuffled": "in shuffled orders"}
        passes = "one pass each" if totals.passes == totals.windows else f"{totals.passes:,} passes"
        lines = [f"{how[self.scorer.protocol.order]}, {_count(totals.windows, 'window')} of {length} tokens, {passes}"]
        if totals.cut:
            lines.append(f"beyond the first {length} tokens each is given at least the {length // 2} before it")
        elif totals.windows > totals.texts:
            lines.append("no window is told of another")
        return lines


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is made of each text.

    Attributes:
        tsv, html: files to be written, if any.
        most: so many of the most surprising tokens are kept.
    """

    tsv: Path | None = None
    html: Path | None = None
    most: int = 20

    @property
    def paths(self) -> list[Path]:
        """Files that are written."""
        return [path for path in (self.tsv, self.html) if path is not None]

    def require_free(self, *, files: int, force: bool) -> None:
        """ValueError if something is in the way of a file, or there are several texts for it."""
        for option, path in (("--tsv", self.tsv), ("--html", self.html)):
            if path is not None:
                if files > 1:
                    raise refuse(option, expected="one FILE", got=files)
                require_free(path, force=force)
        if self.tsv is not None and self.tsv == self.html:
            raise refuse("--html", expected="another name than that of --tsv", got=f"{self.html}")

    def score(self, scorer: Scorer, source: Source) -> Scored:
        """Score a text, with progress on stderr if it is long."""
        gap = " " if isinstance(plain(scorer.text.vocabulary), Words) else ""
        totals, gathered = Totals(), Gathered(self.most, gap)
        with ExitStack() as stack:
            sinks: list[Sink] = [gathered.take]
            if self.tsv is not None:
                sinks.append(stack.enter_context(tsv_writer(self.tsv)))
            if self.html is not None:
                sinks.append(stack.enter_context(html_writer(self.html, source.name, gap)))
            for tokens in _watched(scorer, source, totals):
                for token in tokens:
                    for sink in sinks:
                        sink(token)
        return Scored(source.name, scorer, totals, gathered.surprises(), gathered.short())


def _watched(scorer: Scorer, source: Source, totals: Totals) -> Iterator[list[Token]]:
    work = scorer.tokens(source, totals)
    try:
        size = source.path.stat().st_size
    except OSError:  # it is said when the file is read
        size = 0
    if size * (1 if scorer.text.model.is_one_pass else scorer.text.length) < _SLOW:
        for tokens, _ in work:
            yield tokens
    else:
        yield from metered(work, f"scoring {source.name}")


def print_scored(scored: Scored, console: Console | None = None) -> None:
    """Figures, a short text in colours on a terminal, and the most surprising tokens."""
    console = Console(highlight=False, markup=False, soft_wrap=True) if console is None else console
    name, *figures = scored.lines()
    console.print(Text(name, style="bold"), *figures, sep="\n")
    for remark in scored.remarks:
        console.print(f"  note: {remark}")
    gap = " " if isinstance(plain(scored.scorer.text.vocabulary), Words) else ""
    if console.is_terminal and scored.short is not None:
        console.print()
        console.print(coloured(scored.short, gap))
        legend = Text("\n").append("bits of surprise: ", "dim")
        for title, style in zip(_NAMES, _STYLES):
            legend.append(title, style).append("  ")
        console.print(legend)
    if scored.surprises:
        what = unit(scored.scorer.text.vocabulary)
        console.print(f"\n  most surprising {'characters' if what == 'bytes' else what}:")
        width = max(len(f"{one.token.offset:,}") for one in scored.surprises)
        console.print(f"    bits  {'offset':>{max(width, 6)}}  in its text")
        for one in scored.surprises:
            line = Text(f"  {one.token.bits:>6.1f}  {one.token.offset:>{max(width, 6)},}  ")
            line.append(f"{visible(one.before):>28}", "dim")
            line.append(f"[{visible(one.token.text)}]", "bold").append(visible(one.behind), "dim")
            console.print(line)


def print_total(scored: Sequence[Scored]) -> None:
    """All texts as one."""
    characters = sum(one.totals.characters for one in scored)
    bits = sum(one.bits for one in scored)
    Console(highlight=False, markup=False, soft_wrap=True).print(
        f"all {len(scored)} files: {bits / characters:.3f} bits per character, {bits:,.1f} bits for "
        f"{_count(characters, 'character')}"
    )


def document(scored: Sequence[Scored]) -> str:
    """All texts as one JSON document."""
    return json.dumps(jsonable([one.summary() for one in scored]), indent=2, allow_nan=False)


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


_VISIBLE = {"\n": "⏎", "\t": "⇥", "\r": "␍"}


def _perplexity(bits: float, words: int) -> float:
    return 2.0 ** (bits / words) if words and bits / words < 1000 else math.inf


def _errors(totals: Totals, orders: int) -> tuple[float, float]:
    """Standard errors, in bits, of the bound and of the estimate; infinite where one order tells nothing."""
    if orders < 2:
        return math.inf, math.inf
    return math.sqrt(totals.variance) / math.log(2), math.sqrt(totals.estimate_variance) / math.log(2)


def _error(stderr: float) -> str:
    return f" ± {stderr:.3f}" if math.isfinite(stderr) else ", error not known"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
