"""What all other pixels say of each: left-out probabilities of whole pictures, a few passes for all of them.

To ask p(x_i | all others) of every pixel takes as many passes as there are pixels. But far pixels say little of one
another, so those of a lattice, every ``spacing``-th of every ``spacing``-th row, are left out together:

    p(x_i = 1 | pixels that are not on the lattice of i),     spacing² lattices, a pass for each,

and the nearest pixel that is missing beside i is ``spacing`` away (Batson and Royer 2019, Noise2Self). Of a masked
network (``recipes.ardm`` on a U-Net, say) that was trained on questions as sparse as a lattice, ``sparse_objective``.

No pixel has a part in its own probability. As soft targets (``objectives.SoftTargetLoss``) they deviate from
p(x_i | all others) by what the lattice would have said, and by what the network does not know; one that had learnt its
pictures by heart would say the values themselves, so compare its nats on pictures that it was not trained on.
"""

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count
from anyfill.likelihoods.marginals import DiscreteMarginals
from anyfill.model import Model
from anyfill.objectives import MaskedLoss, Rescaled
from anyfill.questions import Bernoulli


def lattice(shape: tuple[int, ...], spacing: int = 4) -> Tensor:
    """int64 (N,): the number of the lattice, 0 … spacing² - 1, that each variable of a picture is on."""
    require_count("spacing", spacing, minimum=2)
    height, width, channels = (*shape, 1)[:3]
    row, column = (torch.arange(side) % spacing for side in (height, width))
    return (row.unsqueeze(1) * spacing + column).flatten().repeat_interleave(channels)


def sparse_objective(shape: tuple[int, ...], spacing: int = 4) -> MaskedLoss:
    """The loss that trains for it: a pixel in spacing² is asked, the rest given; nats of a whole picture."""
    return MaskedLoss(Bernoulli(len(lattice(shape, spacing)), rate=spacing**-2), Rescaled())


@torch.no_grad()
def left_out(model: Model, x: Tensor, shape: tuple[int, ...], *, spacing: int = 4, rows_per_pass: int = 500) -> Tensor:
    """float32 (R, N): the probability that each pixel of binary pictures x (R, N) is 1, given all but its lattice."""
    lattices = lattice(shape, spacing).to(x.device)
    if x.shape[1] != len(lattices):
        raise refuse("x", expected=f"{len(lattices)} variables, as {shape} has", got=tuple(x.shape))
    found = torch.zeros(x.shape, device=x.device)
    for some, out in zip(x.split(rows_per_pass), found.split(rows_per_pass)):
        for number in range(spacing**2):
            asked = lattices == number
            law = model.marginals(some, (~asked).expand_as(some))
            if not isinstance(law, DiscreteMarginals) or law.log_probs.shape[-1] != 2:
                raise refuse("likelihood of the model", expected="values 0 and 1", got=repr(model.likelihood))
            out.copy_(torch.where(asked, law.log_probs[..., 1].exp().float(), out))
    return found
