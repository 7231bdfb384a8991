"""Any-order trees: MAC's and ARDM's questions with boosted trees in place of a network, one model for each variable.

A network learns p(x_j | known) for all j at once, from a fresh question in every step. Trees are grown on a fixed set
of rows, so the questions are drawn beforehand: every row is copied C times, each copy with a question of its own, and

    p_j  is fitted to the pairs  (x_known of copy c, known;  x_j)    of all copies in which j is asked and present.

What is not known is missing to the trees, which send missing values down a branch of their own. Questions are those of
a table with holes, half of each kind: holes at the usual rate of the table, and any number of them (ARDM's step: the
number of known variables is uniform). So every variable is trained given every subset of the others, any order may be
followed, and chains of log-probabilities are exact as for any network. UnmaskingTrees (McCarter 2024) grows trees on
rows unmasked one by one, the same questions; here answers are densities and their sums, there draws.
"""

from torch import Generator, Tensor

from anyfill.questions.mixture import Mixture
from anyfill.questions.subsets import Bernoulli
from anyfill.rows import Rows

USUAL = (0.15, 0.3)
"""Bounds of the rate of holes that is taken for the usual one. Rows have their own already, and these come on top."""


def questions(variables: int, missing: float) -> Mixture:
    """What is asked in training of N variables, in rows of which such a share is usually missing."""
    usual = Bernoulli(variables, min(max(missing, USUAL[0]), USUAL[1]))
    return Mixture((usual, Bernoulli(variables)))


def masked_copies(rows: Rows, asked_by: Mixture, copies: int, *, generator: Generator) -> tuple[Rows, Tensor]:
    """C copies of every row one after the other, and bool (C B, N): what is known of each; asked is what is not."""
    question = asked_by.sample(copies * len(rows), generator=generator)
    many = Rows(rows.x.repeat(copies, 1), rows.present.repeat(copies, 1))
    return many, question.given & many.present
