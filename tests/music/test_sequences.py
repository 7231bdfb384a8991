"""Repeated sequences against the definition, enumerated."""

from hypothesis import example, given
from hypothesis import strategies as st
from written_scores import score

from anyfill.music.sequences import repeated_sequences, repeats
from anyfill.music.spelling import spell

NOTES = st.lists(st.sampled_from(["a", "b", "a\0", "b\0"]), max_size=9)


def by_definition(notes: list[str]) -> dict[str, int]:
    whole = "".join(notes)
    times: dict[str, int] = {}
    for start, letter in enumerate(whole):
        for end in range(start + 1, len(whole) + 1):
            part = whole[start:end]
            if letter != "\0" and sum(one != "\0" for one in part) >= 2:
                times[part] = times.get(part, 0) + 1
    often = {part: n for part, n in times.items() if n >= 2}
    return {
        part: n
        for part, n in often.items()
        if not any(len(other) > len(part) and part in other and often[other] == n for other in often)
    }


@given(NOTES)
@example(["a"] * 6)
@example(["a", "b", "a", "b", "a\0", "b"])
def test_repeats_are_those_of_the_definition(notes: list[str]) -> None:
    assert repeats(notes) == by_definition(notes)


def test_a_bar_sung_twice_counts_twice_at_its_length() -> None:
    tune, still = "C4/1 D4/1 E4/2", "C3/8"
    piece = spell(score(f"{tune} {tune}", still, still, still), protocol="paper")
    assert repeated_sequences(piece) == {16: 2}


def test_the_same_sequence_in_two_voices_counts_as_the_lower_one_has_it() -> None:
    twice, thrice = "C4/1 D4/1 C4/1 D4/1 E4/2", "C4/1 D4/1 C4/1 D4/1 C4/1 D4/1"
    still = "C3/6"
    piece = spell(score(twice, thrice, still, still), protocol="paper")
    assert repeats(["C\0\0\0", "D\0\0\0"] * 2 + ["E" + "\0" * 7]) == {"C\0\0\0D\0\0\0": 2}
    assert repeated_sequences(piece) == {8: 3, 16: 2}
