"""A model of text and what can be asked of it: the one that ships with anyfill, or a folder of the user's own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anyfill.checks import refuse, refuse_given
from anyfill.interface.options import chosen_seed
from anyfill.interface.output import require_new
from anyfill.interface.progress import metered
from anyfill.interface.threads import free_threads, threads
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.samplers import Sampler
from anyfill.text.reading import Source, require_text
from anyfill.text.sampling import SamplingOptions as SamplingOptions
from anyfill.text.template import Lengths, Template, parse, parse_lengths
from anyfill.text.vocabularies import vocabulary_of
from anyfill.text.vocabulary import Vocabulary
from anyfill.training import load_model, load_notes
from anyfill.training.checkpoint import is_model

if TYPE_CHECKING:
    from anyfill.text.fills import Fills
    from anyfill.text.generate import Writer
    from anyfill.text.ngram import KneserNey
    from anyfill.text.report import Score

ROWS = 64
"""Rows drawn side by side: enough for a processor to be busy, few enough to see how the work goes on."""
COUNTS = "counts.safetensors"
"""Beside the weights of a model: n-grams that come with it."""
MODELS = "models"
"""Where the package keeps its own models."""
SHIPPED = ("english", "text8")
"""Its models of text: pieces of everyday English, which answer where none is named; and text8's 27 symbols."""
SHIPPED_NAME = "the model that ships with anyfill"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextModel:
    """A trained model of text and the meaning of its codes.

    Attributes:
        model: 32-bit weights, in evaluation mode.
        vocabulary: of as many codes as the model has.
        name: what to call it.
        lines: it was trained on lines, each from the first place of a row on.
        lengths: of such a model without an end code: how many lines of 0, 1, 2 … codes it was trained on.
        counts: n-grams of words that came with it.
        weights: of the model and of its counts, fitted on held-out blanks (``KneserNey.powers``).
        readings: of p(text) and of the direct answer to a blank that is a word, see ``anyfill.text.word_search``; of a
            model that brings counts, those that were fitted with them.
    """

    model: Model
    vocabulary: Vocabulary
    name: str
    lines: bool = False
    lengths: tuple[int, ...] = ()
    counts: "KneserNey | None" = None
    weights: tuple[float, float] = (1.0, 0.0)
    readings: tuple[float, float] = (1.0, 0.0)

    @property
    def length(self) -> int:
        """N, the codes of a row: all that the model sees at a time."""
        return self.model.variables

    @property
    def is_shipped(self) -> bool:
        """Whether it is the one that ships with anyfill."""
        return self.name == SHIPPED_NAME

    def length_log_share(self, size: int) -> float:
        """log of the share of lines of so many codes among those it was trained on, counted with one added."""
        count = self.lengths[size] if size < len(self.lengths) else 0
        return math.log((count + 1) / (sum(self.lengths) + len(self.lengths)))

    def __repr__(self) -> str:
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        units = f"{self.vocabulary.size:,} codes, {self.length} at a time"
        return f"TextModel({self.name}: {units}, {weights:,} weights)"

    @property
    def _word(self) -> Lengths:
        """How many codes a word may have."""
        longest = {"words": 1, "pieces": 6}.get(self.vocabulary.units, 14)
        return Lengths(1, max(1, min(longest, self.length - 2)))

    def fill(
        self,
        text: str,
        *,
        n: int = 5,
        seed: int | None = None,
        lengths: str | None = None,
        letters: bool = False,
        free: bool = False,
        draws: int | None = None,
        counts: "KneserNey | Path | str | None" = None,
        weights: tuple[float, float] | None = None,
        sampler: str | Sampler = "exact",
        temperature: float = 1.0,
        nucleus: float | None = None,
        top_k: int | None = None,
        typical: float | None = None,
        progress: bool = False,
    ) -> "Fills":
        r"""Fill the blanks in a text, in the likeliest ways that are found.

        Args:
            text: ____ by itself is one word, beside letters (l_st, 19__) so many characters; [] is of unstated length,
                [5] and [3-8] say a length or a range, and \_ and \[ stand for themselves.
            n: how many fills.
            seed: of everything random; None = a new one, which the result has.
            lengths: those that are tried for a blank that states none, as "1-12" (of words or pieces "1-3"), and for a
                word ("1-14", of pieces "1-6").
            letters: ____ by itself is so many characters, too.
            free: a run of underscores may be of any of these lengths.
            draws: for each combination of lengths; None = as many as seem right, none where all fills can be compared.
            counts: n-grams of words (``text.count``), or their file: they propose words for blanks that are words; None
                = those that come with the model, if any do.
            weights: a and b: words are ranked by p(model)^a p(counts)^b; None = (1, 0), or those fitted for this model
                and the counts that come with it.
            sampler: "exact", "speculative", "confidence" or "entropy-bounded", or one of ``anyfill.samplers``.
            temperature, nucleus, top_k, typical: how one value is drawn, see ``Draw``.
            progress: show on stderr how far it is.

        Returns:
            The fills, best first: each has text, answers, log2_probability, share and posterior.
        """
        from anyfill.text.counting import as_counts
        from anyfill.text.fill import fill_blanks, searches_words

        if weights is not None and counts is None and self.counts is None:
            raise refuse("--weights", expected="--counts, which they are for", got="none")
        stated = {"--counts": None if counts is None else "some", "--weights": weights}
        counted = as_counts(self.counts if counts is None else counts)
        if weights is None:
            weights = self.weights if counts is None else (1.0, 0.0)
        template = self.template(text, lengths=lengths, letters=letters, free=free)
        sampling = SamplingOptions(sampler, temperature, nucleus, top_k, typical, chosen_seed(seed))
        said: dict[str, Any] = {"draws": draws, "counts": counted, "weights": weights}
        if not searches_words(self, template, is_free=draws is None and sampling.is_usual):
            refuse_given("where no blank is a word that is searched for", stated)
        work = fill_blanks(self, template, n=n, sampling=sampling, **said)
        with threads(free_threads()):
            *_, found = metered(work, "filling") if progress else (found for found, _ in work)
        ways: dict[str, Any] = {"lengths": lengths, "letters": letters, "free": free}
        return replace(cast("Fills", found), notes=(*cast("Fills", found).notes, *self._idle(text, **ways)))

    def _idle(self, text: str, *, lengths: str | None, letters: bool, free: bool) -> list[str]:
        """Of what was said about how to read blanks that which changes nothing in this text, in words."""
        odd = "97"  # a length that nothing else asks for
        ways: dict[str, Any] = {"letters": letters, "free": free}
        said: list[str] = []
        if lengths is not None and self.template(text, lengths="1", **ways) == self.template(text, lengths=odd, **ways):
            said.append("--lengths changes nothing: every blank says how long it is")
        if free and self.template(text, lengths=odd, **ways) == self.template(text, lengths=odd, letters=letters):
            said.append("--free changes nothing: there is no run of underscores")
        if letters and self.template(text, free=free) == self.template(text, letters=True, free=free):
            said.append("--letters changes nothing: it is for runs of underscores by themselves, without --free")
        return said

    def template(self, text: str, *, lengths: str | None = None, letters: bool = False, free: bool = False) -> Template:
        """What ``fill`` reads of a text with blanks; its arguments."""
        tokens = self.vocabulary.units in ("words", "pieces")
        unstated = Lengths(1, 3 if tokens else 12) if lengths is None else parse_lengths(lengths)
        word = None if letters else self._word if lengths is None else unstated
        options: dict[str, Any] = {"unstated": unstated, "free": free, "tokens": tokens, "word": word}
        return parse(require_text(text, "text"), **options, spelt=self.vocabulary.units == "pieces")

    def generate(
        self,
        *,
        n: int = 1,
        length: int | None = None,
        prompt: str = "",
        seed: int | None = None,
        sampler: str | Sampler = "exact",
        temperature: float = 1.0,
        nucleus: float | None = None,
        top_k: int | None = None,
        typical: float | None = None,
        unknown: bool = False,
        progress: bool = False,
    ) -> list[str]:
        """Write new texts, from nothing or behind a prompt.

        Args:
            n: how many.
            length: characters (tokens of the model) to write behind the prompt; None = 200, or a line.
            prompt: how each begins.
            seed: of everything random; None = a new one.
            sampler, temperature, nucleus, top_k, typical, progress: as in ``fill``.
            unknown: the unknown word or character of the model may be written, too.
        """
        how: dict[str, Any] = {"temperature": temperature, "nucleus": nucleus, "top_k": top_k, "typical": typical}
        work = self.writer(length=length, prompt=prompt, seed=seed, unknown=unknown, sampler=sampler, **how).texts(n)
        with threads(free_threads()):
            parts = metered(work, "writing") if progress else (some for some, _ in work)
            return [text for some in parts for text in some]

    def writer(
        self,
        *,
        length: int | None = None,
        prompt: str = "",
        seed: int | None = None,
        unknown: bool = False,
        **sampling: Any,
    ) -> "Writer":
        """What ``generate`` writes with, to watch a text while it grows; ``sampling`` as there."""
        from anyfill.text.generate import Writer

        options = SamplingOptions(**sampling, seed=chosen_seed(seed))
        return Writer(self, length, require_text(prompt, "--prompt"), options, unknown)

    def score(
        self,
        text: str | Path | Source,
        *,
        context: str = "half",
        order: str = "increasing",
        orders: int | None = None,
        seed: int | None = None,
        most: int = 20,
        tsv: Path | None = None,
        html: Path | None = None,
        force: bool = False,
        device: str = "cpu",
        progress: bool = False,
    ) -> "Score":
        """How likely a text is, in bits, and where it surprises.

        Args:
            text: the text; a ``Path`` = that of a file, plain or .gz, however large.
            context: of a text longer than the model's rows: "half" = each token is given at least half a row of what
                comes before it; "none" = chunks on their own, as papers score.
            order: in which tokens are asked: "increasing", "decreasing" or "shuffled" (models of any order).
            orders, seed: how many shuffled orders are drawn (4), and their seed (0).
            most: so many of the most surprising tokens are listed.
            tsv, html: write every token there, as a table or as a page in the colours of surprise.
            force: replace such a file.
            device: "cpu", "cuda" or "auto".
            progress: show on stderr how far it is, if the text is long.
        """
        from anyfill.text.report import score_text
        from anyfill.text.scoring import Scorer
        from anyfill.text.surprises import SHORT

        for option, value in (("--orders", orders), ("--seed", seed)):
            if value is not None and order != "shuffled":
                raise refuse(option, expected="--order shuffled, which alone is random", got=f"--order {order}")
        for path in (tsv, html):
            if path is not None:
                require_new(path, force=force)
        if tsv is not None and tsv == html:
            raise refuse("--html", expected="another name than that of --tsv", got=f"{html}")
        is_here = isinstance(text, str)
        source = Source("text", text=text) if is_here else Source(str(text), text) if isinstance(text, Path) else text
        scorer = Scorer(self, context, order, 4 if orders is None else orders, seed or 0, device)
        keep = math.inf if is_here else SHORT
        return score_text(scorer, source, most=most, tsv=tsv, html=html, keep=keep, progress=progress)


def load(folder: str | Path | None = None) -> TextModel:
    """A model of text, ready to be asked.

    Args:
        folder: made by ``anyfill text train``; None = the model that ships with anyfill; "english" or "text8" = the
            one of that name that ships, unless there is a model in a folder of that name.

    Raises:
        ValueError: there is no model, it is none of text, its codes are not its vocabulary's, or it was never trained.
    """
    named = str(folder) if str(folder) in SHIPPED and not is_model(str(folder)) else None
    if folder is not None and named is None:
        return _load(Path(folder), str(folder))
    own = resources.files("anyfill").joinpath(MODELS)
    for one in SHIPPED if named is None else (named,):
        with resources.as_file(own.joinpath(one)) as shipped:
            if (shipped / "config.json").is_file():
                return _load(shipped, SHIPPED_NAME if named is None else named)
    expected = "the folder of a model (this anyfill comes without one of its own)"
    raise refuse("--model", expected=expected, got="none" if named is None else named)


def _load(folder: Path, name: str) -> TextModel:
    notes = load_notes(folder)
    vocabulary = vocabulary_of(notes, name)
    model = load_model(folder).float()
    require_codes_of(model, vocabulary)
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    noted: Any = notes.get("text")
    about: Mapping[str, Any] = noted if isinstance(noted, Mapping) else {}
    lengths = tuple(int(count) for count in about.get("lengths") or ()) if vocabulary.end is None else ()
    counts, weights = None, (1.0, 0.0)
    whole, direct = about.get("readings") or (1.0, 0.0)
    if (folder / COUNTS).is_file():
        from anyfill.text.counting import as_counts

        counts = as_counts(folder / COUNTS)
        if counts is not None and counts.powers is not None:
            whole, direct, counted = counts.powers
            weights = (1.0, counted)
    readings = (float(whole), float(direct))
    return TextModel(model, vocabulary, name, bool(about.get("lines")), lengths, counts, weights, readings)


def require_codes_of(model: Model, vocabulary: Vocabulary) -> None:
    """ValueError unless the model has as many codes as the vocabulary; see ``vocabulary_of`` for which they are."""
    codes = model.likelihood.width if isinstance(model.likelihood, Categorical) else None
    if codes != vocabulary.size:
        got = "a model of something else" if codes is None else f"a model of {codes} codes"
        raise refuse("model", expected=f"one of {vocabulary.size} codes, as the vocabulary has", got=got)
