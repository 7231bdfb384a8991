"""How sure BLEU and Self-BLEU of a set of sentences are: a jackknife over groups of sentences.

Self-BLEU grows with the number of sentences, and a sentence drawn twice is its own best reference: a bootstrap, which
draws sentences twice, would raise it. So groups are left out instead. With g groups (sentence i is in group i mod g)
and θ_k the score of all sentences but those of group k,

    stderr² = (g - 1) / g · sum_k (θ_k - mean of all θ)²

where the θ_k are all of one number of sentences, so that its bias cancels. Both roles of a sentence count, that of a
hypothesis and that of a reference of the others. A 95 % interval is t(g - 1) times the error to both sides. What it
says is how far another set of the same model would be off; the references and the training are taken as they are.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

from anyfill.text.metrics import bleu, self_bleu
from anyfill.text.ngram_tables import NgramTable, Sentences

GROUPS = 20


def left_out(
    sentences: Sentences, references: NgramTable, *, groups: int = GROUPS, n: int = 5
) -> dict[str, list[float]] | None:
    """BLEU-n and Self-BLEU-n without each of the groups; None if a group would have fewer than two sentences."""
    if len(sentences) < 2 * groups:
        return None
    group = np.arange(len(sentences)) % groups
    each = bleu(sentences, references, max_n=n)[:, n - 1]
    rest = [[sentence for sentence, other in zip(sentences, group) if other != k] for k in range(groups)]
    own = [float(self_bleu(some, max_n=n)[:, n - 1].mean()) for some in rest]
    return {"bleu": [float(each[group != k].mean()) for k in range(groups)], "self_bleu": own}


def standard_error(scores: Sequence[float]) -> float:
    """Of a score, from what it is without each of the groups."""
    apart = np.asarray(scores) - np.mean(scores)
    return math.sqrt((len(scores) - 1) / len(scores) * float((apart**2).sum()))


def half_interval(error: float, groups: int = GROUPS) -> float:
    """Half the width of a 95 % interval."""
    return float(student.ppf(0.975, groups - 1)) * error
