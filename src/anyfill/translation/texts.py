"""Texts through a decoder of codes: cut into parts that fit it, decoded in batches, and put together again.

A text is cut into sentences where it is longer than the model's rows, or where the model is one of sentences, and those
into parts where need be: whatever comes in, every word of it is seen. Placeholders are protected (``placeholders.py``,
``keeping.py``); a text with more of them than there are symbols is cut into passages. Empty text stays empty, and what
has no letter, a text, a passage or a sentence that is cut off, is nothing to translate.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from anyfill.checks import counted, refuse
from anyfill.translation.constraints import Keep
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import Decoding, Hypothesis
from anyfill.translation.keeping import keeping, with_placeholders
from anyfill.translation.marks import quoted
from anyfill.translation.placeholders import (
    has_words,
    is_emptied,
    passages,
    placeholders,
    protected,
    restored,
    spelt_placeholders,
)
from anyfill.translation.sentences import fitting, is_open, opened, remarks, segments, sentences
from anyfill.translation.vocabulary import FIRST, MAX_PLACEHOLDERS, Joint, plain

_BATCH = {"cpu": 64, "cuda": 2048}
"""Texts translated at a time."""


def as_texts(text: object, name: str = "text") -> list[str]:
    """One text, or several, as a list; ValueError if it is something else."""
    several = [text] if isinstance(text, str) else list(text) if isinstance(text, Iterable) else [text]
    found = [one for one in several if isinstance(one, str)]
    if len(found) < len(several):
        other = next(one for one in several if not isinstance(one, str))
        raise refuse(name, expected="a text, or several", got=repr(other)[:60])
    return found


@dataclass(frozen=True, slots=True)
class Translation:
    """What came out.

    Attributes:
        source: the text that was translated.
        text: its translation.
        score: mean log-probability of a piece, nats; by the passes that wrote them, or exact (see the model's recipe).
        passes: of the network, the most over sentences.
        history: the pieces before the first pass and after each, if they were asked for.
        remarks: what a reader should know.
    """

    source: str
    text: str
    score: float
    passes: int
    history: tuple[tuple[str, ...], ...] = ()
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Passage:
    """A text, or a stretch of one, as the decoder gets it.

    Attributes:
        text: plain, with symbols for placeholders.
        kept: the placeholders that these stand for.
        stop: whether it was lent a full stop.
        sentences: what it is written from, one by one: parts of it in codes, and texts without words as they are.
        glue: what stands behind it, before the next.
        lead: what stands before it.
    """

    text: str
    kept: Sequence[str]
    stop: bool
    sentences: Sequence[list[int] | str]
    glue: str
    lead: str = ""

    @property
    def parts(self) -> list[list[int]]:
        """What is translated of it."""
        return [one for one in self.sentences if not isinstance(one, str)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Texts:
    """A decoder of codes, and what texts need beside it.

    Attributes:
        decoder: the model.
        languages: (source, target).
        name: what to call it.
        odds: for each code, log-odds that a piece is of the source language; empty = not known.
        closes: whether the model is one of sentences: a text that ends in no mark is read with a full stop, which its
            translation loses again, and several sentences are translated one by one.
        int8: whether its matrices were rounded to 8 bits.
    """

    decoder: Decoder
    languages: tuple[str, str]
    name: str
    odds: tuple[float, ...] = ()
    closes: bool = False
    int8: bool = False

    def __repr__(self) -> str:
        weights = sum(one.numel() for one in self.decoder.model.parameters())
        source, target = self.languages
        size = "int8" if self.int8 else f"{weights:,} weights"
        return f"{type(self).__name__}({self.name}: {source} to {target}, {self.decoder.recipe}, {size})"

    @property
    def vocabulary(self) -> Joint:
        """Of both languages."""
        return self.decoder.vocabulary

    @property
    def recipe(self) -> str:
        """How it was trained and decodes."""
        return self.decoder.recipe

    def in_batches(
        self, texts: Sequence[str], how: Decoding, keeps: Sequence[Keep], protect: bool, history: bool
    ) -> Iterator[tuple[list[Translation], float]]:
        """Translations of some texts at a time, none where only parts of them are done, and the share that is done."""
        size = _BATCH.get(self.decoder.device.type, _BATCH["cpu"])
        for start in range(0, len(texts), size):
            some = texts[start : start + size]
            for made, share in self._translated(some, how, keeps, protect, history):
                yield made, (start + share * len(some)) / len(texts)

    def _translated(
        self, texts: Sequence[str], how: Decoding, keeps: Sequence[Keep], protect: bool, history: bool
    ) -> Iterator[tuple[list[Translation], float]]:
        dotted = any(one.text.endswith(".") for one in keeps)  # which is not taken away from what is kept
        cut = [
            self._passages(text, protect, dotted, whole=bool(keeps))
            if keeps or has_words(text, protect=protect)
            else []
            for text in texts
        ]
        if keeps and (count := sum(len(one.parts) for one in cut[0])) != 1:
            raise refuse("--keep", expected="one sentence that fits the model", got=counted(count, "part"))
        sources = [codes for some in cut for one in some for codes in one.parts]
        ways = keeping(self.decoder, keeps, how) if keeps else None
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))  # like lengths together
        found: list[Hypothesis | None] = [None] * len(sources)
        size = _BATCH.get(self.decoder.device.type, _BATCH["cpu"])
        for start in range(0, len(order), size):
            some = order[start : start + size]
            best = self.decoder.decode([sources[i] for i in some], how, ways=ways, history=history)
            for place, hypotheses in zip(some, best):
                found[place] = with_placeholders(
                    self.decoder, sources[place], hypotheses[0], how, keeps, history=history
                )
            if start + size < len(order):
                yield [], (start + size) / len(order)
        written = iter([one for one in found if one is not None])
        owned = [[(one, [next(written) for _ in one.parts]) for one in some] for some in cut]
        yield [self._joined(text, own) for text, own in zip(texts, owned)], 1.0

    def _passages(self, text: str, protect: bool, dotted: bool, *, whole: bool) -> list[Passage]:
        """A text as the decoder gets it; ``dotted`` = no full stop is lent, ``whole`` = not cut unless it must be."""
        bare = plain(text)
        spelt = iter(spelt_placeholders(text, bare))
        opens, bare, closes = self._quoted(bare)
        found: list[Passage] = []
        for stretch in passages(bare) if protect else [bare]:
            kept = [next(spelt, one) for one in placeholders(stretch)] if protect else []
            hidden = protected(stretch, kept)
            stop = self.closes and not dotted and is_open(hidden)
            own = self._sentences(hidden.strip() + "." * stop, whole=whole)
            if whole and stop and len(own) > 1:  # without what is lent it may fit
                stop, own = False, self._sentences(hidden.strip(), whole=whole)
            found.append(Passage(hidden, kept, stop, own, " " if stretch.endswith(" ") else ""))
        found[0] = replace(found[0], lead=opens)
        found[-1] = replace(found[-1], glue=found[-1].glue + closes)
        return found

    def _quoted(self, text: str) -> tuple[str, str, str]:
        """A plain text without quotation marks around it that the model cannot read, and these, for its translation.

        A word that touches one is so read as it is anywhere else.
        """
        opens, inside, closes = quoted(text)
        marks = (opens + closes).replace(" ", "")
        return ("", text, "") if self.vocabulary.readable(marks) == marks else (opens, inside, closes)

    def _joined(self, text: str, cut: Sequence[tuple[Passage, Sequence[Hypothesis]]]) -> Translation:
        if not cut:
            return Translation(text, text if plain(text) else "", 0.0, 0)
        found = [one for _, some in cut for one in some]
        words = sum(len(one.codes) for one in found)
        score = sum(one.score * len(one.codes) for one in found) / max(words, 1)
        parts = [codes for passage, _ in cut for codes in passage.parts]
        said = remarks(parts, self.decoder.length, self.vocabulary, self.languages, self.odds)
        passes = max((one.passes for one in found), default=0)
        written = "".join(passage.lead + self.written(passage, some) + passage.glue for passage, some in cut)
        if is_emptied(text, written):
            said = (*said, "what stood between two tags stands elsewhere, or is lost: read what became of it")
        return Translation(text, written, score, passes, self._history(cut), said)

    def written(self, passage: Passage, found: Sequence[Hypothesis]) -> str:
        """The translation of a passage, whose parts became these, spelt out."""
        made = iter(found)
        said = [one if isinstance(one, str) else self.vocabulary.decode(next(made).codes) for one in passage.sentences]
        written = " ".join(said)
        return restored(opened(written) if passage.stop else written, passage.kept, passage.text)

    def _history(self, cut: Sequence[tuple[Passage, Sequence[Hypothesis]]]) -> tuple[tuple[str, ...], ...]:
        """The pieces of all parts before the first pass and after each; a part that has ended stays as it is."""
        seen: list[Sequence[Sequence[str]]] = []
        for passage, some in cut:
            made = iter(some)
            for one in passage.sentences:
                if isinstance(one, str):
                    seen.append([[f"▁{word}" for word in restored(one, passage.kept).split()]])
                else:
                    rows = [[self._shown(code, passage.kept) for code in row] for row in next(made).history]
                    seen.append(rows or [[]])
        passes = max((len(one.history) for _, some in cut for one in some), default=0)
        return tuple(
            tuple(piece for own in seen for piece in own[min(number, len(own) - 1)]) for number in range(passes)
        )

    def _shown(self, code: int, kept: Sequence[str]) -> str:
        """A piece, placeholders spelt out."""
        number = code - FIRST
        return kept[number] if 0 <= number < len(kept) else self.vocabulary.piece(code)

    def _sentences(self, text: str, *, whole: bool) -> list[list[int] | str]:
        """A plain text with symbols as a ``Passage`` has it; ``whole`` = all is translated, uncut if it fits."""
        if whole:
            return [*self.segments(text)]
        found: list[list[int] | str] = []
        for sentence in sentences(text) if self.closes else [text]:
            for one in fitting(sentence, self.vocabulary, self.decoder.length):
                found += self.segments(one) if has_words(one, protect=False) else [one]
        return found

    def segments(self, text: str) -> list[list[int]]:
        """The codes of a plain text, in parts that fit the model."""
        return segments(text, self.vocabulary, self.decoder.length)

    def sentence_passages(self, text: str) -> list[Passage]:
        """The passages of a sentence, each of them one part; ValueError if one does not fit the model."""
        found = self._passages(text, True, False, whole=True)
        for one in found:
            self._only(one.parts)
        return found

    def one_sentence(self, text: str) -> tuple[list[int], list[str]]:
        """The codes of a text that fits the model, and its placeholders; ValueError if it does not."""
        bare = plain(text)
        kept = spelt_placeholders(text, bare)[:MAX_PLACEHOLDERS]
        return self._only(self.segments(protected(bare, kept))), kept

    def _only(self, parts: Sequence[list[int]]) -> list[int]:
        if len(parts) != 1:
            limit = self.decoder.length
            got = counted(sum(map(len, parts)), "piece")
            raise refuse("text", expected=f"a sentence of 1 to {limit} pieces", got=got)
        return parts[0]
