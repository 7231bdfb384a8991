"""One-pass, MAC (both losses) and ARDM on text8, equal training seconds each: three questions, bits per character.

    joint         all 250 characters of a chunk
    marginal      a random subset, its size uniform on 1 … 250; bits per asked character, averaged over chunks
    conditional   everything else given a random subset, its size uniform on 0 … 249; likewise

The four methods share the trunk (8 blocks of width 512, 8 heads, 25 M parameters), optimizer, batch and schedule; they
differ in what they are trained to answer and in how many passes an answer takes. Compiling is done before the clock
starts. The first 11.5 M characters of the file are trained on, the last 0.5 M validate: every eighth chunk of them for
every method (a masked network needs up to 500 passes a chunk), and all chunks for the one-pass model.

Every value is exact under its model in increasing order, but a conditional has two factorizations. ``conditional`` is
direct: the given block, then the rest, a normalised distribution over the rest. MAC is not trained on that, so its
direct value is marked untrained; ``difference`` is log p(all) - log p(given), which MAC is trained for. The difference
is normalised over the rest only as far as the network's marginals fit together, so it may look better than any true
conditional.

Settings were chosen with the one-pass model alone, on the same validation chunks
(results/mac/logs/vs_ardm/tuning.json); the others took them over.
The earlier figures in the picture are quoted, not run again: that their marginals and
conditionals were averaged over chunks as here is our reading of them.

    python -m experiments.mac.vs_ardm --text8 text8_first12M.txt.gz --seconds 100
"""

import argparse
import gzip
import json
import math
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from anyfill import recipes
from anyfill.evaluation import log_prob
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks import Discrete, OnePassTransformer, Transformer
from anyfill.objectives import Objective
from anyfill.questions import Factorization, Increasing, Question
from anyfill.text.tokens import Windows
from anyfill.text.vocabulary import TEXT8
from anyfill.training import FitOptions, JsonLines, fit
from benchmarks.common import RESULTS, write_result
from experiments.mac.text8_common import HELD_OUT, LENGTH, options_of

METHODS = {
    "one-pass": (recipes.one_pass.objective_filler, OnePassTransformer),
    "MAC, all the rest": (recipes.mac.objective_rest, Transformer),
    "MAC, next variable": (recipes.mac.objective, Transformer),
    "ARDM": (recipes.ardm.objective, Transformer),
}
# Earlier measurement of the same comparison, 100 s each on one H200 (design notes): joint, marginal, conditional.
BEFORE = {
    "one-pass": (1.67, 3.05, 1.20),
    "one-pass, AdaLN": (1.66, 2.99, 1.16),
    "MAC, all the rest": (2.28, 3.27, 1.43),
    "MAC, next variable": (4.12, 4.10, 4.11),
    "ARDM": (2.47, 3.34, 1.59),
}


def build(method: str, width: int, depth: int, seed: int) -> tuple[Model, Objective]:
    """A fresh model and its objective."""
    recipe, network = METHODS[method]
    torch.manual_seed(seed)
    net = network(Discrete(TEXT8.size), (LENGTH,), TEXT8.size, width, depth, heads=width // 64)
    return Model(net, Categorical(TEXT8.size), order=Increasing()), recipe(LENGTH)


def questions(rows: int, seed: int, device: torch.device) -> dict[str, Question]:
    """The same questions for every method."""
    generator = torch.Generator().manual_seed(seed)
    place = torch.rand(rows, LENGTH, generator=generator).argsort(1)
    size = torch.randint(1, LENGTH + 1, (rows, 1), generator=generator)
    nothing = torch.zeros(rows, LENGTH, dtype=torch.bool)
    told = place < size - 1
    asked = {"joint": (nothing, ~nothing), "marginal": (nothing, place < size), "conditional": (told, ~told)}
    return {name: Question(given.to(device), wanted.to(device)) for name, (given, wanted) in asked.items()}


def bits_per_character(
    model: Model, x: Tensor, question: Question, factorization: Factorization | None
) -> dict[str, object]:
    """Bits per asked character, averaged over chunks, with its standard error, label, passes and seconds."""
    start = time.perf_counter()
    answer = log_prob(model, x, question, factorization=factorization)
    asked = question.asked.sum(1)
    bits = -answer.value / math.log(2)
    each = bits / asked
    return {
        "bits": each.mean().item(),
        "stderr": (each.std() / math.sqrt(len(each))).item(),
        "bits_pooled": (bits.sum() / asked.sum()).item(),
        "kind": answer.kind,
        "reading": None if factorization is None else factorization.value,
        "passes": answer.passes,
        "seconds": time.perf_counter() - start,
    }


def evaluate(model: Model, chunks: Tensor, seed: int) -> dict[str, dict[str, object]]:
    """All questions on these chunks (B, 250); conditionals in every factorization that makes sense of the network."""
    torch.set_float32_matmul_precision("high")
    posed = questions(len(chunks), seed, chunks.device)
    answers = {name: bits_per_character(model, chunks, posed[name], None) for name in ("joint", "marginal")}
    if Factorization.DIFFERENCE in model.factorizations:
        answers["difference"] = bits_per_character(model, chunks, posed["conditional"], Factorization.DIFFERENCE)
    trained = model.factorizations
    direct = next(
        (r for r in (Factorization.INPAINTING, Factorization.ANY_ORDER) if r in trained), Factorization.DIRECT
    )
    model.factorizations = trained | {direct}  # MAC: asked all the same, and marked
    answers["conditional"] = bits_per_character(model, chunks, posed["conditional"], direct)
    answers["conditional"]["trained"] = direct in trained
    model.factorizations = trained
    return answers


def run(method: str, tokens: Tensor, options: FitOptions, arguments: argparse.Namespace) -> dict[str, object]:
    """Train one method and ask it."""
    train = Windows(tokens[:-HELD_OUT], LENGTH)
    chunks = tokens[-HELD_OUT:].view(-1, LENGTH).long()
    shape = (arguments.width, arguments.depth, arguments.seed)
    if options.compile:  # compile a throw-away model first, so that the clock measures training alone
        model, objective = build(method, *shape)
        fit(model.to(tokens.device), train, objective, replace(options, steps=3, seconds=None))
    model, objective = build(method, *shape)
    log = RESULTS / "mac" / "logs" / "vs_ardm" / f"{method.replace(', ', '-').replace(' ', '-')}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    done = fit(model.to(tokens.device), train, objective, options, metrics=[JsonLines(log)])
    few = evaluate(model, chunks[:: len(chunks) // arguments.chunks], arguments.seed)
    result: dict[str, object] = {
        "steps": done.steps,
        "seconds": done.seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "readings": sorted(model.factorizations),
        "answers": few,
    }
    if model.is_one_pass:
        result["answers_on_all_chunks"] = evaluate(model, chunks, arguments.seed)
    line = ", ".join(f"{name} {answer['bits']:.3f} ({answer['passes']} passes)" for name, answer in few.items())
    print(f"{method}: {done.steps} steps in {done.seconds:.0f} s: {line}", flush=True)
    return result


def draw(results: dict[str, dict[str, object]], seconds: float, path: Path) -> None:
    """Grouped bars: ours beside the earlier measurement."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(results)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, question, column in zip(axes, ("joint", "marginal", "conditional"), range(3)):
        values = [results[name]["answers"][question]["bits"] for name in names]  # type: ignore[index]
        bars = axis.bar(names, values, color=["#1b6ca8", "#d1843a", "#e3b27a", "#8f8f8f"][: len(names)])
        axis.bar_label(bars, fmt="%.2f", label_type="center", color="white", fontweight="bold")
        before = [BEFORE[name][column] for name in names]
        axis.scatter(names, before, marker="_", s=600, color="black", label="earlier measurement", zorder=3)
        axis.set_title(f"{question}, bits per character")
        axis.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=8)
        axis.set_ylim(0, 4.9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, loc="upper left", fontsize=8)
    figure.suptitle(
        f"text8, {seconds:.0f} s of training each: lower is better (MAC's conditional: direct, not trained)"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run the chosen methods, print them beside the earlier figures, write JSON and PNG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text8", type=Path, default=Path("text8_first12M.txt.gz"), help="text8 prefix, plain or .gz")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--chunks", type=int, default=250, help="validation chunks asked of every method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="mac/vs_ardm")
    parser.add_argument("--keep", action="store_true", help="keep what the results file says of other methods")
    parser.add_argument("--redraw", action="store_true", help="only draw the picture again from the results file")
    arguments = parser.parse_args()
    path = RESULTS / f"{arguments.name}.json"
    if arguments.redraw:
        saved = json.loads(path.read_text())
        draw(saved["results"], saved["arguments"]["seconds"], path.with_suffix(".png"))
        return
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    raw = arguments.text8.read_bytes()
    text = (gzip.decompress(raw) if arguments.text8.suffix == ".gz" else raw).decode("ascii")
    tokens = TEXT8.encode(text).to(device)
    options = options_of(arguments, device)
    known = json.loads(path.read_text())["results"] if arguments.keep and path.exists() else {}
    known |= {method: run(method, tokens, options, arguments) for method in arguments.methods}
    results = {method: known[method] for method in METHODS if method in known}
    payload = {
        "arguments": json.loads(json.dumps(vars(arguments), default=str)),
        "options": asdict(options),
        "results": results,
        "before": BEFORE,
    }
    path = write_result(arguments.name, payload, device=device)
    draw(results, arguments.seconds, path.with_suffix(".png"))
    print(f"wrote {path.name} and {path.with_suffix('.png').name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
