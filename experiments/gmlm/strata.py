"""Which sentences fail at one pass? The dependence of target words given the source against the passes they need.

    python -m experiments.gmlm.strata [--model en-de] [--sentences 400]

The theory says that strong dependence between target positions makes parallel decoding slow. Here both are measured on
the same sentences of Multi30k's test, with one model: the one that ships, or a folder.

Dependence of adjacent words i, j = i + 1 of a target, given all others and the source. Both places are hidden (as the
model knows it: PaDIR sees noise there, CMLM blanks), then x_j is told, value by value. With p(v) = p(x_j = v | rest),
q_v = p(x_i | x_j = v, rest) and q = sum_v p(v) q_v,

    information   sum_v p(v) KL(q_v || q)           nats; I(x_i; x_j | rest) where the answers are those of one law
    variation     sum_v p(v) 1/2 sum_u |q_v(u) - q(u)|     total variation between the joint and the product

over the ``top`` likeliest values v, renormalised (all 8,000 would take 8,000 passes a pair), averaged over adjacent
pairs. The target is the reference, which no pass has touched, or what the model itself says after 10 passes.

Passes needed: the least T whose output is that of T = 10, one length, nothing decoded again where words were dropped.
What fails at T = 1: chrF and BLEU there against T = 10, and adjacent repeats in what the first pass writes. Beside
dependence stands mere doubt: the mean entropy of the first pass's marginals. Strata are quartiles of dependence;
Spearman's correlations have bootstrap intervals, overall and with length, and with length and doubt, taken out (ranks
regressed on theirs).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyfill.disk import write_bytes
from anyfill.model import Model
from anyfill.samplers import repeated
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import Decoding, padded
from anyfill.translation.metrics import evaluated, sacrebleu_metrics
from anyfill.translation.model import load
from benchmarks.common import RESULTS, environment
from experiments.gmlm.translation import Plan, one_thread, test_pairs
from experiments.where import data_folder

PASSES = (1, 2, 3, 4, 6, 10)
Numbers = NDArray[np.float64]


def adjacent_dependence(
    model: Model, source: list[int], target: list[int], top: int = 8, *, seed: int = 0
) -> dict[str, float]:
    """Mean information and variation between adjacent words of a target, given the others and the source."""
    n = len(target)
    if n < 2:
        return {"information": 0.0, "variation": 0.0}
    device = next(model.parameters()).device
    x = torch.tensor([[n, *target]], device=device).expand(n - 1, -1)
    rows, first = torch.arange(n - 1, device=device), torch.arange(1, n, device=device)  # i; j = i + 1
    place = torch.arange(n + 1, device=device)
    hidden = (place == first[:, None]) | (place == first[:, None] + 1)
    with model.evaluating():
        memory: Any = model.read(padded([source], device))
        x = model.corruption.fill(x, ~hidden, generator=torch.Generator(device).manual_seed(seed))
        answer: Any = model.marginals(x, ~hidden, memory.rows(torch.zeros_like(rows)))
        likely = answer.log_probs[rows, first + 1].double().topk(top)  # (n - 1, top)
        weight = likely.values.log_softmax(-1).unsqueeze(2)
        told, every = x.repeat_interleave(top, 0), torch.arange((n - 1) * top, device=device)
        told[every, (first + 1).repeat_interleave(top)] = likely.indices.flatten()
        known = (place != first[:, None]).repeat_interleave(top, 0)
        answer = model.marginals(told, known, memory.rows(torch.zeros_like(every)))
    own = answer.log_probs[every, first.repeat_interleave(top)].double().view(n - 1, top, -1)
    mixed = (weight + own).logsumexp(1, keepdim=True)
    terms = (weight + own).exp() * (own - mixed)
    apart = 0.5 * (weight.exp() * (own.exp() - mixed.exp()).abs()).sum((1, 2))
    information = torch.where(own.isneginf(), 0.0, terms).sum((1, 2))
    return {"information": float(information.mean()), "variation": float(apart.mean())}


def first_pass(decoder: Decoder, source: list[int], *, seed: int = 0) -> dict[str, float]:
    """Mean entropy of what the first pass says at the likeliest length, and its adjacent repeats."""
    model, device = decoder.model, decoder.device
    with model.evaluating():
        memory: Any = model.read(padded([source], device))
        n = int(memory.lengths[0].argmax()) + 1
        x = torch.tensor([[n, *[0] * n]], device=device)
        known = torch.arange(n + 1, device=device).unsqueeze(0) == 0
        x = model.corruption.fill(x, known, generator=torch.Generator(device).manual_seed(seed))
        found = model.marginals(x, known, memory)
    written = torch.where(known, x, found.mode())
    return {"doubt": float(found.entropy()[0, 1:].mean()), "repeats": float(repeated(written)[0].sum())}


def ranks(values: Numbers) -> Numbers:
    """Mean ranks."""
    order = values.argsort(kind="stable")
    out = np.empty(len(values))
    out[order] = np.arange(len(values))
    for value in np.unique(values):
        out[values == value] = out[values == value].mean()
    return out


def spearman(a: Numbers, b: Numbers, *without: Numbers) -> float:
    """Correlation of ranks; with further numbers, of what is left of both when their ranks are taken out."""
    left = [ranks(a), ranks(b)]
    if without:
        base = np.stack([np.ones(len(a)), *(ranks(one) for one in without)], 1)
        left = [one - base @ np.linalg.lstsq(base, one, rcond=None)[0] for one in left]
    scale = left[0].std() * left[1].std()
    return float(np.mean((left[0] - left[0].mean()) * (left[1] - left[1].mean())) / scale) if scale > 1e-9 else 0.0


def with_interval(a: Numbers, b: Numbers, *without: Numbers, resamples: int = 300) -> dict[str, float]:
    """Spearman's correlation and its 95 % bootstrap interval."""
    random, found = np.random.default_rng(0), list[float]()
    for _ in range(resamples):
        pick = random.integers(len(a), size=len(a))
        found.append(spearman(a[pick], b[pick], *(one[pick] for one in without)))
    low, high = np.quantile(found, [0.025, 0.975]).tolist()
    return {"spearman": spearman(a, b, *without), "low": low, "high": high}


def mean_with_interval(values: Numbers, resamples: int = 500) -> dict[str, float]:
    """A mean and its 95 % bootstrap interval."""
    index = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    low, high = np.quantile(values[index].mean(1), [0.025, 0.975]).tolist()
    return {"mean": float(values.mean()), "low": low, "high": high}


def measured(decoder: Decoder, pairs: list[tuple[str, str]]) -> tuple[list[dict[str, float]], dict[int, list[str]]]:
    """A row of numbers for each sentence, and the translations after T passes."""
    vocabulary = decoder.vocabulary
    codes = [tuple(vocabulary.encode(side)[: decoder.length] for side in pair) for pair in pairs]
    sources = [source for source, _ in codes]
    outputs = {
        t: [one[0].codes for one in decoder.decode(sources, Decoding(passes=t, lengths=1, shorten=0))] for t in PASSES
    }
    texts = {t: [vocabulary.decode(one) for one in outputs[t]] for t in PASSES}
    chrf = sacrebleu_metrics().CHRF()
    rows: list[dict[str, float]] = []
    for number, (source, target) in enumerate(codes):
        scores = {t: chrf.sentence_score(texts[t][number], [pairs[number][1]]).score for t in (1, PASSES[-1])}
        last = outputs[PASSES[-1]][number]
        own = adjacent_dependence(decoder.model, source, list(last))
        rows.append(
            {
                **adjacent_dependence(decoder.model, source, target),
                **{f"own_{key}": value for key, value in own.items()},
                **first_pass(decoder, source),
                "passes": min(t for t in PASSES if outputs[t][number] == last),
                "gain": scores[PASSES[-1]] - scores[1],
                "chrf_1": scores[1],
                "chrf_10": scores[PASSES[-1]],
                "pieces": len(target),
            }
        )
    return rows, texts


def summary(
    rows: list[dict[str, float]], texts: dict[int, list[str]], references: list[str], by: str
) -> dict[str, Any]:
    """Quartiles of a measure of dependence, and how it goes with passes and with what they gain."""
    table = {key: np.array([row[key] for row in rows], dtype=np.float64) for key in rows[0]}
    stratum = np.searchsorted(np.quantile(table[by], [0.25, 0.5, 0.75]), table[by])
    strata: list[dict[str, Any]] = []
    for s in range(4):
        inside = np.flatnonzero(stratum == s).tolist()
        if not inside:
            continue
        wanted = [references[i] for i in inside]
        bleu = {t: evaluated([texts[t][i] for i in inside], wanted) for t in (1, 2, 4, 10)}
        kept = ("bleu", "bleu_low", "bleu_high", "stutter")
        strata.append(
            {
                "stratum": s + 1,
                "sentences": len(inside),
                **{key: mean_with_interval(value[inside]) for key, value in table.items()},
                "at_passes": {str(t): {key: one[key] for key in kept} for t, one in bleu.items()},
            }
        )
    found: dict[str, Any] = {"strata": strata}
    for what in ("passes", "gain", "repeats"):
        found[what] = with_interval(table[by], table[what])
        found[f"{what}_at_equal_length"] = with_interval(table[by], table[what], table["pieces"])
        controls = (table["pieces"], table["doubt"])
        found[f"{what}_at_equal_length_and_doubt"] = with_interval(table[by], table[what], *controls)
    return found


def plot(found: dict[str, Any], path: Path) -> None:
    """Passes needed, and BLEU after 1, 2 and 10 passes, by quartile of dependence."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    strata = found["strata"]
    x = [one["stratum"] for one in strata]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    means = np.array([[one["passes"][key] for key in ("mean", "low", "high")] for one in strata])
    left.errorbar(x, means[:, 0], [means[:, 0] - means[:, 1], means[:, 2] - means[:, 0]], marker="o", capsize=3)
    left.set(ylabel="passes until nothing changes", ylim=(0.9, None))
    for t in ("1", "2", "10"):
        rows = np.array([[one["at_passes"][t][key] for key in ("bleu", "bleu_low", "bleu_high")] for one in strata])
        gaps = [rows[:, 0] - rows[:, 1], rows[:, 2] - rows[:, 0]]
        right.errorbar(x, rows[:, 0], gaps, marker="o", capsize=3, label=f"{t} pass{'es' if t != '1' else ''}")
    right.set(ylabel="BLEU of the stratum")
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.set(xlabel="quartile of dependence between adjacent words", xticks=x)
    figure.savefig(path, dpi=130)


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="en-de", help="the way of one that ships, or a folder")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--sentences", type=int, default=400, help="the first of Multi30k's test")
    parser.add_argument("--out", type=Path, default=RESULTS / "gmlm" / "strata.json")
    options = parser.parse_args(argv)
    one_thread()
    model = load(options.model)
    source, target = model.languages
    plan = Plan(options.out.parent, options.data, source=source, target=target, test_limit=options.sentences)
    pairs = test_pairs(plan)["multi30k"]
    rows, texts = measured(model.decoder, pairs)
    references = [pair[1] for pair in pairs]
    found = {by: summary(rows, texts, references, by) for by in ("variation", "information", "own_variation", "doubt")}
    about = {"model": options.model, "test": "multi30k", "sentences": len(pairs), "passes_tried": PASSES}
    payload = {"name": "gmlm/strata", "environment": environment("cpu"), **about, "by": found, "rows": rows}
    write_bytes((json.dumps(payload, indent=1) + "\n").encode(), options.out)
    plot(found["variation"], options.out.with_suffix(".png"))
    for by, one in found.items():
        print(by, {key: value for key, value in one.items() if key != "strata"})


if __name__ == "__main__":
    main()
