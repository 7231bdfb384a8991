"""Scoring text: 2,000 chunks of 250 characters, one pass against |asked| passes of the same weights.

    python -m benchmarks.text_likelihood [--model FOLDER] [--device cuda] [--chunks 2000] [--slow-chunks 2000]

one pass      log_prob(model, chunks, question): every term of a chunk from one causal pass
many passes   each term asked for on its own, as a masked network must. Each pass reads what is known at that step and
              nothing else, half of a chunk on average: the cheapest that asking one by one can be.

    joint         all 250 characters: 250 passes
    conditional   a random half of them, another for every chunk, given the other half: 125 passes

Both ways take the same rows at a time, in float32 without TF32, and must agree; the largest difference in bits is
written beside the ratio, of a chunk and per asked character. On a CPU the many passes may take fewer chunks; their
seconds are then scaled up, and marked. Without --model it is the shipped model, or if there is none random weights of
--size (the speed is the same, and agreement is tested hardest). Writes results/text_likelihood.json.
"""

import argparse
import gzip
import math
import os
from pathlib import Path

import torch
from torch import Tensor

from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions import Factorization, Question, chain_rank
from anyfill.rank import NEVER
from anyfill.text.recipes import TEXT_SIZES, TextSize, text_model
from anyfill.text.vocabulary import TEXT8
from anyfill.training import load_model
from benchmarks.common import ROOT, median_seconds, write_result

LENGTH, VALIDATION = 250, 500_000
SHIPPED = ROOT / "src" / "anyfill" / "models" / "text8"


def default_text8() -> Path:
    """In ANYFILL_DATA, or the folder beside the repository."""
    data = Path(os.environ.get("ANYFILL_DATA", ROOT.parent / "shared" / "data"))
    return data / "text8" / "text8_first12M.txt.gz"


def read_text8(path: Path) -> tuple[Tensor, Tensor]:
    """uint8 codes to train on, and int64 chunks (B, 250) to ask about: the last 0.5 M characters."""
    raw = path.read_bytes()
    tokens = TEXT8.encode((gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("ascii"))
    held_out = tokens[-VALIDATION:]
    return tokens[:-VALIDATION], held_out[: len(held_out) // LENGTH * LENGTH].view(-1, LENGTH).long()


def given_model(folder: Path | None) -> Model | None:
    """The model in this folder, the one that ships, or None; weights in float32."""
    folder = folder if folder is not None else SHIPPED if SHIPPED.is_dir() else None
    return None if folder is None else load_model(folder).float()


def random_text_model(size: TextSize, seed: int) -> Model:
    """Random weights everywhere."""
    model = text_model("one_pass", LENGTH, TEXT8.size, size=size, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.05, generator=generator)
    model.factorizations = frozenset({Factorization.DIRECT})
    return model.eval()


def recorded(arguments: argparse.Namespace) -> dict[str, object]:
    """The arguments as JSON, paths by their last part."""
    return {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}


def ask(model: Model, chunks: Tensor, given: Tensor, rows: int) -> Tensor:
    """float64 (B,): log p of what is not given, one pass for every ``rows`` chunks."""
    return log_prob(model, chunks, Question(given, ~given), rows_per_pass=rows).value


@torch.no_grad()
def ask_one_by_one(model: Model, chunks: Tensor, given: Tensor, rows: int, steps: int | None = None) -> Tensor:
    """float64 (B,): the same terms, a pass for each of them; or the first ``steps`` terms."""
    total = torch.zeros(len(chunks), dtype=torch.float64, device=chunks.device)
    for start in range(0, len(chunks), rows):
        x, told = chunks[start : start + rows], given[start : start + rows]
        rank = chain_rank(model.order, Question(told, ~told))
        asked = int((~told).sum(1).max())
        for step in range(asked if steps is None else min(steps, asked)):
            known = torch.where(rank < step, rank - LENGTH, NEVER)  # strictly given, in the same order
            answers = model.chain(x, torch.where(rank == step, 0, known))
            total[start : start + rows] += torch.where(rank == step, answers.log_prob(x).double(), 0.0).sum(1)
    return total


def compare(model: Model, chunks: Tensor, given: Tensor, arguments: argparse.Namespace) -> dict[str, object]:
    """Seconds of both ways on one question, their ratio and their largest difference."""
    device, rows, some = chunks.device, arguments.rows, min(arguments.slow_chunks, len(chunks))
    value = ask(model, chunks, given, rows)
    fast = median_seconds(lambda: ask(model, chunks, given, rows), repeats=arguments.repeats, device=device)
    ask_one_by_one(model, chunks[:rows], given[:rows], rows, steps=2)  # warm
    answers: list[Tensor] = []
    measured = median_seconds(
        lambda: answers.append(ask_one_by_one(model, chunks[:some], given[:some], rows)),
        repeats=1,
        warm_up=0,
        device=device,
    )
    slow = measured * len(chunks) / some
    apart = (value[:some] - answers[0]).abs() / math.log(2)
    asked = (~given).sum(1)
    bits = -value / (asked * math.log(2))
    return {
        "chunks": len(chunks),
        "asked_of_each": int(asked.max()),
        "one_pass_seconds": fast,
        "many_passes_seconds": slow,
        "many_passes_measured_on": some,
        "many_passes_scaled": some < len(chunks),
        "ratio": slow / fast,
        "largest_difference_bits_per_chunk": apart.max().item(),
        "largest_difference_bits_per_character": (apart / asked[:some]).max().item(),
        "bits_per_character": bits.mean().item(),
        "bits_stderr": (bits.std() / math.sqrt(len(bits))).item(),
    }


def main() -> None:
    """Both questions, each written as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a saved one-pass model of 250 characters")
    parser.add_argument("--size", default="6M", choices=list(TEXT_SIZES), help="of random weights, without a model")
    parser.add_argument("--text8", type=Path, default=default_text8(), help="text8 prefix, plain or .gz")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--slow-chunks", type=int, default=2000, help="chunks for the many passes; fewer are scaled")
    parser.add_argument("--rows", type=int, default=500, help="chunks at a time, for both ways")
    parser.add_argument("--repeats", type=int, default=5, help="of the one pass; the many passes run once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="text_likelihood", help="results/NAME.json")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device(arguments.device)
    model = given_model(arguments.model)
    weights = "random" if model is None else "trained"
    model = (random_text_model(arguments.size, arguments.seed) if model is None else model).to(device)
    chunks = read_text8(arguments.text8)[1][: arguments.chunks].to(device)
    generator = torch.Generator().manual_seed(arguments.seed)
    half = torch.rand(chunks.shape, generator=generator).argsort(1) < LENGTH // 2
    questions = {"joint": torch.zeros_like(half), "conditional": half}
    if model.factorizations == {Factorization.PREFIX}:
        del questions["conditional"]  # a left-to-right model is not trained for it
    results: dict[str, object] = {}
    for name, given in questions.items():
        results[name] = found = compare(model, chunks, given.to(device), arguments)
        print(
            f"{name:12s} one pass {found['one_pass_seconds']:8.3f} s   {found['asked_of_each']} passes "
            f"{found['many_passes_seconds']:9.2f} s{' (scaled)' if found['many_passes_scaled'] else ''}   "
            f"ratio {found['ratio']:.0f}   largest difference {found['largest_difference_bits_per_chunk']:.1e} bits of "
            f"a chunk, {found['largest_difference_bits_per_character']:.1e} per character",
            flush=True,
        )
        payload = {
            "arguments": recorded(arguments),
            "weights": weights,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "precision": "float32, no TF32",
            "results": results,
        }
        path = write_result(arguments.name, payload, device=device)
    print(f"wrote {path.name} to {path.parent.name}/")


if __name__ == "__main__":
    main()
