"""The exact lab: Ising models, what theory says of masked models on them, and ``anyfill lab ising``.

    complete, clique, lattice, random, read    a model
    fit, variance, mixing, hitting             what is asked of it; each answers with a ``Result``

A result prints as tables, is a picture in a notebook, and saves itself:

>>> from anyfill import ising
>>> model = ising.complete(4, coupling=0.3)
>>> found = ising.variance(model, k=[1, 4])
>>> found
complete graph, N = 4, J = 0.3, h = 0: 10 parameters, one block for each row
<BLANKLINE>
 k   tr Γ_k   ratio to MLE    C_k   C_k tr I^-1   theorem 1   margin   theorem 2   margin
 ────────────────────────────────────────────────────────────────────────────────────────
 1    43.73          2.679   14.7           240       holds     1.46       holds   0.0087
 4    16.33          1.000      1         16.33           -        -       holds        0
<BLANKLINE>
theorem 1, Γ_next <= Γ_k as matrices: holds, least margin 1.46
theorem 2, Γ_k <= C_k I^-1 as matrices: holds, least margin 0
>>> found.document["theorem_1"]
True
>>> found.save("variance.png")        # or .svg, .pdf; all numbers as .json

Everything else is imported from its module.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.ising.clique_hitting import hitting
    from anyfill.ising.fitting import fit
    from anyfill.ising.lab import Result, clique, complete, lattice, random, read
    from anyfill.ising.mixing_times import mixing
    from anyfill.ising.model import Ising
    from anyfill.ising.variances import variance

__all__ = ["Ising", "Result", "clique", "complete", "fit", "hitting", "lattice", "mixing", "random", "read", "variance"]

_VERBS = {"fit": "fitting", "variance": "variances", "mixing": "mixing_times", "hitting": "clique_hitting"}
_HOME = dict.fromkeys(__all__, "lab") | _VERBS | {"Ising": "model"}

__getattr__, __dir__ = lazily(__name__, _HOME)
