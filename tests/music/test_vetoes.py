"""The rule against parallels forbids exactly those, and a sampler under it writes none."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyfill.music.chorale import CODES
from anyfill.music.model import one_pass_chorale, one_pass_chorale_model
from anyfill.music.vetoes import NoParallels
from anyfill.questions import Question
from anyfill.samplers import CachedChain, sample

STEPS = 3


def is_parallel(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Both voices sound and move, and are a fifth, or octaves, apart before and after."""
    if 0 in (*before, *after) or before[0] == after[0] or before[1] == after[1]:
        return False
    first, second = abs(before[0] - before[1]) % 12, abs(after[0] - after[1]) % 12
    return first == second and first in (0, 7)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31))
def test_the_rule_forbids_exactly_the_parallels(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = 20 + torch.randint(14, (1, 4 * STEPS), generator=generator)
    x = torch.where(torch.rand(x.shape, generator=generator) < 0.1, 0, x)
    known = torch.rand(x.shape, generator=generator) < 0.7
    variable = int(torch.randint(4 * STEPS, (1,), generator=generator))
    known[0, variable] = False
    found = NoParallels().forbidden(x, known, torch.tensor([variable]))[0]
    step, voice = divmod(variable, 4)
    for code in range(CODES):
        wrong = False
        for beside in (step - 1, step + 1):
            for other in range(4):
                cells = (4 * beside + voice, 4 * step + other, 4 * beside + other)
                if other == voice or not 0 <= beside < STEPS or not all(bool(known[0, cell]) for cell in cells):
                    continue
                mine, theirs_now, theirs_then = (int(x[0, cell]) for cell in cells)
                wrong |= is_parallel((mine, theirs_then), (code, theirs_now))
        assert bool(found[code]) == wrong


def parallels(rows: torch.Tensor) -> int:
    grid = rows.reshape(len(rows), -1, 4).tolist()
    return sum(
        is_parallel((one[t][u], one[t][v]), (one[t + 1][u], one[t + 1][v]))
        for one in grid
        for t in range(len(one) - 1)
        for u in range(4)
        for v in range(u)
    )


def test_a_sampler_under_the_rule_writes_none_and_one_without_it_does() -> None:
    model = one_pass_chorale_model(8, width=16, depth=1, heads=2)
    model.factorizations = one_pass_chorale(8).factorizations
    x = torch.zeros(20, 32, dtype=torch.int64)
    everything = torch.ones_like(x, dtype=torch.bool)
    question = Question(~everything, everything)
    found = {}
    for veto in (None, NoParallels()):
        generator = torch.Generator().manual_seed(0)
        found[veto] = sample(model, x, question, policy=CachedChain(veto=veto), generator=generator).x
    assert parallels(found[None]) > 5
    assert parallels(found[NoParallels()]) == 0
