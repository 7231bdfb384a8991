"""Post-editing: some words of a draft are changed and held, and everything else is looked at again.

A model that rewrites (PaDIR, SUNDAE) starts from the draft instead of noise. One that masks (CMLM, DisCo) first asks
how probable each word of the draft is given all others, the new ones included, and begins where mask-predict would be
after its first pass: the least probable are masked. A one-pass model asks the same, and writes the less probable half
of the words anew, given all the rest. The number of places stays that of the changed draft.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from anyfill.checks import refuse
from anyfill.evaluation import log_prob
from anyfill.model import Model
from anyfill.questions.question import Question, chain_rank
from anyfill.samplers import MaskPredict, Restricted, State, Task
from anyfill.samplers.loop import run
from anyfill.translation.constraints import Fixed
from anyfill.translation.decode import Decoder
from anyfill.translation.hypotheses import Decoding, Hypothesis, padded
from anyfill.translation.recipes import layout_of, sampler_of
from anyfill.translation.rules import rules_of
from anyfill.translation.vocabulary import is_placeholder, plain

_MARKS = ".,;:!?\"'()…“”„«»‹›‘’‚"


def adapted(
    decoder: Decoder, source: Sequence[int], draft: str, change: Mapping[str, str], how: Decoding
) -> Hypothesis:
    """The plain draft with its changed words and the symbols of placeholders held, the others adapted to them."""
    layout = layout_of(decoder.recipe)
    if layout == "end":
        expected = "a model that takes words at any place (padir, cmlm, disco, sundae, one_pass)"
        raise refuse("adapt", expected=expected, got=f"one of the recipe {decoder.recipe}")
    codes, held = _changed(decoder, draft, change)
    if not 1 <= len(codes) <= decoder.length:
        raise refuse("draft", expected=f"1 to {decoder.length} pieces", got=len(codes))
    behind = frozenset(i + 2 for i in held if i + 1 not in held)  # no word that was put in goes on
    symbols = [i for i, code in enumerate(codes) if is_placeholder(code)]
    spaces = [i - 1 for i in symbols if i and decoder.vocabulary.piece(codes[i - 1]) == "▁"]
    held |= {*symbols, *spaces}
    behind |= {i + 2 for i in symbols if i + 1 < len(codes) and decoder.vocabulary.begins_word[codes[i + 1]]}
    if layout == "joined":
        doubtful = _less_probable_half(decoder, source, codes, held)
        rest = {place + 1: code for place, code in enumerate(codes) if place not in doubtful}
        return decoder.decode([source], how, ways=lambda _: [Fixed(len(codes), rest, behind)])[0][0]
    fixed = Fixed(len(codes), {i + 1: codes[i] for i in held}, behind)
    x, told, asked = decoder.rows([fixed])
    x[0, 1:] = torch.tensor(codes)
    question = Question(told, asked)
    model: Model = decoder.model
    policy, draw = sampler_of(decoder.recipe, how.passes, stutter=how.stutter)
    masks = decoder.recipe in ("cmlm", "disco")
    policy = MaskPredict(max(how.passes, 2)) if masks else policy
    generator = torch.Generator(decoder.device).manual_seed(how.seed)
    with model.evaluating():
        memory: Any = model.read(padded([source], decoder.device))
    never = decoder.never(source).unsqueeze(0).to(decoder.device)
    rules = rules_of([fixed], never, decoder.vocabulary, x.shape[1])
    ruled = Restricted(temperature=draw.temperature, forbidden=rules.everywhere())
    task = Task(model, x, question, ruled, memory, generator)
    first = State.first(x, torch.where(told, chain_rank(model.fixed_order, Question(told, asked & ~asked)), 0))
    if masks:
        first = replace(first, score=_given_all_others(model, x, asked, memory), step=1)
    *_, last = run(policy.along(model.order), task, first)
    total = float(torch.where(asked, last.score, 0.0).sum())
    mean = total / max(int(asked.sum()), 1)
    return Hypothesis(tuple(last.x[0, 1:].tolist()), mean, total, False, last.passes)


def words_at(draft: str, old: str) -> list[int]:
    """Where these words stand in a plain draft, as the number of the first of them; marks around them do not count."""
    words, own = draft.split(), " ".join(old.split())
    count = len(own.split())
    spans = [(i, " ".join(words[i : i + count])) for i in range(len(words) - count + 1)]
    return [i for i, said in spans if own and (said == own or said.strip(_MARKS) == own.strip(_MARKS) != "")]


def _changed(decoder: Decoder, draft: str, change: Mapping[str, str]) -> tuple[list[int], set[int]]:
    """The codes of the changed draft, and which of them were put in."""
    words = draft.split()
    new = dict[int, tuple[int, str]]()  # by its first word: how many words go, and what comes
    for old, wanted in change.items():
        own = " ".join(old.split())
        for place in words_at(draft, old):
            spoken = " ".join(words[place : place + len(own.split())])
            said = own if own in spoken else own.strip(_MARKS)
            new[place] = len(own.split()), spoken.replace(said, plain(wanted))
    codes, held, number = list[int](), set[int](), 0
    while number < len(words):
        count, text = new.get(number, (1, words[number]))
        own = decoder.vocabulary.encode(text, spelt=True)  # a draft stays as it was written
        if number in new:
            held |= set(range(len(codes), len(codes) + len(own)))
        codes += own
        number += count
    return codes, held


def _less_probable_half(decoder: Decoder, source: Sequence[int], codes: Sequence[int], held: set[int]) -> set[int]:
    """Of the places of a draft (from 0) that are not held, the half least probable given all others."""
    free = [place for place in range(len(codes)) if place not in held]
    if not free:
        return set()
    x, told, asked = decoder.joined_rows(
        [source] * len(free), [Fixed(len(codes), dict(enumerate(codes, 1)), frozenset())] * len(free)
    )
    asked = torch.zeros_like(asked)
    asked[torch.arange(len(free)), decoder.length + 1 + torch.tensor(free)] = True
    value = log_prob(decoder.model, x, Question(told & ~asked, asked)).value
    return {free[number] for number in value.argsort()[: (len(free) + 1) // 2].tolist()}


def _given_all_others(model: Model, x: Tensor, asked: Tensor, memory: Any) -> Tensor:
    """float64 (1, L + 1): log p(word | all the others) of every asked word."""
    place = asked[0].nonzero().flatten()
    score = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    if len(place):
        rows = x.expand(len(place), -1)
        known = torch.arange(x.shape[1], device=x.device) != place.unsqueeze(1)
        index = torch.zeros(len(place), dtype=torch.long, device=x.device)
        with model.evaluating():
            found = model.marginals(rows, known, memory.rows(index)).log_prob(rows).double()
        score[0, place] = found[torch.arange(len(place)), place]
    return score
