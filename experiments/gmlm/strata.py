"""Which sentences fail at one pass? The dependence of target words given the source against the passes they need.

    python -m experiments.gmlm.strata

The theory says that strong dependence between target positions makes parallel decoding slow. Here both are measured on
the same sentences. Dependence: the information between adjacent words of the reference given all others and the source,
by a masked model (CMLM) trained on the same pairs,

    I(x_i; x_j | rest) = sum_v p(v | rest) KL( p(x_i | x_j = v, rest) || sum_u p(u | rest) p(x_i | x_j = u, rest) ),

over the ``top`` likeliest values v of x_j, renormalised (all 8,000 would take 8,000 passes a pair), summed over
adjacent pairs and divided by their number. Passes needed: the least T whose output equals that of T = 10, and what chrF
gains from 1 to 10 passes. Strata are quartiles of dependence; Spearman's correlation with a bootstrap interval, overall
and with the sentence's length taken out (ranks regressed on the rank of the length).
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.model import Model
from anyfill.translation.hypotheses import Decoding, padded
from anyfill.translation.metrics import sacrebleu_metrics
from experiments.gmlm.translation import Job, arguments, distilled, plans, test_pairs, trained, write

PASSES = (1, 2, 3, 4, 6, 10)


def adjacent_information(model: Model, source: list[int], target: list[int], top: int = 8) -> float:
    """Mean nats between adjacent words of a target, given the others and the source."""
    n = len(target)
    if n < 2:
        return 0.0
    device = next(model.parameters()).device
    x = torch.tensor([[n, *target]], device=device).expand(n - 1, -1)
    first = torch.arange(1, n, device=device).unsqueeze(1)  # i; j = i + 1
    place = torch.arange(n + 1, device=device)
    hidden = (place == first) | (place == first + 1)
    with model.evaluating():
        memory: Any = model.read(padded([source], device))
        none = torch.zeros(n - 1, dtype=torch.long, device=device)
        before = model.marginals(x, ~hidden, memory.rows(none)).log_probs
        rows = torch.arange(n - 1, device=device)
        likely = before[rows, first[:, 0] + 1].double().topk(top)  # (n - 1, top)
        weight = likely.values.log_softmax(-1)
        told = x.repeat_interleave(top, 0).clone()
        told[torch.arange(len(told), device=device), (first[:, 0] + 1).repeat_interleave(top)] = (
            likely.indices.flatten()
        )
        known = (place != first).repeat_interleave(top, 0)
        zeros = torch.zeros(len(told), dtype=torch.long, device=device)
        after = model.marginals(told, known, memory.rows(zeros)).log_probs
    own = after[torch.arange(len(told), device=device), first[:, 0].repeat_interleave(top)].double()
    own = own.view(n - 1, top, -1)
    mixed = (weight.unsqueeze(2) + own).logsumexp(1, keepdim=True)
    terms = (weight.unsqueeze(2) + own).exp() * (own - mixed)
    return float(torch.where(own.isneginf(), 0.0, terms).sum((1, 2)).mean())


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean ranks."""
    order = values.argsort(kind="stable")
    out = np.empty(len(values))
    out[order] = np.arange(len(values))
    for value in np.unique(values):
        out[values == value] = out[values == value].mean()
    return out


def spearman(a: NDArray[np.float64], b: NDArray[np.float64], out: NDArray[np.float64] | None = None) -> float:
    """Correlation of ranks; with ``out``, of what is left of both when its ranks are taken out."""
    left = [ranks(a), ranks(b)]
    if out is not None:
        base = np.stack([np.ones(len(out)), ranks(out)], 1)
        left = [one - base @ np.linalg.lstsq(base, one, rcond=None)[0] for one in left]
    scale = left[0].std() * left[1].std()
    return float(np.mean((left[0] - left[0].mean()) * (left[1] - left[1].mean())) / scale) if scale > 1e-9 else 0.0


def with_interval(a: Any, b: Any, out: Any = None, resamples: int = 300) -> dict[str, float]:
    """Spearman's correlation and its 95 % bootstrap interval."""
    random, found = np.random.default_rng(0), []
    for _ in range(resamples):
        pick = random.integers(len(a), size=len(a))
        found.append(spearman(a[pick], b[pick], None if out is None else out[pick]))
    low, high = np.quantile(found, [0.025, 0.975]).tolist()
    return {"spearman": spearman(a, b, out), "low": low, "high": high}


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    options = arguments(__doc__ or "", seconds=120.0).parse_args(argv)
    plan = plans(options)[0]
    teacher, _ = trained(plan, Job("teacher", "autoregressive", options.teacher_seconds, seed=options.seed))
    distilled(plan, teacher)
    padir, _ = trained(plan, Job("padir-distilled", "padir", options.seconds, "distilled", seed=options.seed))
    cmlm, _ = trained(plan, Job("cmlm-raw", "cmlm", options.seconds, seed=options.seed))
    (test, pairs), *_ = test_pairs(plan).items()
    codes = [tuple(padir.vocabulary.encode(side)[: plan.length] for side in pair) for pair in pairs]
    outputs = {
        t: [one[0].codes for one in padir.decoder.decode([c[0] for c in codes], Decoding(passes=t, lengths=1))]
        for t in PASSES
    }
    chrf = sacrebleu_metrics().CHRF()
    rows: list[dict[str, float]] = []
    for number, (source, target) in enumerate(codes):
        texts = {t: padir.vocabulary.decode(outputs[t][number]) for t in PASSES}
        scores = {t: chrf.sentence_score(texts[t], [pairs[number][1]]).score for t in PASSES}
        needed = min(t for t in PASSES if outputs[t][number] == outputs[PASSES[-1]][number])
        rows.append(
            {
                "information": adjacent_information(cmlm.decoder.model, source, target),
                "passes": needed,
                "gain": scores[PASSES[-1]] - scores[1],
                "chrf_1": scores[1],
                "chrf_10": scores[PASSES[-1]],
                "pieces": len(target),
            }
        )
    table = {key: np.array([row[key] for row in rows], dtype=np.float64) for key in rows[0]}
    edges = np.quantile(table["information"], [0.25, 0.5, 0.75])
    stratum = np.searchsorted(edges, table["information"])
    strata = [
        {
            "stratum": s + 1,
            "sentences": int((stratum == s).sum()),
            **{k: float(v[stratum == s].mean()) for k, v in table.items()},
        }
        for s in range(4)
        if (stratum == s).any()
    ]
    payload = {
        "test": test,
        "strata": strata,
        "passes_by_information": with_interval(table["information"], table["passes"]),
        "passes_by_information_at_equal_length": with_interval(table["information"], table["passes"], table["pieces"]),
        "gain_by_information": with_interval(table["information"], table["gain"]),
        "gain_by_information_at_equal_length": with_interval(table["information"], table["gain"], table["pieces"]),
    }
    write("strata", payload, options, plan.device)


if __name__ == "__main__":
    main()
