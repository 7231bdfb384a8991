"""SUNMASK's Figures 3 to 5: what a mask controls. "Ode to Joy" in the soprano, the other voices drawn.

    A   the whole soprano is given: fixed, and marked as trusted
    B   its left half is given; its right half is held: fixed too, but not marked, so that the model need not follow it
    C   its left half is given; its right half is asked, and rewritten with the other voices

Only a model that is shown what stands in untrusted cells can tell B from the right half not being there at all, which
is the paper's point. The paper shows one picture of each. Here every setting has 64 rows at least, and what the
pictures are said to show is counted. How well a tune sits on three lower voices, by counts of Bach's chorales alone (no
network): at each step, with pitch classes counted from the bass,

    misfit = - log p(soprano | alto, tenor),      p = (n(s, a, t) + 2 p(s)) / (n(a, t) + 2)

in nats a step; the mean over a half of a row is one number. Claims, each with a 95 % bootstrap interval over rows:

    harmonised   A: the tune sits better on its lower voices than moved by 1 to 11 semitones would
    asked for    A: better than on voices that were drawn without any tune (the same model, SMc-T)
    trusted      right half, B less A: a tune that is not trusted is followed less
    shown        right half, B less C, of the given tune: yet more than one that was not there
    rewritten    right half, C: share of steps whose soprano differs from the tune's (0 in A and B)
    settled      halfway through the chain, asked cells: share that have their last value, trusted less not trusted

``chains`` draws on the accelerator; the rest needs no model:

    python -m experiments.sunmask.fig3 --figures figures.npz --free smc.npz
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyfill.model import Model
from anyfill.music.chorale import REST, VOICES, Chorale, pitches_of
from anyfill.music.files import read_jsb
from anyfill.music.piano_roll import Panel, draw_piano_roll
from anyfill.questions import Question
from anyfill.recipes import sunmask
from anyfill.samplers import trace
from anyfill.samplers.annealed import TRUSTED
from benchmarks.common import write_result
from experiments.sunmask.replay import replayed
from experiments.where import data_folder

STEPS = 128
# Beethoven, 9th symphony, last movement, eight bars: (MIDI pitch, sixteenths), moved up to where Bach's sopranos lie.
_LINE = [(64, 4), (64, 4), (65, 4), (67, 4), (67, 4), (65, 4), (64, 4), (62, 4), (60, 4), (60, 4), (62, 4), (64, 4)]
_UP = 7
TUNE = [
    (pitch + _UP, length) for pitch, length in [*_LINE, (64, 6), (62, 2), (62, 8), *_LINE, (62, 6), (60, 2), (60, 8)]
]
SETTINGS = {
    "A": "A: whole tune given",
    "B": "B: left half given, right half held",
    "C": "C: left half given, right half asked",
}
LOOKS = 32
"""So many times a chain is looked at."""


def tune(steps: int = STEPS) -> Chorale:
    """The tune in the soprano, the other voices silent."""
    pitch = np.full((len(VOICES), STEPS), REST, dtype=np.int16)
    pitch[0] = np.repeat([note for note, _ in TUNE], [length for _, length in TUNE])
    onset = np.zeros(pitch.shape, dtype=np.bool_)
    onset[0, np.cumsum([0, *[length for _, length in TUNE[:-1]]])] = True
    return Chorale(pitch[:, :steps], onset[:, :steps], title="Ode to Joy")


def masks(setting: str, steps: int = STEPS) -> tuple[Tensor, Tensor, Tensor]:
    """given, held, asked: bool (4 T,) each."""
    soprano = torch.zeros(steps, len(VOICES), dtype=torch.bool)
    soprano[:, 0] = True
    right = (torch.arange(steps) >= steps // 2).unsqueeze(1) & soprano
    given = soprano if setting == "A" else soprano & ~right
    held = right if setting == "B" else torch.zeros_like(right)
    return given.flatten(), held.flatten(), ~(given | held).flatten()


def chains(
    model: Model, rows: int, *, rounds: int, device: str, variant: str = "T", seed: int = 0
) -> dict[str, NDArray[Any]]:
    """All three settings as one batch: int16 (n, 4, T) of each, and the chain at ``LOOKS`` moments.

    ``moments`` are rounds, ``values`` uint8 (looks, rows, N) what stood there, ``trusted`` packed bits (looks, rows, N)
    which of it the network was told to trust, ``setting`` (rows,) which of the three a row is.
    """
    steps = model.variables // len(VOICES)
    codes = tune(steps).codes()
    which = torch.arange(rows) % len(SETTINGS)
    parts = [torch.stack(column) for column in zip(*(masks(one, steps) for one in SETTINGS))]
    given, held, asked = (part[which].to(device) for part in parts)
    policy, draw = sunmask.sampler(variant, voices=len(VOICES), rounds=rounds)
    generator = torch.Generator(device=device).manual_seed(seed)
    every = max(1, rounds // LOOKS)
    moments, values, trusted = [], [], []
    with replayed(model, rows, device):
        states = trace(
            *(model, codes.to(device).expand(rows, -1).clone(), Question(given, asked), policy),
            draw=draw, generator=generator, held=held, allow_untrained=True,
        )  # fmt: skip
        state = next(states)
        for state in states:
            if state.step % every == 0:
                moments.append(state.step)
                values.append(state.x.to(torch.uint8))
                trusted.append(given | (state.known & (state.plan >= TRUSTED)))
    pitches = np.stack([pitches_of(row) for row in state.x.cpu()])
    found = {setting: pitches[which.numpy() == i] for i, setting in enumerate(SETTINGS)}
    return {
        **found,
        "setting": which.numpy(),
        "moments": np.array(moments),
        "values": torch.stack(values).cpu().numpy(),
        "trusted": np.packbits(torch.stack(trusted).cpu().numpy(), axis=-1),
    }


class Fit:
    """Bach's counts of a soprano above two inner voices, pitch classes from the bass."""

    def __init__(self, pieces: Sequence[NDArray[np.int16]]) -> None:
        self.counts = np.zeros((12, 12, 12))
        for pitch in pieces:
            alto, tenor, soprano, sounds = self._classes(pitch, pitch[0])
            np.add.at(self.counts, (alto[sounds], tenor[sounds], soprano[sounds]), 1.0)
        overall = self.counts.sum((0, 1))
        prior = (overall + 1) / (overall.sum() + 12)
        self.nats = -np.log((self.counts + 2 * prior) / (self.counts.sum(-1, keepdims=True) + 2))

    @staticmethod
    def _classes(pitch: NDArray[np.int16], soprano: NDArray[np.int16]) -> tuple[NDArray[np.int64], ...]:
        relative = (np.concatenate([pitch[1:3], soprano[None]]).astype(np.int64) - pitch[3]) % 12
        sounds = (pitch[1:] != REST).all(0) & (soprano != REST)
        return relative[0], relative[1], relative[2], sounds

    def __call__(
        self, pitch: NDArray[np.int16], half: slice, soprano: NDArray[np.int16] | None = None, up: int = 0
    ) -> float:
        """Misfit of a soprano (its own by default, moved up) in these steps of pitches (4, T), nats a step."""
        upper = pitch[0] if soprano is None else soprano
        alto, tenor, top, sounds = (
            values[half] for values in self._classes(pitch, np.where(upper == REST, REST, upper + up).astype(np.int16))
        )
        return float(self.nats[alto[sounds], tenor[sounds], top[sounds]].mean()) if sounds.any() else float("nan")


def interval(one: NDArray[np.float64], other: NDArray[np.float64] | None = None, *, seed: int = 0) -> dict[str, float]:
    """Mean of ``one``, less that of ``other``, and its 95 % percentile bootstrap over rows of both."""
    random = np.random.default_rng(seed)
    sets = [values[np.isfinite(values)] for values in (one, other) if values is not None]
    means = [
        values[random.integers(len(values), size=(4000, len(values)))].mean(1) * sign
        for values, sign in zip(sets, (1, -1))
    ]
    low, high = np.quantile(np.sum(means, 0), [0.025, 0.975])
    value = float(sets[0].mean() - (sets[1].mean() if len(sets) > 1 else 0.0))
    return {"value": value, "low": float(low), "high": float(high), "rows": min(map(len, sets))}


def counted(found: dict[str, NDArray[Any]], free: NDArray[np.int16] | None, fit: Fit) -> dict[str, Any]:
    """Every claim with its interval."""
    steps = found["A"].shape[-1]
    left, right = slice(0, steps // 2), slice(steps // 2, steps)
    whole = slice(0, steps)
    soprano = tune(steps).pitch[0]

    def misfits(rows: NDArray[np.int16], half: slice, up: int = 0) -> NDArray[np.float64]:
        return np.array([fit(row, half, soprano, up) for row in rows])

    own = misfits(found["A"], whole)
    moved = np.mean([misfits(found["A"], whole, up) for up in range(1, 12)], 0)
    claims: dict[str, Any] = {"harmonised": interval(own - moved)}
    if free is not None:
        claims["asked for"] = interval(own, misfits(free, whole))
    claims["trusted"] = interval(misfits(found["B"], right), misfits(found["A"], right))
    claims["trusted, left half (nothing differs)"] = interval(misfits(found["B"], left), misfits(found["A"], left))
    claims["shown"] = interval(misfits(found["B"], right), misfits(found["C"], right))
    differs = (found["C"][:, 0, right] != soprano[right]).mean(1)
    claims["rewritten"] = interval(differs)
    fixed = [(found[one][:, 0] != soprano).any() for one in ("A", "B")]
    claims["rewritten"]["fixed tunes changed"] = int(np.sum(fixed))
    claims["own tune of C sits, right half, less A's"] = interval(
        np.array([fit(row, right) for row in found["C"]]), misfits(found["A"], right)
    )
    claims["settled"], over_time = settled(found)
    return {"claims": claims, "over time": over_time}


def settled(found: dict[str, NDArray[Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """The claim halfway, and the shares at each look."""
    values = found["values"]
    trusted = np.unpackbits(found["trusted"], axis=-1, count=values.shape[-1]).astype(bool)
    steps = values.shape[-1] // len(VOICES)
    asked = np.stack([masks(one, steps)[2].numpy() for one in SETTINGS])[found["setting"]]
    last = values == values[-1]

    def share(where: NDArray[np.bool_]) -> NDArray[np.float64]:  # (looks, rows)
        count = where.sum(-1)
        return np.where(count > 0, (last & where).sum(-1) / np.maximum(count, 1), np.nan)

    yes, no = share(trusted & asked), share(~trusted & asked)
    with np.errstate(all="ignore"):
        over_time: dict[str, Any] = {
            "round": found["moments"].tolist(),
            "share trusted": (trusted & asked).sum((1, 2)).__truediv__(asked.sum()).tolist(),
            "settled, trusted": [_mean(row) for row in yes],
            "settled, not trusted": [_mean(row) for row in no],
        }
    half = len(values) // 2
    return interval(yes[half] - no[half]), over_time


def _mean(values: NDArray[np.float64]) -> float | None:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if len(kept) else None


def main() -> None:
    """Count, print, write JSON and pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True, help="what ``chains`` drew")
    parser.add_argument("--free", type=Path, help="samples without a tune")
    parser.add_argument("--free-key", default="T", help="which of them")
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--name", default="sunmask/fig3")
    arguments = parser.parse_args()
    with np.load(arguments.figures, allow_pickle=False) as file:
        found = {key: file[key] for key in file.files}
    free = None
    if arguments.free is not None:
        with np.load(arguments.free, allow_pickle=False) as file:
            free = file[arguments.free_key]
    path = arguments.data / "jsb_chorales" / "jsb16_train_valid.json"
    fit = Fit([piece.pitch for piece in read_jsb(path, "train")])
    bach = np.array([fit(piece.pitch, slice(None)) for piece in read_jsb(path, "valid")])
    told = counted(found, free, fit)
    told["Bach's own sopranos, valid part"] = interval(bach)
    told["rows"] = {setting: len(found[setting]) for setting in SETTINGS}
    steps = found["A"].shape[-1]
    soprano = tune(steps).pitch[0]
    told["misfit"] = {
        f"{setting}, {name}": interval(np.array([fit(row, half, soprano) for row in found[setting]]))
        for setting in SETTINGS
        for name, half in (("left", slice(0, steps // 2)), ("right", slice(steps // 2, None)))
    }
    for claim, one in told["claims"].items():
        print(f"{claim:42} {one['value']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}], {one['rows']} rows")
    written = write_result(arguments.name, {**told, "protocol": __doc__})
    draw(found, told["over time"], written)


def draw(found: dict[str, NDArray[Any]], over_time: dict[str, Any], path: Path) -> None:
    """The first row of each setting as a piano roll, and how chains settle."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels: list[Panel] = []
    for setting, title in SETTINGS.items():
        steps = found[setting].shape[-1]
        locked = ~masks(setting, steps)[2].numpy().reshape(-1, len(VOICES)).T
        filled = Chorale(found[setting][0], np.where(locked, tune(steps).onset, False))
        panels.append(Panel(filled, title, locked=locked))
    draw_piano_roll(panels, path.with_suffix(".png"), title="SUNMASK: what a mask controls (the first row of each)")
    figure, axis = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for key in ("share trusted", "settled, trusted", "settled, not trusted"):
        values = [np.nan if value is None else value for value in over_time[key]]
        axis.plot(over_time["round"], values, label=key, linestyle="--" if key == "share trusted" else "-")
    axis.set_xlabel("round")
    axis.set_ylabel("share of asked cells")
    axis.set_title("Masks over time, and which cells already have their last value", fontsize=11)
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path.with_name(path.stem + "_time.png"), dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
