"""What SUNMASK's chain draws at trusted cells, on a law whose conditionals are known.

Equation 2 asks about untrusted cells alone: what the network answers at a cell that is told to be right is never
trained. The paper's chain draws such cells all the same ("despite the use of masked losses in training, we sample these
prediction distributions for *all* variables", section 2.3); towards its end every cell is trusted, and all that it
still accepts are answers of that kind. Here sentences are drawn from a law that can be computed:

    a hidden topic z of Z, uniform;  x_1 ~ p_z(.), x_{j+1} ~ p_z(. | x_j),  each word followed by 4 others of V

with a share of 0.02 for any word at all. So neighbours must agree, and all places must agree on a topic. Small
networks of SUNMASK (equation 2; given values kept in both steps) and SUNDAE are trained alike. Then

    conditionals   KL from the exact p(x_j | all others) to the answer at a cell that is trusted (everything is), and at
                   one that is not (all others are), in true rows; with right and with wrong words in that cell
    chains         samples of each chain: nats a place under the law (true rows have its entropy: more is nonsense,
                   less is sameness), the share of neighbours that no topic has, total variation of pairs of neighbours

    python -m experiments.sunmask.trusted [--steps 1500] [--name sunmask/trusted]
"""

import argparse
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor

from anyfill.corruption import Uniform
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.networks.embed import Discrete
from anyfill.networks.transformer import Transformer
from anyfill.objectives.objective import Objective
from anyfill.questions import Question
from anyfill.recipes import sundae, sunmask
from anyfill.rows import Rows
from anyfill.samplers import Anneal, Rewrite, sample
from anyfill.training import FitOptions, fit
from benchmarks.common import write_result

PLACES, WORDS, TOPICS, FOLLOWERS, ANY = 12, 24, 3, 4, 0.02
ROUNDS = (2, 20)
"""Rounds of a chain for each place."""


@dataclass(frozen=True, slots=True)
class Law:
    """Sentences of the law above.

    Attributes:
        first: float64 (Z, V), log p of the first word under each topic.
        next: float64 (Z, V, V), log p of a word (last) after another.
    """

    first: Tensor
    next: Tensor

    @staticmethod
    def made(*, generator: Generator) -> "Law":
        """A law by chance: four followers with shares 8 : 4 : 2 : 1."""
        shares = torch.tensor([8.0, 4.0, 2.0, 1.0], dtype=torch.float64)
        probs = torch.full((TOPICS, WORDS + 1, WORDS), ANY / WORDS, dtype=torch.float64)
        for topic in range(TOPICS):
            for word in range(WORDS + 1):
                chosen = torch.randperm(WORDS, generator=generator)[:FOLLOWERS]
                probs[topic, word, chosen] += (1 - ANY) * shares / shares.sum()
        return Law(probs[:, -1].log(), probs[:, :-1].log())

    def sample(self, count: int, *, generator: Generator) -> Tensor:
        """int64 (count, N)."""
        topic = torch.randint(TOPICS, (count,), generator=generator)
        words = [torch.multinomial(self.first[topic].exp(), 1, generator=generator)[:, 0]]
        for _ in range(PLACES - 1):
            words.append(torch.multinomial(self.next[topic, words[-1]].exp(), 1, generator=generator)[:, 0])
        return torch.stack(words, 1)

    def log_prob(self, x: Tensor) -> Tensor:
        """float64 (B,) of rows (B, N): exact, summed over topics."""
        each = self.first[:, x[:, 0]] + self.next[:, x[:, :-1], x[:, 1:]].sum(-1)
        return each.logsumexp(0) - math.log(TOPICS)

    def conditionals(self, x: Tensor) -> Tensor:
        """float64 (B, N, V): log p(x_j = v | all others)."""
        found: list[Tensor] = []
        for place in range(PLACES):
            tried = x.repeat_interleave(WORDS, 0)
            tried[:, place] = torch.arange(WORDS).repeat(len(x))
            found.append(self.log_prob(tried).view(len(x), WORDS).log_softmax(-1))
        return torch.stack(found, 1)

    def pairs(self, x: Tensor) -> Tensor:
        """float64 (V, V): how often each pair of neighbours stands in rows (B, N)."""
        codes = (x[:, :-1] * WORDS + x[:, 1:]).flatten()
        return torch.bincount(codes, minlength=WORDS * WORDS).double().view(WORDS, WORDS) / len(codes)

    def grades(self, x: Tensor, truth: Tensor) -> dict[str, float]:
        """Of rows (B, N), beside the pairs (V, V) of many true ones."""
        likely = (self.next.exp() > 2 * ANY / WORDS).any(0)
        return {
            "nats": float(-self.log_prob(x).mean()) / PLACES,
            "no_topic_has_it": float((~likely[x[:, :-1], x[:, 1:]]).double().mean()),
            "pairs_apart": float((self.pairs(x) - truth).abs().sum()) / 2,
        }


def untrained(*, told: bool, width: int, depth: int, seed: int) -> Model:
    """The network of both, told which cells are trusted or not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Transformer(Discrete(WORDS), (PLACES,), WORDS, width, depth, 4, flag="stretched")
    return Model(network, Categorical(WORDS), corruption=Uniform(WORDS, mask_visible=told))


def objectives() -> dict[str, tuple[Objective, bool]]:
    """What is trained, and whether it is told which cells are trusted."""
    return {
        "sunmask": (sunmask.objective(PLACES), True),
        "sunmask, given kept": (sunmask.objective(PLACES, redraw_given=False), True),
        "sundae": (sundae.objective(PLACES), False),
    }


def chains(*, told: bool) -> dict[str, Rewrite]:
    """Chains by name, of one round each; ``replace`` gives them more."""
    if not told:
        return {"a share of 0.3": Rewrite(1, share=0.3)}
    return {
        "the paper's": Rewrite(1, trust=Anneal()),
        "only untrusted cells accept": Rewrite(1, trust=Anneal(), keep_trusted=True),
        "all untrusted cells accept": Rewrite(1, trust=Anneal(), share=1.0, keep_trusted=True),
    }


def divergences(model: Model, law: Law, x: Tensor, *, generator: Generator) -> dict[str, float]:
    """KL in nats from the exact conditional of a cell to the network's answer there, the mean over cells of rows x."""
    exact = law.conditionals(x)
    everything = torch.ones_like(x, dtype=torch.bool)
    noise = torch.randint(WORDS, x.shape, generator=generator)
    found: dict[str, float] = {}
    for trusted in (True, False):
        for name, values in (("right", x), ("wrong", noise)):
            total = 0.0
            for place in range(PLACES):
                shown, known = x.clone(), everything.clone()
                shown[:, place], known[:, place] = values[:, place], trusted
                answer = model.marginals(shown, known).log_probs[:, place].double()  # pyright: ignore
                total += float((exact[:, place].exp() * (exact[:, place] - answer)).sum(-1).mean())
            found[f"{'trusted' if trusted else 'untrusted'}, {name} word in it"] = total / PLACES
    return found


def drawn(model: Model, policy: Rewrite, count: int, *, generator: Generator) -> Tensor:
    """int64 (count, N), from nothing."""
    asked = torch.ones(count, PLACES, dtype=torch.bool)
    question = Question(torch.zeros_like(asked), asked)
    return sample(model, torch.zeros(count, PLACES, dtype=torch.int64), question, policy=policy, generator=generator).x


def study(arguments: argparse.Namespace) -> dict[str, Any]:
    """All trainings, conditionals and chains."""
    generator = torch.Generator().manual_seed(arguments.seed)
    law = Law.made(generator=generator)
    rows, valid = (Rows.from_values(law.sample(count, generator=generator)) for count in (arguments.rows, 512))
    truth = law.pairs(law.sample(200_000, generator=generator))
    real = law.grades(law.sample(arguments.samples, generator=generator), truth)
    found: dict[str, Any] = {"true rows": real}
    print("true rows", real, flush=True)
    options = FitOptions(
        steps=arguments.steps, batch_size=64, learning_rate=2e-3, warmup_steps=100, optimizer="muon",
        weight_decay=0.1, report_every=100, save_every=10**9, seed=arguments.seed, device="cpu",
    )  # fmt: skip
    for name, (objective, told) in objectives().items():
        started = time.perf_counter()
        model = untrained(told=told, width=arguments.width, depth=arguments.depth, seed=arguments.seed)
        done = fit(model, rows, objective, options, validation=valid)
        model.eval()
        record: dict[str, Any] = {"steps": done.steps, "seconds": time.perf_counter() - started}
        record["validation"] = done.best_validation_loss
        with torch.no_grad():
            record["kl"] = divergences(model, law, valid.x[:128], generator=generator)
            print(name, record, flush=True)
            record["chains"] = _graded(model, law, truth, arguments, told=told)
        found[name] = record
    return found


def _graded(model: Model, law: Law, truth: Tensor, arguments: argparse.Namespace, *, told: bool) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for chain, policy in chains(told=told).items():
        for each in ROUNDS:
            generator = torch.Generator().manual_seed(arguments.seed)
            x = drawn(model, replace(policy, rounds=each * PLACES), arguments.samples, generator=generator)
            found[f"{chain}, {each} rounds a place"] = grades = law.grades(x, truth)
            print(" ", chain, each, {key: round(value, 3) for key, value in grades.items()}, flush=True)
    return found


def main() -> None:
    """Train, draw, write results/sunmask/trusted.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="sunmask/trusted")
    arguments = parser.parse_args()
    settings = {key: value for key, value in vars(arguments).items() if key != "name"}
    path = write_result(arguments.name, {"arguments": settings, **study(arguments)}, device="cpu")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
