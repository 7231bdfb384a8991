"""How far what ``fill`` answers to a blank of one or two codes is from the posterior of p(text): for text_consistency.

The question is put as a user would put it, ``[1]`` or ``[2]`` in the text. Its answer is the share of each fill that
was compared; the reference (``benchmarks.text_reference``) has the posterior of every answer that it read, and what all
others have. Cuts of one text into codes are summed. An answer that only ``fill`` has read counts by its own p(text). So

    variation = 1/2 sum over compared texts of |share - posterior| + 1/2 (posterior of all that was not compared).
"""

import math
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anyfill.text.blanks import blank_window, sheet_of
from anyfill.text.candidates import Candidate, candidates
from anyfill.text.model import TextModel
from anyfill.text.sampling import SamplingOptions
from anyfill.text.template import Lengths, Template
from benchmarks.text_reference import kept_reference


class FillLaw(NamedTuple):
    """What ``fill`` made of one blank.

    Attributes:
        variation: total variation between its shares and the posterior.
        covered: the posterior of all that was compared.
        said: the same as ``fill`` itself estimates it; nan where it does not.
        compared: how many texts were.
        log_share: of the right text among them; -inf = it was not compared.
        log_posterior: of the right text in the reference; -inf = it was not read.
        difference: the largest one, in nats, between log p of a row as ``fill`` and as the reference have it.
        missing: what the reference did not read, as it estimates it.
        bounded: what stopped early there has at most.
        seconds: CPU seconds of ``fill``, five fills asked for.
    """

    variation: float
    covered: float
    said: float
    compared: int
    log_share: float
    log_posterior: float
    difference: float
    missing: float
    bounded: float
    seconds: float


def fill_law(loaded: TextModel, folder: Path, number: int, codes: Tensor, start: int, size: int) -> FillLaw:
    """Ask ``fill`` for a blank of ``size`` codes at ``start`` of codes (L,), the ``number``-th that is asked."""
    vocabulary = loaded.vocabulary
    given = vocabulary.decode(codes[:start]), vocabulary.decode(codes[start + size :])
    template = Template(given, (Lengths(size, size),))
    sheet = sheet_of(template, vocabulary, lines=loaded.lines)
    right = codes[start : start + size]
    whole = torch.cat([sheet.stretches[0], right, sheet.stretches[1]])  # as the text is read, however it had been cut
    path = folder / f"{size}-{number}.safetensors"
    known = kept_reference(path, loaded.model, whole, len(sheet.stretches[0]), size)
    started = time.process_time()
    loaded.fill(_escaped(given[0]) + f"[{size}]" + _escaped(given[1]), n=5, seed=0)
    seconds = time.process_time() - started
    found, covered = _compared(loaded, template)
    by_codes = {tuple(one): value for one, value in zip(known.answers.tolist(), known.log_prob.tolist())}
    posterior: dict[str, float] = {}
    for one, value in by_codes.items():
        text = sheet.answer(0, torch.tensor(one))
        if text is not None and value > -math.inf:
            posterior[text] = posterior.get(text, 0.0) + math.exp(value - known.log_total)
    shares = {one.answers[0]: one.share for one in found}
    for one in found:
        posterior.setdefault(one.answers[0], math.exp(one.log_prob - known.log_total))
    inside = sum(posterior[text] for text in shares)
    apart = sum(abs(share - posterior[text]) for text, share in shares.items())
    wanted = sheet.answer(0, right) or ""
    same = [
        (one.log_prob, by_codes[tuple(one.codes[0].tolist())])
        for one in found
        if tuple(one.codes[0].tolist()) in by_codes
    ]
    return FillLaw(
        variation=0.5 * apart + 0.5 * max(0.0, 1.0 - inside),
        covered=inside,
        said=math.nan if covered is None else covered,
        compared=len(found),
        log_share=math.log(max(shares.get(wanted, 0.0), 1e-300)) if wanted in shares else -math.inf,
        log_posterior=math.log(posterior[wanted]) if posterior.get(wanted) else -math.inf,
        difference=max((abs(own - other) for own, other in same if other > -math.inf), default=0.0),
        missing=known.missing,
        bounded=known.bounded,
        seconds=seconds,
    )


def _compared(loaded: TextModel, template: Template) -> tuple[list[Candidate], float | None]:
    """All that ``fill`` compares, and which part of everything it says that this is."""
    sheet = sheet_of(template, loaded.vocabulary, lines=loaded.lines)
    window, sampling = blank_window(sheet, range(1), (), loaded.length), SamplingOptions(seed=0)
    *_, (result, _) = candidates(loaded, sheet, range(1), window, sampling=sampling, generator=sampling.generator())
    if result is None:
        raise ValueError("no answers")
    found, tried = result
    return found, getattr(tried, "covered", None)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("_", r"\_").replace("[", r"\[")


def summary(some: list[FillLaw]) -> dict[str, Any]:
    """Of all blanks of one number of codes."""
    variation = [one.variation for one in some]
    quarters = statistics.quantiles(variation, n=4)
    right = [one for one in some if one.log_share > -math.inf]
    read = [one for one in some if one.log_posterior > -math.inf]
    said = [one for one in some if not math.isnan(one.said)]
    return {
        "blanks": len(some),
        "median": statistics.median(variation),
        "quartiles": [quarters[0], quarters[2]],
        "mean": statistics.mean(variation),
        "not_covered": statistics.mean(1.0 - one.covered for one in some),
        "not_covered_as_fill_says": statistics.mean(1.0 - one.said for one in said) if said else None,
        "off_by": statistics.median(abs(one.said - one.covered) for one in said) if said else None,
        "compared": statistics.mean(one.compared for one in some),
        "right_compared": len(right),
        "log_share_of_right": statistics.mean(one.log_share for one in right) if right else None,
        "reference": {
            "right_read": len(read),
            "log_share_of_right": statistics.mean(one.log_posterior for one in read) if read else None,
            "missing": statistics.mean(one.missing for one in some),
            "bounded": max(one.bounded for one in some),
        },
        "largest_difference_in_log_p": max(one.difference for one in some),
        "cpu_seconds_each": {
            "mean": statistics.mean(one.seconds for one in some),
            "median": statistics.median(one.seconds for one in some),
            "most": max(one.seconds for one in some),
        },
    }
