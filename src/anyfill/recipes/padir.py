"""PaDIR: parallel decoding by iterative refinement (GMLM, sections 3.2, L.1 and L.2), for translation.

    X0     each word is the right one with probability 0.15, otherwise a uniformly random code; which is not told
    X1     the argmax of the answer to X0, everywhere; no gradient flows through it
    loss   1/S sum_s - sum_i log p(x_i | X_s, n, source)  -  log p(n | source),   S = 2 stages (eq. L.64 and below)

The encoder reads the source once for both stages. The length is variable 0, trained jointly with weight 1 a sentence:
the loss of a row is then in nats of a whole target. Decoding starts from random codes, rewrites everything T times by
argmax, remasks stutter in between, and stops early where nothing changes (eq. L.63).

From the released code this differs where the paper does: the mean over stages, not the sum. It replaces stuttered words
of X1 by those of X0 in training as well; the paper speaks of decoding only, and so does this. ``start="mask"`` begins
from BLANK instead of noise, which the paper's frame allows.
"""

from typing import Any, Literal

from anyfill.checks import require_member
from anyfill.corruption import Constant, Headed, Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.networks.encoder_decoder import BLANK, EncoderDecoder
from anyfill.objectives.masked import MaskedLoss
from anyfill.objectives.objective import Everyone, HeadCounts
from anyfill.questions.subsets import Bernoulli, HeadGiven
from anyfill.samplers.draw import Draw
from anyfill.samplers.parallel import RewriteAll

KEPT = 0.15


def objective(
    length: int, *, stages: int = 2, kept: float | None = KEPT, length_weight: float = 1.0, smoothing: float = 0.0
) -> MaskedLoss:
    """Loss on every word, over ``stages`` steps; ``kept`` = None draws the share of right words for each row."""
    questions = HeadGiven(Bernoulli(length, None if kept is None else 1.0 - kept))
    weights = HeadCounts(Everyone(), length_weight)
    return MaskedLoss(questions, weights, unroll=stages, redraw_given=True, answer="mode", kept=1, smoothing=smoothing)


def model(
    codes: int,
    length: int,
    *,
    positional: bool = True,
    start: Literal["noise", "mask"] = "noise",
    seed: int = 0,
    **size: Any,
) -> Model:
    """An untrained model of targets of at most ``length`` words.

    Args:
        codes: of the vocabulary of both languages.
        length: N.
        positional: positional attention in the decoder.
        start: what stands where no word is: random codes, or BLANK.
        seed: of the first weights.
        size: width, depth, heads, decoder_depth, places, expansion and dropout of ``EncoderDecoder``; the paper's are
            ``width=512, depth=6, heads=8`` with 32,128 codes, 67 M weights.
    """
    require_member("start", start, ("noise", "mask"))
    with seeded(seed):
        network = EncoderDecoder(codes, length, positional=positional, **size)
    noise = Uniform(codes, mask_visible=False) if start == "noise" else Constant(BLANK)
    return Model(network, Categorical(codes), corruption=Headed(noise))


def sampler(passes: int = 4, *, stutter: bool = True) -> tuple[RewriteAll, Draw]:
    """T passes by argmax; ``stutter`` = remask it in between."""
    return RewriteAll(passes, repeats="previous" if stutter else "allow"), Draw(temperature=0.0)
