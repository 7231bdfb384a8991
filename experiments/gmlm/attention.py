"""Where do positions look whose dependency the model misses? GMLM section 3.4, Tables 4 and 5, with a control.

    python -m experiments.gmlm.attention

A stutter (a piece equal to the one before it) is a dependency that parallel decoding missed. For adjacent pairs of the
last pass, in the last layer of the decoder, stuttered pairs are compared with all others:

    self-attention     a(i, i+1) and a(i+1, i): least, mean and most over heads; P(one is among the other's k most seen)
    cross-attention    total variation and cosine distance of the two places' looks at the source; P(their k most seen
                       source places meet)

Decoding is without stutter remasking: else there is none to look at. The control that the paper lacks: two pieces of
one word share their source anyway, so pairs are split into "same word" and "word boundary"; a stutter is by nature the
latter only where the second piece begins a word. Means with 95 % bootstrap intervals over sentences.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill import Question, recipes
from anyfill.networks.encoder_decoder import EncoderDecoder
from anyfill.samplers import trace
from anyfill.translation.hypotheses import padded
from anyfill.translation.model import Translator
from experiments.gmlm.translation import Job, arguments, distilled, plans, test_pairs, trained, write


def last_looks(network: EncoderDecoder, x: Tensor, memory: Any) -> tuple[Tensor, Tensor]:
    """Self- (B, H, L, L) and cross-attention (B, H, L, S) of the last layer, of a pass over x (B, L + 1)."""
    known = torch.ones_like(x, dtype=torch.bool)
    h, places, alive = network.begin_words(x, known)
    *front, last = list(network.decoder)
    for number, layer in enumerate(front):
        h = layer(h, places, alive, (memory.keys[number], memory.values[number], memory.visible))
    own = last.attention
    key = own.stored(own.norm(h))[0]
    selves = own.weights(h, key, alive)
    h = last.placed(h + own(h, alive), places, alive)
    return selves, last.cross.weights(h, memory.keys[-1], memory.visible)


def pairs_of(translator: Translator, sources: list[list[int]], passes: int, batch: int = 64) -> list[dict[str, Any]]:
    """A row for each adjacent pair of each sentence's best length."""
    model, vocabulary = translator.decoder.model, translator.vocabulary
    network: Any = model.network
    rows: list[dict[str, Any]] = []
    policy, draw = recipes.padir.sampler(passes, stutter=False)
    for start in range(0, len(sources), batch):
        some = sources[start : start + batch]
        with model.evaluating():
            memory = model.read(padded(some, translator.decoder.device))
            length = memory.lengths.argmax(1) + 1
            x = torch.zeros(len(some), int(length.max()) + 1, dtype=torch.long, device=length.device)
            x[:, 0] = length
            told = (torch.arange(x.shape[1], device=x.device) == 0).expand(len(some), -1)
            asked = (torch.arange(x.shape[1], device=x.device) <= x[:, :1]) & ~told
            generator = torch.Generator(x.device).manual_seed(0)
            states = list(
                trace(model, x, Question(told, asked), policy=policy, draw=draw, context=memory, generator=generator)
            )
            selves, crosses = last_looks(network, states[-2].x, memory)
        for row, n in enumerate(length.tolist()):
            words = states[-1].x[row, 1 : n + 1].tolist()
            size = len(some[row])
            for i in range(n - 1):
                found = measures(selves[row, :, :n, :n], crosses[row, :, :n, :size], i)
                begins = vocabulary.begins_word[words[i + 1]]
                rows.append({"sentence": start + row, "stutter": words[i] == words[i + 1], "boundary": begins, **found})
    return rows


def measures(own: Tensor, cross: Tensor, i: int) -> dict[str, float]:
    """Of the pair (i, i + 1): self-attention (H, L, L), cross-attention (H, L, S)."""
    both = torch.stack([own[:, i, i + 1], own[:, i + 1, i]])
    first, second = cross[:, i], cross[:, i + 1]
    apart = 0.5 * (first - second).abs().sum(-1)
    cosine = 1 - torch.nn.functional.cosine_similarity(first, second, dim=-1)
    found: dict[str, float] = {}
    for name, values in (("self", both), ("tv", apart), ("cosine", cosine)):
        found |= {
            f"{name}_min": values.min().item(),
            f"{name}_mean": values.mean().item(),
            f"{name}_max": values.max().item(),
        }
    for k in (1, 2):
        if own.shape[-1] > k:
            seen = own.mean(0)
            top = [set(seen[a].topk(k).indices.tolist()) for a in (i, i + 1)]
            found[f"self_top{k}"] = float((i + 1 in top[0]) or (i in top[1]))
        if cross.shape[-1] > k:
            looks = cross.mean(0)
            tops = [set(looks[a].topk(k).indices.tolist()) for a in (i, i + 1)]
            found[f"cross_top{k}"] = float(bool(tops[0] & tops[1]))
    return found


def summary(rows: list[dict[str, Any]], resamples: int = 300) -> dict[str, Any]:
    """For stutter and other, at all pairs and by the control: mean, deviation, 95 % interval, how many."""
    names = [key for key in rows[0] if key not in ("sentence", "stutter", "boundary")] if rows else []
    out: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for group, fits in {
        "all": lambda row: True,
        "word boundary": lambda row: row["boundary"],
        "same word": lambda row: not row["boundary"],
    }.items():
        for kind in (True, False):
            some = [row for row in rows if row["stutter"] == kind and fits(row)]
            label = f"{group}, {'stutter' if kind else 'other'}"
            out[label] = {"pairs": len(some), "sentences": len({row["sentence"] for row in some})}
            for name in names if some else ():
                values = np.array([row.get(name, np.nan) for row in some])
                owner = np.array([row["sentence"] for row in some])
                each = [values[owner == one] for one in np.unique(owner)]
                means = []
                for _ in range(resamples):
                    pick = random.integers(len(each), size=len(each))
                    means.append(float(np.nanmean(np.concatenate([each[p] for p in pick]))))
                low, high = np.quantile(means, [0.025, 0.975]).tolist()
                out[label][name] = {
                    "mean": float(np.nanmean(values)),
                    "deviation": float(np.nanstd(values)),
                    "low": low,
                    "high": high,
                }
    return out


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = arguments(__doc__ or "", seconds=120.0)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args(argv)
    plan = plans(options)[0]
    teacher, _ = trained(plan, Job("teacher", "autoregressive", options.teacher_seconds, seed=options.seed))
    distilled(plan, teacher)
    translator, found = trained(plan, Job("padir-distilled", "padir", options.seconds, "distilled", seed=options.seed))
    (test, pairs), *_ = test_pairs(plan).items()
    sources = [translator.vocabulary.encode(pair[0])[: plan.length] for pair in pairs]
    rows = pairs_of(translator, sources, options.passes)
    payload = {"test": test, "training": found, "passes": options.passes, "pairs": len(rows), "groups": summary(rows)}
    write("attention", payload, options, plan.device)


if __name__ == "__main__":
    main()
