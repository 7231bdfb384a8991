"""Blanks of few codes: what the posterior of p(text) is made of, and how much of it was not compared.

For a few codes Bayes' rule over p(text) can be followed nearly to its end (``anyfill.evaluation.posterior``): the
network's direct answer and what stands before the blank propose answers, p(text) of each is read exactly, and what all
others have is estimated. How near that is to the posterior over all answers there are: docs/results/cloze.md.
"""

import torch
from torch import Generator, Tensor

from anyfill.evaluation import Posterior, can_enumerate, posterior
from anyfill.model import Model
from anyfill.questions.question import Question
from anyfill.text.blanks import BlankRow, Sheet
from anyfill.text.leads import Leads

MAX_CODES, MAX_ROWS = 3, 3
"""Codes of all blanks together that are few, and combinations of their lengths."""
WIDTH, KEPT, DRAWS = 384, 1024, 32
"""Beginnings that go on; answers that are read, all combinations together, half as many of one code; draws for what
others have."""
_PLACES = 2**13
"""Beginnings times places, at most, lest their caches fill the memory; of answers eight times as many."""


def is_short(model: Model, rows: list[BlankRow]) -> bool:
    """Whether blanks in these combinations of lengths have few codes, and the model can be asked like this."""
    if not rows or len(rows) > MAX_ROWS or max(int(row.asked.sum()) for row in rows) > MAX_CODES:
        return False
    return all(can_enumerate(model, _question(row)) for row in rows)


def short_posterior(
    model: Model, sheet: Sheet, group: range, row: BlankRow, *, rows: int, whole: int, generator: Generator
) -> Posterior:
    """The likely answers to the blanks of one row, of ``rows`` that are compared, and what all others have.

    So many as ``whole`` are read to their end, however unlikely they are.
    """
    room = int((row.given | row.asked).sum()) + 1
    kept = KEPT // rows if int(row.asked.sum()) > 1 else KEPT // rows // 2
    width, keep = min(WIDTH, max(32, _PLACES // room)), min(kept, max(128, 8 * _PLACES // room))
    return posterior(
        model,
        row.x.unsqueeze(0),
        _question(row),
        width=width,
        keep=keep,
        draws=DRAWS,
        whole=whole,
        allowed=_writable(sheet, group, row),
        generator=generator,
    )


def _question(row: BlankRow) -> Question:
    return Question(row.given.unsqueeze(0), row.asked.unsqueeze(0))


def _writable(sheet: Sheet, group: range, row: BlankRow) -> Tensor:
    """bool (N, codes): what may stand at each place: no end, no unknown code, where a space leads what begins so."""
    vocabulary, leads = sheet.vocabulary, Leads.of(sheet, group, [row])
    never = {vocabulary.end, vocabulary.plain.unknown_code}
    plain = torch.tensor([code not in never for code in range(vocabulary.size)])
    return plain.repeat(len(row.x), 1) if leads is None else plain & leads.allowed[0]
