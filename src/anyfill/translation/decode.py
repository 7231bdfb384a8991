"""Decoding: sources as codes in, ranked hypotheses out, whatever the recipe; every one by the one sampling loop.

Models with a length decode several candidates side by side: the likeliest lengths under p(n | source), or all ways in
which a constraint can be met. The source is read once; all candidates share what was read. Ranking:

    mean    1/n sum_i log p(w_i | …) + r n, each word by the pass that wrote it (CMLM, fairseq): lengths compare fairly;
            r rewards words: repeated ones are dropped, so candidates tend to be short
    joint   log p(n | source) + sum_i log p(w_i | …): the likelihood that the model assigns, where it has one

Autoregressive models decode greedily or by a beam and are ranked by their exact log-probability.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_member
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.networks.encoder_decoder import END
from anyfill.questions.question import Question, chain_rank
from anyfill.samplers import (
    CachedChain,
    Draw,
    Restricted,
    RewriteAll,
    Sampler,
    State,
    Task,
    beam_search,
    repeated,
    trace,
)
from anyfill.samplers.loop import run
from anyfill.samplers.rowwise import RowStreams
from anyfill.translation.constraints import Fixed
from anyfill.translation.recipes import layout_of, sampler_of
from anyfill.translation.vocabulary import FIRST, MAX_PLACEHOLDERS, Joint

ROWS = {"cpu": 256, "cuda": 8192}
"""Candidates decoded side by side."""
MOST = 64
"""Ways to meet a constraint that are tried for one source."""
Ways = Callable[[Tensor], list[Fixed]]
"""From log p(n | source) (N,) of n = 1 … N to what is tried."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """How to decode.

    Attributes:
        passes: T, of models that decode in parallel.
        lengths: how many of the likeliest lengths are tried.
        beam: beams of autoregressive models; 1 = greedy.
        stutter: remask repeated words between passes, drop them after the last (PaDIR).
        rank: how candidates compare.
        reward: r of ranking by the mean, nats a word.
        length_penalty: of beams.
        speculative: one-pass models guess several words at a time; the result is the same.
        seed: of the noise that PaDIR and SUNDAE start from.
    """

    passes: int = 4
    lengths: int = 3
    beam: int = 4
    stutter: bool = True
    rank: Literal["mean", "joint"] = "mean"
    reward: float = 0.0
    length_penalty: float = 1.0
    speculative: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("passes", self.passes, maximum=1000)
        require_count("lengths", self.lengths, maximum=64)
        require_count("beam", self.beam, maximum=64)
        require_member("rank", self.rank, ("mean", "joint"))


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation in codes.

    Attributes:
        codes: its words.
        score: mean log-probability of a word, or all of it where candidates are ranked jointly; nats.
        log_prob: log p(n) + sum of the words' log-probabilities, by the passes that wrote them; exact where ``exact``.
        exact: whether that is the model's likelihood.
        passes: of the network.
        history: the row after each pass, if it was wanted.
    """

    codes: tuple[int, ...]
    score: float
    log_prob: float
    exact: bool
    passes: int
    history: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model that translates codes.

    Attributes:
        model: trained.
        recipe: what it is.
        vocabulary: its codes.
    """

    model: Model
    recipe: str
    vocabulary: Joint

    @property
    def length(self) -> int:
        """N, the most pieces of a side."""
        half = self.model.variables // 2 if layout_of(self.recipe) == "joined" else self.model.variables
        return half - 1

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return next(self.model.parameters()).device

    @property
    def rows_at_once(self) -> int:
        """How many candidates go through the network together."""
        return ROWS.get(self.device.type, ROWS["cpu"])

    def decode(
        self,
        sources: Sequence[Sequence[int]],
        how: Decoding,
        *,
        ways: Ways | None = None,
        history: bool = False,
    ) -> list[list[Hypothesis]]:
        """For each source its hypotheses, best first.

        Args:
            sources: codes, none empty, none longer than ``length``.
            how: see ``Decoding``.
            ways: what must stand where; models that are read from left to right take none.
            history: keep the row after each pass.
        """
        layout = layout_of(self.recipe)
        if layout == "length":
            found: list[list[Hypothesis]] = []
            share = max(1, self.rows_at_once // (how.lengths if ways is None else MOST))
            for start in range(0, len(sources), share):
                found += self._parallel(sources[start : start + share], how, ways, history)
            return found
        if layout == "joined":
            return self._joined(sources, how, ways)
        if ways is not None:
            raise refuse(
                "constraint",
                expected="a model that takes words at any place",
                got=f"a {self.recipe} model, from left to right",
            )
        return self._one_by_one(sources, how)

    def _parallel(
        self, sources: Sequence[Sequence[int]], how: Decoding, ways: Ways | None, history: bool
    ) -> list[list[Hypothesis]]:
        context = padded(sources, self.device)
        with self.model.evaluating():
            memory: Any = self.model.read(context)
            log_lengths = memory.lengths.double().log_softmax(-1).cpu()
        tried: list[tuple[int, Fixed]] = []
        for row, each in enumerate(log_lengths):
            options = likeliest_lengths(each, how.lengths) if ways is None else ways(each)[:MOST]
            if not options:
                raise refuse("constraint", expected=f"words that fit into {self.length} places", got="more of them")
            tried += [(row, fixed) for fixed in options]
        x, told, asked = self.rows([fixed for _, fixed in tried])
        policy, draw = sampler_of(self.recipe, how.passes, stutter=how.stutter)
        ruled = Restricted(temperature=draw.temperature, forbidden=self._forbidden(tried, sources, x.shape[1]))
        index = torch.tensor([row for row, _ in tried], device=self.device)
        keys = None
        if self.model.corruption.shows_unknown and isinstance(policy, RewriteAll):
            keys = torch.tensor(
                [_key(sources[row], fixed.length, how.seed) for row, fixed in tried], device=self.device
            )
        question = Question(told, asked)
        states = self._states(policy, ruled, x, question, memory.rows(index), how.seed, all_of_them=history, keys=keys)
        last = states[-1]
        dropped = asked & ~asked
        if how.stutter and self.recipe in ("padir", "sundae"):
            dropped = repeated(last.x) & asked
            for number, (_, fixed) in enumerate(tried):
                counted = [place for place in fixed.counted if place <= fixed.length]
                dropped[number, counted] = False
        counted = asked & ~dropped
        total = torch.where(counted, last.score, 0.0).sum(1).cpu()
        words, passed = counted.sum(1).cpu(), last.row_passes.cpu()
        kept = ((told | asked) & ~dropped).cpu()
        rows = [state.x.cpu() for state in states]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        ranked: list[list[float]] = [[] for _ in sources]
        for number, (row, fixed) in enumerate(tried):
            n = fixed.length
            prior = float(log_lengths[row, n - 1])
            value = prior + float(total[number])
            mean = float(total[number]) / max(int(words[number]), 1)
            reward = how.reward * int(words[number]) if ways is None else 0.0  # a template says how long it is
            ranked[row].append(mean + reward if how.rank == "mean" else value)
            codes = tuple(rows[-1][number, 1 : n + 1][kept[number, 1 : n + 1]].tolist())
            seen = tuple(tuple(one[number, 1 : n + 1].tolist()) for one in rows) if history else ()
            passes = int(passed[number])
            found[row].append(Hypothesis(codes, mean if how.rank == "mean" else value, value, False, passes, seen))
        return [_by_rank(some, by) for some, by in zip(found, ranked)]

    def rows(self, fixed: Sequence[Fixed]) -> tuple[Tensor, Tensor, Tensor]:
        """x, given and asked (R, L + 1) of candidates."""
        longest = max(one.length for one in fixed)
        x = torch.zeros(len(fixed), longest + 1, dtype=torch.long)
        told = torch.zeros_like(x, dtype=torch.bool)
        told[:, 0] = True
        for row, one in enumerate(fixed):
            x[row, 0] = one.length
            for place, code in one.codes.items():
                x[row, place], told[row, place] = code, True
        asked = (torch.arange(longest + 1) <= x[:, :1]) & ~told
        return x.to(self.device), told.to(self.device), asked.to(self.device)

    def _forbidden(self, tried: Sequence[tuple[int, Fixed]], sources: Sequence[Sequence[int]], width: int) -> Tensor:
        """bool (R, L + 1 or 1, V): codes of no text, placeholders that the source has not, and what may not go on."""
        forbidden = torch.zeros(len(tried), 1, self.vocabulary.size, dtype=torch.bool)
        forbidden[..., : FIRST + MAX_PLACEHOLDERS] = True
        for row, (source, _) in enumerate(tried):
            for code in sources[source]:
                if FIRST <= code < FIRST + MAX_PLACEHOLDERS:
                    forbidden[row, 0, code] = False
        if any(one.counted for _, one in tried):
            begins, mark = torch.tensor(self.vocabulary.begins_word), torch.tensor(self.vocabulary.is_mark)
            # A space alone begins a word only if one goes on behind it: where words are counted there is none.
            alone = torch.tensor([self.vocabulary.piece(code) == "▁" for code in range(self.vocabulary.size)])
            forbidden = forbidden.expand(-1, width, -1).clone()
            for row, (_, one) in enumerate(tried):
                for places, never in (
                    (one.behind, ~(begins | mark)),
                    (one.begins, ~begins | alone),
                    (one.goes_on, begins),
                ):
                    for place in places:
                        if place < width:
                            forbidden[row, place] |= never
        return forbidden.to(self.device)

    def _states(
        self,
        policy: Sampler,
        draw: Draw,
        x: Tensor,
        question: Question,
        context: Any,
        seed: int,
        *,
        all_of_them: bool = False,
        keys: Tensor | None = None,
    ) -> list[State]:
        """The last state, or all of them. With keys (R,), the first noise of a row is its own, whatever its company."""
        generator = torch.Generator(self.device).manual_seed(seed)
        if keys is None:
            found = trace(self.model, x, question, policy=policy, draw=draw, context=context, generator=generator)
        else:
            uniform = RowStreams(keys).uniform(tuple(x.shape), x.device)
            noise = torch.where(question.given, x, (uniform * self.vocabulary.size).long())
            nothing = Question(question.given, torch.zeros_like(question.asked))
            first = State.first(noise, chain_rank(self.model.fixed_order, nothing))
            task = Task(self.model, x, question, draw, context, generator)
            found = run(policy.along(self.model.order), task, first)
        states: list[State] = []
        for state in found:
            states = [*states, state] if all_of_them else [state]
        return states

    def _one_by_one(self, sources: Sequence[Sequence[int]], how: Decoding) -> list[list[Hypothesis]]:
        return [one for context, beams in self._beams(sources, how) for one in self._scored(beams, context)]

    def best_codes(self, sources: Sequence[Sequence[int]], how: Decoding) -> list[tuple[int, ...]]:
        """The best translation of each source, and nothing about it: quicker where many are wanted (distillation)."""
        if layout_of(self.recipe) != "end":
            return [one[0].codes for one in self.decode(sources, how)]
        found: list[tuple[int, ...]] = []
        for _, beams in self._beams(sources, how):
            for row in torch.stack([beam[0] for beam in beams]).tolist():
                ended = row[: row.index(END)] if END in row else row[:-1]  # the last place is that of END
                found.append(tuple(code for code in ended if code >= FIRST))
        return found

    def _beams(self, sources: Sequence[Sequence[int]], how: Decoding) -> Iterator[tuple[Tensor, list[Tensor]]]:
        """Some sources at a time: they themselves (B, S), and for each its rows (W, N + 1), best first."""
        share = max(1, self.rows_at_once // how.beam)
        for start in range(0, len(sources), share):
            context = padded(sources[start : start + share], self.device)
            # Twice the source and a few more is all that a sensible target has.
            width = min(2 * context.shape[1] + 10, self.length) + 1
            x = torch.zeros(len(context), width, dtype=torch.long, device=self.device)
            most = 2 * (context != 0).sum(1, keepdim=True) + 11
            asked = torch.arange(width, device=self.device) < most
            question = Question(torch.zeros_like(asked), asked)
            if how.beam == 1:
                policy, draw = sampler_of(self.recipe, 1)
                last = self._states(policy, draw, x, question, context, how.seed)[-1]
                beams = [row.unsqueeze(0) for row in last.x]
            else:
                options: dict[str, Any] = {"context": context, "end": END, "length_penalty": how.length_penalty}
                beams = beam_search(self.model, x, question, width=how.beam, **options)
            yield context, beams

    def _scored(self, beams: Sequence[Tensor], context: Tensor) -> list[list[Hypothesis]]:
        """Hypotheses of rows (W, N + 1) for each source, with their exact log-probabilities, in their order."""
        rows = torch.cat(list(beams))
        index = torch.repeat_interleave(torch.arange(len(beams)), torch.tensor([len(one) for one in beams]))
        ends = rows == END
        count = torch.where(ends.any(1), ends.to(torch.uint8).argmax(1), rows.shape[1] - 1)
        asked = torch.arange(rows.shape[1], device=rows.device) <= count.unsqueeze(1)
        rows = torch.where(asked, rows, 0)
        value = log_prob(
            self.model, rows, Question(torch.zeros_like(asked), asked), context=context[index.to(context.device)]
        )
        found: list[list[Hypothesis]] = [[] for _ in beams]
        for owner, n, nats, row in zip(index.tolist(), count.tolist(), value.value.tolist(), rows.tolist()):
            codes = tuple(code for code in row[:n] if code >= FIRST)
            found[owner].append(Hypothesis(codes, nats / (n + 1), nats, True, n + 1))
        return found

    def _joined(self, sources: Sequence[Sequence[int]], how: Decoding, ways: Ways | None) -> list[list[Hypothesis]]:
        half, found = self.length + 1, list[list[Hypothesis]]()
        share = 1 if ways is not None else max(1, self.rows_at_once // 8)  # both sides are in a row, uncut
        for start in range(0, len(sources), share):
            some = sources[start : start + share]
            options = [None] * len(some) if ways is None else ways(torch.zeros(self.length))[:MOST]
            owners = some if ways is None else [some[0]] * len(options)
            x, told, asked = self._joined_rows(owners, options)
            question = Question(told, asked & ~told)
            policy, draw = sampler_of(self.recipe, 1, speculative=how.speculative)
            policy = policy if ways is None else CachedChain()
            last = self._states(policy, draw, x, question, None, how.seed)[-1]
            each = self._scored_joined(last, torch.tensor([len(one) + 1 for one in owners], device=x.device), half)
            found += [[one] for one in each] if ways is None else [sorted(each, key=lambda one: -one.score)]
        return found

    def _joined_rows(
        self, sources: Sequence[Sequence[int]], options: Sequence[Fixed | None]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x, given and asked (R, 2 (N + 1)) of sources, each under its option; None = nothing is fixed."""
        half = self.length + 1
        rows = torch.zeros(len(options), 2 * half, dtype=torch.long)
        told, asked = torch.zeros_like(rows, dtype=torch.bool), torch.zeros_like(rows, dtype=torch.bool)
        for row, (source, fixed) in enumerate(zip(sources, options)):
            rows[row, : len(source)] = torch.tensor(list(source))
            rows[row, len(source)] = END
            told[row, : len(source) + 1] = True
            if fixed is None:
                asked[row, half:] = True
                continue
            asked[row, half : half + fixed.length] = True
            rows[row, half + fixed.length], told[row, half + fixed.length] = END, True
            for place, code in fixed.codes.items():
                rows[row, half + place - 1], told[row, half + place - 1] = code, True
        return rows.to(self.device), told.to(self.device), asked.to(self.device)

    def _scored_joined(self, last: State, start: Tensor, half: int) -> list[Hypothesis]:
        """Hypotheses of rows that were drawn, with their exact log p(words, END | source); sources end before start."""
        target = last.x[:, half:]
        ends = target == END
        count = torch.where(ends.any(1), ends.to(torch.uint8).argmax(1), target.shape[1] - 1)
        place = torch.arange(last.x.shape[1], device=target.device)
        given = place < start.unsqueeze(1)
        asked = (place >= half) & (place <= half + count.unsqueeze(1))
        value = log_prob(self.model, torch.where(given | asked, last.x, 0), Question(given, asked)).value
        made: list[Hypothesis] = []
        for row, passes in enumerate(last.row_passes.tolist()):
            n = int(count[row])
            codes = tuple(code for code in target[row, :n].tolist() if code >= FIRST)
            made.append(Hypothesis(codes, float(value[row]) / (n + 1), float(value[row]), True, passes))
        return made


def _by_rank(some: Sequence[Hypothesis], by: Sequence[float]) -> list[Hypothesis]:
    return [some[i] for i in sorted(range(len(some)), key=lambda i: -by[i])]


def _key(source: Sequence[int], length: int, seed: int) -> int:
    """63 bits from a source, a length and a seed."""
    text = f"{seed}:{length}:{','.join(map(str, source))}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def padded(sources: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """int64 (B, S): codes with 0 behind the end."""
    longest = max(len(source) for source in sources)
    return torch.tensor([[*source, *[0] * (longest - len(source))] for source in sources], device=device)


def likeliest_lengths(log_lengths: Tensor, count: int, *, least: int = 1) -> list[Fixed]:
    """The ``count`` likeliest lengths from ``least`` on, nothing fixed; log p(n) of n = 1 … N."""
    allowed = log_lengths.clone()
    allowed[: least - 1] = -torch.inf
    best = allowed.topk(min(count, len(allowed) - least + 1)).indices
    return [Fixed(int(n) + 1, {}, frozenset()) for n in best]
