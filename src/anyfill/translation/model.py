"""A model that translates, and what can be asked of it: translate, alternatives, fill, adapt, score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from anyfill.checks import counted, refuse, require_count
from anyfill.interface.options import chosen_seed
from anyfill.interface.progress import metered
from anyfill.interface.threads import free_threads, threads
from anyfill.training import load_model, load_notes
from anyfill.training.checkpoint import is_model
from anyfill.translation.choices import Choice, edited, fillings, others
from anyfill.translation.constraints import parse_keep
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import NOISY, decoding_of
from anyfill.translation.likelihood import Score, exact_score, has_likelihood
from anyfill.translation.placeholders import protected, spelt_placeholders
from anyfill.translation.recipes import layout_of
from anyfill.translation.sentences import CLOSED
from anyfill.translation.texts import Texts, Translation, as_texts
from anyfill.translation.vocabulary import Joint, plain

MADE_BY = "anyfill translate train"
NOTES = "translation"
SHIPPED = "translation-"
"""What the folders of models that ship begin with; the languages stand behind it."""
SCORER = "one-pass-"
"""What the names of one-pass models that ship begin with: they score where their neighbour has no likelihood."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Translator(Texts):
    """A trained model, its vocabulary and its languages; made by ``load``.

    Attributes:
        scorer: the shipped model that scores for this one, which has no likelihood; "" = it scores itself, or nobody.
    """

    scorer: str = ""

    def translate(
        self,
        text: str | Sequence[str],
        *,
        passes: int | None = None,
        lengths: int | None = None,
        beam: int | None = None,
        length_penalty: float | None = None,
        keep: str | Sequence[str] = (),
        protect: bool = True,
        seed: int | None = None,
        history: bool = False,
        speculative: bool = False,
        progress: bool = False,
    ) -> Any:
        """Translate a text, or each of several; a ``Translation``, or a list of them.

        What means nothing to the recipe of the model is refused (``anyfill.translation.hypotheses.decoding_options``),
        but for the seed.

        Args:
            text: one, or several.
            passes: of models that decode in parallel: fewer are faster, 4 (None) are mostly enough.
            lengths: how many lengths of the translation these try side by side; None = 3.
            beam: beams of autoregressive models; None = 4.
            length_penalty: of beams: more likes longer translations; None = 1.
            keep: "WORDS" or "WORDS@PLACE" that must stand in the translation of a single sentence.
            protect: placeholders such as %s and <b> come out as they went in.
            seed: of the noise that some models start from; None = 0.
            history: keep what stood after each pass, of models that decode in parallel.
            speculative: one-pass models guess several words at a time, with the same result.
            progress: show on stderr how far it is.
        """
        said: dict[str, Any] = {"passes": passes, "lengths": lengths, "beam": beam, "length_penalty": length_penalty}
        how = decoding_of(self.recipe, {**said, "seed": seed, "speculative": speculative or None})
        one = isinstance(text, str)
        texts = as_texts(text)
        keeps = [
            parse_keep(phrase, spelt_placeholders(texts[0], plain(texts[0])) if protect and texts else ())
            for phrase in as_texts(keep, "keep")
        ]
        if keeps and len(texts) != 1:
            raise refuse("--keep", expected="one sentence", got=counted(len(texts), "text"))
        work = self.in_batches(texts, how, keeps, protect, history)
        with threads(free_threads()):
            made = [
                some for part in (metered(work, "translating") if progress else (p for p, _ in work)) for some in part
            ]
        return made[0] if one else made

    def alternatives(
        self, text: str, n: int = 5, *, passes: int | None = None, seed: int | None = None
    ) -> list[Translation]:
        """Up to ``n`` different translations of a sentence, best first: other lengths, other beams, other noise."""
        require_count("n", n, maximum=100)
        asked = decoding_of(self.recipe, {"passes": passes})
        first = chosen_seed(seed)
        draws = range(first, first + (4 if self.recipe in NOISY else 1))
        lengths, beam = min(max(n, 5), self.decoder.length), min(max(n, 4), 64)
        ways = [replace(asked, lengths=lengths, beam=beam, seed=draw) for draw in draws]
        return _translations(text, others(self, text, n, ways))

    def fill(
        self, text: str, template: str, n: int = 1, *, passes: int | None = None, seed: int = 0
    ) -> list[Translation]:
        """Up to ``n`` translations of a sentence that fill a template, best first.

        Args:
            text: the sentence.
            template: its translation with blanks: ___ of any length, [2] of two pieces; the rest stays as it is.
            n: how many.
            passes, seed: as in ``translate``.
        """
        require_count("n", n, maximum=100)
        how = decoding_of(self.recipe, {"passes": passes, "seed": seed})
        if layout_of(self.recipe) == "end":
            expected = "a model that takes words at any place (padir, cmlm, disco, sundae, one_pass)"
            raise refuse("template", expected=expected, got=f"one of the recipe {self.recipe}")
        return _translations(text, fillings(self, text, template, n, how))

    def adapt(
        self, text: str, draft: str, change: Mapping[str, str], *, passes: int | None = None, seed: int = 0
    ) -> Translation:
        """Post-edit: put other words into a draft and let the rest adapt to them; what was put in stays.

        Args:
            text: the sentence that the draft translates.
            draft: a translation.
            change: words of the draft, and what shall stand there.
            passes, seed: as in ``translate``.
        """
        how = decoding_of(self.recipe, {"passes": passes, "seed": seed})
        return _translations(text, [edited(self, text, draft, change, how)])[0]

    def score(self, text: str, translation: str) -> Score:
        """The exact log-probability of a translation of a sentence.

        PaDIR and SUNDAE predict every word from noise, no joint of them. For the PaDIR models that ship, the one-pass
        models beside them answer; ``Score.by`` says who did.

        Raises:
            ValueError: the model has no likelihood, and nobody who answers in its place.
        """
        if self.scorer:
            return replace(_scorer(self.scorer, self.decoder.device.type).score(text, translation), by=self.scorer)
        source, kept = self.one_sentence(text)
        target = self.vocabulary.encode(protected(plain(translation), kept), spelt=True)  # of this text, no other
        return exact_score(self.decoder, source, target)


def load(
    folder: str | Path | None = None, *, to: str | None = None, device: str = "cpu", int8: bool = False
) -> Translator:
    """A translator, ready to be asked.

    Args:
        folder: made by ``anyfill translate train``; or the way of a model that ships, "de-en" or "en-de" (or
            "one-pass-de-en", "one-pass-en-de"); None = the first of those that translates to this language.
        to: the language it must translate to, in any case; None = any.
        device: "cpu" or "cuda".
        int8: round matrices to 8 bits, on a CPU: quicker, answers differ by rounding; not of one-pass models.

    Raises:
        ValueError: there is no model, it is none that translates, or to another language.
    """
    to = None if to is None else to.lower()
    root = resources.files("anyfill").joinpath("models")
    names = sorted(one.name for one in root.iterdir() if one.name.startswith(SHIPPED)) if root.is_dir() else []
    ways = {name.removeprefix(SHIPPED): name for name in names}
    if folder is None:
        chosen = next((way for way in ways if to is None or way.endswith(f"-{to}")), None)
        if chosen is None:
            how = "anyfill translate train PAIRS.tsv -o FOLDER --from de --to en makes one, then --model FOLDER"
            there = f", or one of {', '.join(ways)}" if ways else "; none ships with this anyfill"
            got = "none" if to is None else f"only --to {to}"
            raise refuse("model", expected=f"the folder of one{there} ({how})", got=got)
        folder = chosen
    if str(folder) in ways and not is_model(folder):
        with resources.as_file(root.joinpath(ways[str(folder)])) as path:
            made = _load(path, str(folder), device)
        if not has_likelihood(made.recipe) and f"{SCORER}{folder}" in ways:
            made = replace(made, scorer=f"{SCORER}{folder}")
    else:
        made = _load(Path(folder), str(folder), device)
    if to is not None and made.languages[1].lower() != to:
        raise refuse("--to", expected=f"{made.languages[1]}, as {folder} translates to", got=to)
    return _in_int8(made) if int8 else made


def _translations(text: str, found: Sequence[Choice]) -> list[Translation]:
    return [Translation(text, one.text, one.score, one.passes) for one in found]


@cache
def _scorer(name: str, device: str) -> Translator:
    """A model that ships, read once; whatever lies in the working folder."""
    root = resources.files("anyfill").joinpath("models")
    with resources.as_file(root.joinpath(f"{SHIPPED}{name}")) as path:
        return _load(path, name, device)


def _in_int8(translator: Translator) -> Translator:
    from anyfill.translation.latency import int8

    decoder = translator.decoder
    if decoder.device.type != "cpu":
        raise refuse("int8", expected="the device cpu", got=decoder.device.type)
    return replace(translator, decoder=replace(decoder, model=int8(decoder.model, traced=False)), int8=True)


def _load(folder: Path, name: str, device: str) -> Translator:
    notes = load_notes(folder)
    about: Any = notes.get(NOTES)
    if not isinstance(about, Mapping) or "vocabulary" not in about:
        raise refuse(name, expected=f"a model that translates ({MADE_BY})", got="a model of something else")
    vocabulary = Joint.from_json(about["vocabulary"])
    model = load_model(folder).float().to(device)
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    odds = tuple(number / 10 for number in about.get("odds") or ())
    source, target = (str(one) for one in about["languages"])
    decoder = Decoder(model, str(about["recipe"]), vocabulary)
    return Translator(decoder, (source, target), name, odds, float(about.get("closed", 0.0)) > CLOSED)
