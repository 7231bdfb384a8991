"""Some cells alone: the same numbers as those of all cells."""

import torch

from anyfill.tables.residual_head import CODE, Head, Start, head_layout, log_chances

SIZES = (0, 3, 0, 2)
SHARES = ((0.4,), (0.5, 0.3, 0.2), (0.1,), (0.9, 0.1))
LAYOUT = head_layout(SIZES, ((0.0,), (), (1.0,), ()), SHARES, 2, 7)
ROW, VARIABLE = torch.tensor([0, 4, 2, 2, 1]), torch.tensor([1, 3, 0, 1, 2])


def test_chances_are_means_of_one_hot_features_kept_positive_and_made_to_sum_to_one() -> None:
    center = torch.tensor([[0.7, 0.2, -0.5, 0.9, 0.0, 0.0, 1.0]]).roll(-6, 1)  # number, 3 codes, number, 2 codes
    chances = log_chances(center, LAYOUT.code_feature, LAYOUT.role, LAYOUT.floor).exp()
    raw = center[0, 1:4].clamp(min=0.0) + 0.02 * torch.tensor([0.5, 0.3, 0.2])
    torch.testing.assert_close(chances[0, 1, :3], raw / raw.sum())
    torch.testing.assert_close(chances[0, 3, :2].sum(), torch.tensor(1.0))
    assert bool((chances[0][LAYOUT.role != CODE] == 1.0).all())


def test_chances_of_some_cells_are_those_of_all_bit_for_bit() -> None:
    center = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    layout = (LAYOUT.code_feature, LAYOUT.role, LAYOUT.floor)
    whole, part = log_chances(center, *layout), log_chances(center, *layout, (ROW, VARIABLE))
    assert torch.equal(part, whole[ROW, VARIABLE])


def test_numbers_are_found_at_their_place_among_the_numbers() -> None:
    center, none = torch.arange(10.0).view(5, 2), torch.zeros(5, 0)
    place = torch.tensor([0, 0, 1, 0])
    told = torch.zeros(5, 7, dtype=torch.bool)
    found = Start(center, -center, None, none, torch.zeros(5, 7), told).numbers(place, (ROW[2:], VARIABLE[2:]))
    assert [part.flatten().tolist() for part in found] == [[4.0, 4.0, 3.0], [-4.0, -4.0, -3.0]]
    ones = Start(none, none, None, none, torch.zeros(5, 7), told).numbers(place, (ROW, VARIABLE))
    assert all(torch.equal(part, torch.ones(5, 1)) for part in ones)


def test_the_head_of_some_variables_is_theirs_and_one_for_all_where_all_share_it() -> None:
    factors = torch.arange(4.0).unsqueeze(1)
    head = Head(LAYOUT.role, LAYOUT.value, LAYOUT.log_start, factors, -factors, True, None)
    found = head.at(VARIABLE)
    for name in ("role", "value", "log_start", "widen", "sharpen"):
        assert torch.equal(getattr(found, name), getattr(head, name)[VARIABLE])
    shared = head._replace(shared=[3, 2, 2]).at(VARIABLE)
    assert len(shared.role) == 1
    assert torch.equal(shared.value, head.value[VARIABLE])  # spikes differ
    assert len(head._replace(shared=[2, 2, 2], has_spikes=False).at(VARIABLE).value) == 1
