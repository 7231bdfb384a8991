"""The settings of ``anyfill text train``: what the user says, what is chosen for the rest, what a resumed run keeps.

What is not said is chosen by the device and the corpus, so that a small corpus on two cores takes minutes:

    size      1M on a CPU; on CUDA 6M, and 25M from three million tokens up
    length    characters and bytes 128 on a CPU, 256 on CUDA; pieces half, words a quarter of it; never more than is
              held out. With lines: what 99 % of them fit in, at most four times that
    batch     16 rows on a CPU, 128 on CUDA
    steps     1,000 on a CPU, 5,000 on CUDA; fewer where that is more than 20 times through the corpus, but 200 at least
    dropout   0.1 where a corpus is read more than eight times, else none
    rate      of Muon: 0.015, 0.006, 0.005, 0.003, 0.001 for the five sizes

All of them are noted with the model. A run that is resumed takes them from there; one that is said again must agree.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from anyfill.checks import MAX_SEED, refuse, require_count, require_member, require_positive, require_probability
from anyfill.interface.options import option_name

if TYPE_CHECKING:
    from anyfill.text.corpus import Corpus
    from anyfill.text.recipes import TextSize

Units = Literal["characters", "bytes", "words", "pieces"]
UNITS: tuple[Units, ...] = get_args(Units)
MIN_LENGTH = 8
"""Tokens of the shortest row that is chosen."""
_RATES = {"1M": 0.015, "6M": 0.006, "10M": 0.005, "25M": 0.003, "85M": 0.001}
_USUAL: dict[str, Any] = {
    "recipe": "one_pass_spans",
    "units": "characters",
    "lines": False,
    "seed": 0,
    "valid_share": 0.05,
}
"""What must be known before a corpus is read."""
_MAY_BE_NONE = ("vocabulary_size", "seconds", "threads")
_LINES = "Each line is a text of its own, as sentences are."
_UNENDING = 10_000_000
"""Steps of a run that the clock ends."""


def _said(help: str, default: str | bool = False, **limits: Any) -> Any:
    return typer.Option(help=help, show_default=default, **limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run as they are said, which are options of the command; None = to be chosen (or no limit)."""

    recipe: Annotated[
        str | None,
        _said(
            "one_pass_spans fills, continues and scores in one pass; one_pass_agreeing too, its blanks trained to "
            "agree with the whole; left_to_right only continues and scores; others: one_pass, one_pass_filler, ardm, "
            "mac_next, mac_rest, mac_inpainting, sunmask, sundae.",
            "one_pass_spans",
        ),
    ] = None
    size: Annotated[str | None, _said("1M, 6M, 10M, 25M or 85M weights.", "by the device")] = None
    units: Annotated[str | None, _said("What a token is: characters, bytes, words or pieces.", "characters")] = None
    vocabulary_size: Annotated[
        int | None, _said("The most different tokens; rarer ones are read as unknown.", "8192, of pieces 4096", min=2)
    ] = None
    lines: Annotated[bool | None, typer.Option("--lines", help=_LINES)] = None
    length: Annotated[int | None, _said("Tokens that the model sees at a time.", "by corpus and device", min=2)] = None
    steps: Annotated[int | None, _said("Optimizer steps.", "by corpus and device", min=1)] = None
    batch: Annotated[int | None, _said("Rows in each step.", "16, CUDA 128", min=1)] = None
    learning_rate: Annotated[float | None, _said("Peak learning rate (Muon).", "by the size")] = None
    dropout: Annotated[float | None, _said("Rate of dropout.", "by the corpus", min=0.0, max=0.95)] = None
    seconds: Annotated[
        float | None, _said("Stop when so much time is over; such a run cannot be repeated exactly.")
    ] = None
    valid_share: Annotated[
        float | None, _said("Share of the corpus, at its end, to validate on; 0 = none.", "0.05")
    ] = None
    seed: Annotated[int | None, _said("Seed of everything random.", "0", min=0, max=MAX_SEED)] = None
    threads: Annotated[int | None, _said("Threads of a CPU.", "the fastest", min=1, hidden=True)] = None

    def __post_init__(self) -> None:
        from anyfill.text.recipes import TEXT_RECIPES, TEXT_SIZES

        known = {"recipe": TEXT_RECIPES, "size": TEXT_SIZES, "units": UNITS}
        pieces = 300 if self.units == "pieces" else 2
        minimum = {"length": 2, "steps": 1, "batch": 1, "vocabulary_size": pieces, "threads": 1}
        for name, value in ((name, value) for name, value in asdict(self).items() if value is not None):
            if name in known:
                require_member(option_name(name), value, known[name])
            elif name in minimum:
                require_count(option_name(name), value, minimum=minimum[name])
            elif name in ("learning_rate", "seconds"):
                require_positive(option_name(name), value)
            elif name == "dropout":
                require_probability("--dropout", value)
        if self.valid_share is not None and not 0.0 <= self.valid_share <= 0.5:
            raise refuse("--valid-share", expected="a share from 0 (nothing is held out) to 0.5", got=self.valid_share)
        if self.vocabulary_size is not None and self.units == "bytes":
            expected = "none with --units bytes, which are 256"
            raise refuse("--vocabulary-size", expected=expected, got=self.vocabulary_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The settings of a run with nothing left to choose; see ``Settings``."""

    recipe: str
    size: "TextSize"
    units: Units
    vocabulary_size: int | None
    lines: bool
    length: int
    steps: int
    batch: int
    learning_rate: float
    dropout: float
    seconds: float | None
    seed: int
    valid_share: float
    threads: int | None

    @classmethod
    def of(cls, settings: Settings) -> "Chosen":
        """The same settings; ValueError if one of them is still to be chosen."""
        found = asdict(settings)
        missing = [name for name in found if found[name] is None and name not in _MAY_BE_NONE]
        if missing:
            raise refuse(option_name(missing[0]), expected="a setting", got="none")
        return cls(**found)

    @property
    def is_unending(self) -> bool:
        """True if only the clock ends the run."""
        return self.steps == _UNENDING


def read_settings(notes: Mapping[str, Any]) -> Settings:
    """The settings in the notes of a run; those of a later version that are not known here are left out."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in notes.items() if name in known})


def before_reading(wanted: Settings) -> Settings:
    """What must be known before a corpus is read, chosen where it is not said."""
    return replace(wanted, **{name: usual for name, usual in _USUAL.items() if getattr(wanted, name) is None})


def chosen(wanted: Settings, corpus: "Corpus", *, cuda: bool, processes: int = 1) -> Chosen:
    """Everything that was not said, by the corpus and the device."""
    wanted = before_reading(wanted)
    length = _length(wanted, corpus, cuda)
    batch = wanted.batch or -(-(128 if cuda else 16) // processes) * processes
    tokens = corpus.row_tokens(length)
    once = tokens / (batch * (length if not wanted.lines else corpus.mean_length(length)))
    steps = wanted.steps
    if steps is None:
        steps = _UNENDING if wanted.seconds is not None else max(200, min(5_000 if cuda else 1_000, round(20 * once)))
    size = wanted.size or ("1M" if not cuda else "25M" if tokens >= 3e6 else "6M")
    read_often = steps > 8 * once if steps < _UNENDING else tokens < 5e6
    rate = wanted.learning_rate or _RATES[size]
    dropout = wanted.dropout if wanted.dropout is not None else 0.1 if read_often else 0.0
    made = replace(wanted, size=size, length=length, batch=batch, steps=steps, learning_rate=rate, dropout=dropout)
    return Chosen.of(made)


def _length(wanted: Settings, corpus: "Corpus", cuda: bool) -> int:
    if wanted.length is not None:
        return wanted.length
    usual = (256 if cuda else 128) // {"pieces": 2, "words": 4}.get(wanted.units or "", 1)
    if corpus.line_lengths is not None:
        import numpy as np

        share = np.cumsum(corpus.line_lengths) / corpus.line_lengths.sum()
        return max(2, min(int(np.searchsorted(share, 0.99)), 4 * usual))
    available = corpus.held_out if wanted.valid_share else corpus.tokens // 2
    if available < MIN_LENGTH:
        names, part = ", ".join(corpus.names), f" ({available} of them held out)" if wanted.valid_share else ""
        minimum = round(MIN_LENGTH / (wanted.valid_share or 0.5))
        raise refuse(names, expected=f"at least {minimum:,} tokens of text", got=f"{corpus.tokens:,}{part}")
    return min(usual, available)
