"""What propositions 4 and 5 and corollary 1 promise for one clique, with their constants and what is exactly true.

The formulas, and which printed form of each is right, are in ``anyfill.ising.separation``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from anyfill.ising.clique_chains import Clique, LumpedChain
from anyfill.ising.first_passage import hitting_law, surely_reached
from anyfill.ising.separation import Ferromagnet, ferromagnet, modes, reach_bound, separation, stuck_bound
from anyfill.ising.show import Listing, chance, known_chance, number, verdict
from anyfill.networks.states import MAX_EXACT


@dataclass(frozen=True, slots=True)
class Promises:
    """For JSON, as tables, and as sentences."""

    document: dict[str, Any]
    listings: Sequence[Listing]
    notes: Sequence[str]


def promises(clique: Clique, chains: Mapping[int | None, LumpedChain], *, delta: float, steps: int) -> Promises:
    """Everything the paper says of this clique at confidence 1 - delta; the corollary for M = ``steps``.

    ``chains`` are k-Gibbs by k, and independent parallel by None.
    """
    sizes = [k for k in chains if k is not None]
    largest = clique.variables  # the corollary asks for a k: the one that is easiest to allow
    facts, whole = ferromagnet(clique), separation(clique, largest, delta=delta, steps=steps)
    listings: list[Listing] = []
    notes: list[str] = []
    document: dict[str, Any] = {"assumption_5": {**asdict(facts), "holds": facts.holds}}
    if clique.variables <= MAX_EXACT and clique.size > 1:
        found = modes(clique)
        masses = {name: known_chance(getattr(found, name)) for name in ("high_mass", "low_mass")}
        document["modes"] = asdict(found) | masses
        notes.append(f"P(R_1) {_equals(found.high_mass)}, P(R_-1) {_equals(found.low_mass)}.")
    notes.append(_assumption(facts))
    if facts.holds and clique.size > 1:
        reach = [(k, reach_bound(clique, k, delta)) for k in sizes if k >= clique.size]
        document["proposition_4"] = [{"k": k, **asdict(bound), "exact_steps": None} for k, bound in reach]
        rows: list[tuple[str, ...]] = []
        for entry, (k, bound) in zip(document["proposition_4"], reach):
            entry["exact_steps"] = _exact_steps(chains[k], delta, steps)
            exact = "-" if entry["exact_steps"] is None else str(entry["exact_steps"])
            rows.append(
                (str(k), f"{bound.miss:.6g}", number(bound.steps), f"{bound.printed_miss:.6g}",
                 number(bound.printed_steps), exact)
            )  # fmt: skip
        if rows:
            listings.append(
                Listing(
                    f"Proposition 4: steps of k-Gibbs to R_1 with probability {1 - delta:g}, from any start",
                    ("k", "c", "T", "c (main text)", "T (main text)", "T, exact"),
                    rows,
                )
            )
        else:
            notes.append(f"Proposition 4 is about k >= |C| = {clique.size}: no such k is listed.")
        _stuck(clique, chains[None], delta, steps, document, notes)
    listings.append(
        Listing(
            f"Corollary 1: M = {steps:,} steps, probability {1 - delta:g}",
            ("assumption", "needed", "here", ""),
            [
                ("5: h_C above the other fields", number(facts.other_fields), number(facts.clique_field),
                 verdict(facts.clique_field > max(0.0, facts.other_fields))),
                ("5: J_0 = J - |h|_1 above", "0", number(facts.margin), verdict(facts.margin > 0)),
                ("6: |C| at least", number(whole.size_needed), str(clique.size),
                 verdict(clique.size >= whole.size_needed)),
                ("6: h_C at least", number(whole.field_needed), number(facts.clique_field),
                 verdict(facts.clique_field >= whole.field_needed)),
                ("6: J_0 at least", number(whole.margin_needed), number(facts.margin),
                 verdict(facts.margin >= whole.margin_needed)),
                ("7: k at least", number(whole.k_needed), f"N = {largest}", verdict(whole.large)),
            ],
        )
    )  # fmt: skip
    follows = "follows" if whole.follows else "does not follow (which does not say that it is false)"
    notes.append(f"Corollary 1, R_1 after one step of k-Gibbs and not in M steps of independent parallel: {follows}.")
    document["corollary_1"] = {
        "follows": whole.follows,
        "size_needed": whole.size_needed,
        "field_needed": whole.field_needed,
        "margin_needed": whole.margin_needed,
        "k_needed": whole.k_needed,
    }
    return Promises(document, listings, notes)


def _stuck(
    clique: Clique, chain: LumpedChain, delta: float, steps: int, document: dict[str, Any], notes: list[str]
) -> None:
    """Proposition 5, and the exact chance that it is about."""
    bound = stuck_bound(clique, delta)
    law = hitting_law(chain.matrix, chain.total > -2, steps, starts=[chain.low])
    left = float(law.reached[-1, 0])
    document["proposition_5"] = {**asdict(bound), "vacuous": bound.vacuous, "exact_leaves": known_chance(left)}
    said = f"r = {number(bound.deviation)}, exponent {number(bound.exponent)}"
    what = (
        f"says nothing here ({said})"
        if bound.vacuous
        else f"independent parallel keeps sum_C <= -2 for T = {number(bound.steps)} steps with probability "
        f"{1 - delta:g} ({said}; T = {number(bound.sharper_steps)} by the sharper form)"
    )
    exact = f"exactly, from R_-1 it leaves within {steps:,} steps with probability {chance(left, 3)}"
    notes.append(f"Proposition 5: {what}; {exact}.")


def _exact_steps(chain: LumpedChain, delta: float, most: int) -> int | None:
    """The first t at which even the worst start is in R_1, or has been, with probability 1 - delta; None if later."""
    return surely_reached(chain.matrix, chain.high, delta, most)


def _equals(value: float) -> str:
    shown = chance(value)
    return shown if shown.startswith("<") else f"= {shown}"


def _assumption(facts: Ferromagnet) -> str:
    said = f"h_C = {number(facts.clique_field)} against {number(facts.other_fields)} outside, "
    said += f"J_0 = J - |h|_1 = {number(facts.margin)}"
    if facts.holds:
        return f"Assumption 5 holds: {said}."
    return f"Assumption 5 fails ({said}): propositions 4, 5 and 8 do not speak of this model; the exact values stand."
