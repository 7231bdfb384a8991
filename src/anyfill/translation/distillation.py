"""Distillation at the level of sequences: every target is replaced by the teacher's own translation of the source.

A parallel decoder cannot say one of several translations, each place without knowing of the others; a teacher says one.
What comes out is a file of pairs, to be trained on like any other.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from anyfill.checks import refuse
from anyfill.disk import whole_file
from anyfill.interface.output import require_new
from anyfill.interface.progress import metered
from anyfill.translation.cleaning import Counts, Rules
from anyfill.translation.hypotheses import Decoding, decoding_of
from anyfill.translation.model import Translator
from anyfill.translation.placeholders import placeholders, protected, restored
from anyfill.translation.reading import Pair, sources_of
from anyfill.translation.training import clean_pairs


def distill(
    teacher: Translator,
    files: Path | str | Sequence[Path | str],
    output: Path | str,
    *,
    columns: tuple[str, str] | None = None,
    beam: int | None = None,
    force: bool = False,
    progress: bool = False,
    most: int | None = None,
) -> int:
    """Write pairs whose targets are the teacher's translations, as TSV (source, target); how many.

    Args:
        teacher: what translates, usually an autoregressive model with a beam.
        files, columns: as in ``train``; their targets are not read, but what is left out there is left out here.
        output: a new file.
        beam: beams of the teacher, if it is autoregressive; None = 4.
        force: replace a file that is there.
        progress: show on stderr how far it is.
        most: so many pairs at most.
    """
    how = decoding_of(teacher.recipe, {"beam": beam})
    path = Path(output)
    require_new(path, force=force)
    paths = [Path(one) for one in ([files] if isinstance(files, str | Path) else files)]
    sources = sources_of(paths, *teacher.languages, columns)
    pairs = clean_pairs(sources, teacher.languages[0], Rules(), Counts(), spelt=True)
    wanted = dict.fromkeys(pair[0] for pair in pairs)
    texts = list(wanted)[:most]
    if not texts:
        raise refuse("pairs", expected="at least one that is worth training on", got="none")
    count = 0
    with whole_file(path) as file:
        work = _distilled(teacher, texts, how)
        for some in metered(work, "distilling") if progress else (one for one, _ in work):
            for source, target in some:
                file.write(f"{source}\t{target}\n".encode())
                count += 1
    return count


def _distilled(teacher: Translator, texts: Sequence[str], how: Decoding) -> Iterator[tuple[list[Pair], float]]:
    """Pairs, some at a time; sources of like length are translated together. The teacher sees symbols."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    at_once = teacher.decoder.rows_at_once
    for start in range(0, len(order), at_once):
        some = [texts[i] for i in order[start : start + at_once]]
        codes = [teacher.vocabulary.encode(protected(text, placeholders(text))) for text in some]
        fits = [(text, own) for text, own in zip(some, codes) if 0 < len(own) <= teacher.decoder.length]
        made: list[Pair] = []
        if fits:
            best = teacher.decoder.best_codes([own for _, own in fits], how)
            made = [
                (text, restored(teacher.vocabulary.decode(one), placeholders(text)))
                for (text, _), one in zip(fits, best)
            ]
        yield [pair for pair in made if pair[1]], min(1.0, (start + at_once) / len(order))
