"""What is said of a scored text: figures, the most surprising tokens, remarks; in words, as JSON, in a notebook."""

import html
import math
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyfill.checks import refuse
from anyfill.interface.output import require_new
from anyfill.interface.progress import metered
from anyfill.text.alphabet import is_folded, plain
from anyfill.text.reading import Source
from anyfill.text.scoring import Scorer, Token, Totals
from anyfill.text.surprise import SHORT, Gathered, Sink, Surprise, html_writer, marked, tsv_writer
from anyfill.text.vocabularies import Pieces, Words

_SLOW = 100_000
"""Bytes of a file from which on progress is shown."""


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

    @property
    def gap(self) -> str:
        """What stands between tokens: a space between words, else nothing."""
        return _gap(self.scorer)

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *(f"  note: {remark}" for remark in self.remarks)])

    def _repr_html_(self) -> str:
        shown = f"<p>{'<br>'.join(map(html.escape, self.lines()))}</p>"
        if self.tokens is None:
            return shown
        text = "".join(marked(token, self.gap, styled=True) for token in self.tokens)
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
        with html_writer(path, self.name, self.gap) if page else tsv_writer(path) as write:
            for token in self.tokens:
                write(token)

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
            what = vocabulary.units
            found.append(f"{totals.unknown:,} of {totals.tokens:,} {what} unknown to the model, scored as one symbol")
        if isinstance(plain(vocabulary), Pieces):
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
        found: dict[str, Any] = {
            "file": self.name,
            "model": text.name,
            "kind": scorer.kind,
            "bits": self.bits,
            "bits_per_character": self.bits_per_character,
            "bits_per_token": self.bits / max(totals.tokens, 1),
            "perplexity_per_word": _perplexity(self.bits, totals.words),
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
            stderr, estimate = _errors(totals, scorer.orders)
            found |= {"orders": scorer.orders, "seed": scorer.seed, "stderr": stderr}
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
        totals, found = self.totals, self.to_json()
        each, tokens = found["units"].removesuffix("s"), ""
        if each not in ("character", "word"):
            tokens = f"{found['bits_per_token']:.3f} bits per {each} ({counted(totals.tokens, each)}), "
        words = ""
        if totals.words:
            per_word = self.bits / totals.words
            words = f"{per_word:.2f} bits per word ({counted(totals.words, 'word')}): a perplexity of "
            words += f"{found['perplexity_per_word']:,.0f}" if per_word < 30 else f"2^{per_word:.0f}"
        lines = [self.name, f"  {found['bits_per_character']:.3f} bits per character, {self._kind()}"]
        if "estimate" in found:
            error = _error(found["estimate"]["stderr"] / totals.characters)
            estimate = found["estimate"]["bits_per_character"]
            lines.append(f"  {estimate:.3f} bits per character, an estimate (log of the mean probability){error}")
        lines += [f"  {self.bits:,.1f} bits for {counted(totals.characters, 'character')}"]
        lines += [f"  {tokens}{words}"] if tokens or words else []
        return [*lines, *(f"  {line}" for line in self._protocol())]

    def _kind(self) -> str:
        kind, orders = self.scorer.kind, self.scorer.orders
        if kind != "bound":
            return kind
        stderr, _ = _errors(self.totals, orders)
        error = _error(stderr / max(self.totals.characters, 1))
        return f"a bound (mean over {counted(orders, 'order')}: at least the model's, on average){error}"

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
    totals, gathered = Totals(), Gathered(most, _gap(scorer), keep)
    work, cost = scorer.tokens(source, totals), 1 if scorer.text.model.is_one_pass else scorer.text.length
    is_slow = progress and source.size * cost >= _SLOW
    with ExitStack() as stack:
        sinks: list[Sink] = [gathered.take]
        if tsv is not None:
            sinks.append(stack.enter_context(tsv_writer(tsv)))
        if html is not None:
            sinks.append(stack.enter_context(html_writer(html, source.name, _gap(scorer))))
        for tokens in metered(work, f"scoring {source.name}") if is_slow else (some for some, _ in work):
            for token in tokens:
                for sink in sinks:
                    sink(token)
    return Score(source.name, scorer, totals, gathered.surprises(), gathered.short())


def _gap(scorer: Scorer) -> str:
    return " " if isinstance(plain(scorer.text.vocabulary), Words) else ""


def _perplexity(bits: float, words: int) -> float:
    return 2.0 ** (bits / words) if words and bits / words < 1000 else math.inf


def _errors(totals: Totals, orders: int) -> tuple[float, float]:
    """Standard errors, in bits, of the bound and of the estimate; infinite where one order tells nothing."""
    if orders < 2:
        return math.inf, math.inf
    return math.sqrt(totals.variance) / math.log(2), math.sqrt(totals.estimate_variance) / math.log(2)


def _error(stderr: float) -> str:
    return f" ± {stderr:.3f}" if math.isfinite(stderr) else ", error not known"


def counted(number: int, what: str) -> str:
    """The number of things in words: "1 line", "2 lines"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
