"""SUNMASK's Table 2: unselected samples of every model we trained, graded like real Bach, through the same path.

Reads the samples (n, 4, 128) that ``experiments/sunmask/sitting.py`` and ``experiments/sunmask/bach_model.py`` wrote
(results/sunmask/logs/table2/NAME.npz, with NAME.json beside it: options, seed, log, device), graded at true time:

    key-aware   names by the key that is found: the same in every key
    paper       names as the MIDI path spells them, which only fits keys with few accidentals. Our models write in all
                twelve keys, so every piece is transposed first, by as little as it takes, into C, G, D or F major or D,
                G or A minor; real Bach is graded in its own keys and, for comparison, moved in the same way

"best tenth" is the median of the best tenth of all samples by that grade: with 200 samples the paper's
SMc-T-BEST20-200, and the same share of sets of another size (95 real windows). Variants: T = typical, A = active
balance, N = noise, half = in half as many rounds, keep = trusted cells are not rewritten; v = parallel fifths and
octaves are forbidden while sampling (``recipes.voice_leading``), p0.95 = nucleus, t1 = as the model says.

The paper's figures are copied from its Table 2, where Coconet's samples were graded at double time; at true time the
same 20 published files have 11.46 (paper) and 12.40 (key-aware) by an independent grader. How long ours were trained
stands beside them (``runs``): minutes, where the paper's had hours.

The paper makes four claims with this table: SMc beats SMt; T helps SMc; A and N trade quality (A alone makes SMc
worse, N on top of AT worse still); the best 20 are near Bach. ``claims`` tests them.

Three sittings. Of the first, with trainings of unequal length, are all rows without a mark. Those of the second begin
with "equal seconds:": SMc, SMc whose given values are kept in both steps of its loss, SMc with pitch in the channels,
SD and SMt, trained one after another for the same seconds (``equal`` of the result says how many); numbers behind a
variant are rounds. What is claimed of them, and their losses under the same questions, is in ``equal``, too. What got
no turn is in logs/table2_equal/tasks.jsonl and tasks_late.jsonl: SMt was not trained, SD not drawn from.
Those of the third, "third:", are of SMc, SD, SMt and Coconet, again trained for the same seconds, and drawn in the
paper's rounds; they are in ``third`` (logs/table2_third/tasks.jsonl).

    python -m experiments.sunmask.table2
    python -m experiments.sunmask.table2 --graded results/sunmask/table2.json   # only rows that it does not have
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyfill.music.chorale import Chorale
from anyfill.music.crops import whole_windows
from anyfill.music.files import read_jsb
from anyfill.music.grades import Grade, grade_all
from anyfill.music.transposition import shift_home
from benchmarks.common import RESULTS, write_result
from experiments.sunmask.claims import BEST_EQUAL, BEST_THIRD, EQUAL, THIRD, Claim, best_tenth, claims, losses
from experiments.sunmask.table2_shown import PAPER, draw, tabulate, told_claims, told_losses
from experiments.where import data_folder

ROWS = {
    "smc": "SMc",
    "smc_short": "SMc short",
    "smc_time": "SMc, pitch in channels,",
    "smc_keep": "SMc, given kept,",
    "smc_time_keep": "SMc, pitch in channels, given kept,",
    "smt": "SMt",
    "smt_long": "SMt long",
    "sd": "SD",
    "sd_time": "SD, pitch in channels,",
    "coconet": "Coconet",
    "one_pass_train": "one-pass",
    "one_pass_ship": "shipped, 32 bits",
    "shipped": "shipped",
}
MARK, MARK_THIRD = "equal seconds: ", "third: "
"""How rows of the second and of the third sitting begin."""
LATER: dict[str, tuple[str, Mapping[str, Claim], Sequence[str]]] = {
    "equal": (MARK, EQUAL, BEST_EQUAL),
    "third": (MARK_THIRD, THIRD, BEST_THIRD),
}
"""Sittings with equal seconds: how their rows begin, and what is claimed of them."""


def chorale_of(cells: NDArray[np.int16]) -> Chorale:
    """From pitches (4, T), or from pitches and what begins (2, 4, T)."""
    return Chorale.of(cells) if cells.ndim == 2 else Chorale(cells[0], cells[1] > 0)


def at_home(piece: Chorale) -> Chorale:
    """The piece in a key that the MIDI path can spell, as near as possible."""
    return piece.transposed(shift_home(piece))


def figures(grades: Sequence[Grade]) -> dict[str, Any]:
    """Median and standard deviation (of finite grades) of every feature and of the whole, and the best tenth."""
    overall = np.array([one.overall for one in grades])
    finite = overall[np.isfinite(overall)]
    random = np.random.default_rng(0)
    again = np.median(overall[random.integers(len(overall), size=(2000, len(overall)))], axis=1)
    found: dict[str, Any] = {
        "median": float(np.median(overall)),
        "interval": [float(value) for value in np.quantile(again, [0.025, 0.975], method="nearest")],
        "deviation": float(finite.std()) if len(finite) else None,
        "best_tenth": best_tenth(overall),
        "grades": [round(float(value), 3) if np.isfinite(value) else None for value in overall],
        "infinite": int((~np.isfinite(overall)).sum()),
        "samples": len(grades),
        "features": {},
    }
    for name in grades[0].features:
        values = np.array([one.features[name] for one in grades])
        held = values[np.isfinite(values)]
        spread = float(held.std()) if len(held) else None
        found["features"][name] = {"median": float(np.median(values)), "deviation": spread}
    return found


def graded(pieces: Sequence[NDArray[np.int16]]) -> dict[str, Any]:
    """All that is reported of one set of pieces."""
    chorales = [chorale_of(cells) for cells in pieces]
    scores = [one.score() for one in chorales]
    return {
        "key-aware": figures(grade_all(scores, protocol="key-aware")),
        "paper": figures(grade_all([at_home(one).score() for one in chorales], protocol="paper")),
        "paper, own keys": figures(grade_all(scores, protocol="paper")),
    }


def grades_of(rows: Mapping[str, Any], protocol: str) -> dict[str, NDArray[np.float64]]:
    """The overall grades of every row under a protocol; what could not be graded is infinite."""
    return {
        name: np.array([np.inf if value is None else value for value in row[protocol]["grades"]])
        for name, row in rows.items()
    }


def windows(data: Path) -> list[NDArray[np.int16]]:
    """Real Bach: windows of the valid part, cut as the paper cuts its examples."""
    pieces = read_jsb(data / "jsb_chorales" / "jsb16_train_valid.json", "valid")
    return [window.pitch for window in whole_windows(pieces)]


def read_run(path: Path) -> dict[str, Any]:
    """What is kept of a run's record, with its validations: steps, seconds, nats."""
    run = json.loads(path.read_text())
    kept = {name: run[name] for name in ("arguments", "valid", "environment", "nats", "nats_kept") if name in run}
    kept["curve"] = [
        [line["step"], round(line["seconds"], 1), round(line["validation"], 4)]
        for line in run.get("log", ())
        if "validation" in line
    ]
    return kept


def samples_of(folder: Path, mark: str = "") -> dict[str, NDArray[np.int16]]:
    """All samples of a sitting, by row."""
    found: dict[str, NDArray[np.int16]] = {}
    for stem in [stem for stem in ROWS if (folder / f"{stem}.npz").exists()]:
        with np.load(folder / f"{stem}.npz", allow_pickle=False) as file:
            found |= {f"{mark}{ROWS[stem]} {variant}": file[variant] for variant in file.files}
    return found


def runs_of(folder: Path) -> dict[str, Any]:
    """All runs of a sitting, by model."""
    return {stem: read_run(folder / f"{stem}.json") for stem in ROWS if (folder / f"{stem}.json").exists()}


def copied_bars(samples: Mapping[str, NDArray[np.int16]], data: Path) -> dict[str, dict[str, float]]:
    """Share of runs of 1, 2 and 4 bars that stand in training pieces, in any key: SUNMASK's, and the valid part's."""
    from experiments.sunmask.bach_shipped import copied, in_four

    path = data / "jsb_chorales" / "jsb16_train_valid.json"
    train, valid = ([one.pitch for one in in_four(read_jsb(path, part))] for part in ("train", "valid"))
    ours = tuple(f"{mark}{ROWS[stem]} " for stem in ("smc", "smt") for mark in ("", MARK, MARK_THIRD))
    shown = {name: list(pieces) for name, pieces in samples.items() if name.startswith(ours)}
    sets = {"valid part": valid, **shown}
    return {name: {f"{n} bars": copied(pieces, train, n) for n in (1, 2, 4)} for name, pieces in sets.items()}


def equal_seconds(
    name: str, grades: Mapping[str, Mapping[str, NDArray[np.float64]]], runs: Mapping[str, Any]
) -> dict[str, Any]:
    """A later sitting: how long and how far each was trained, claims under both protocols, losses.

    Args:
        name: of the sitting, one of ``LATER``.
        grades: of all rows, by protocol.
        runs: of that sitting.
    """
    mark, listed, best = LATER[name]
    seconds = {
        ROWS[stem].rstrip(","): {
            "asked": run["arguments"]["options"]["seconds"],
            "seconds": run["valid"]["training_seconds"],
            "steps": run["curve"][-1][0] if run["curve"] else None,
            "rows a step": run["arguments"]["options"]["batch_size"],
            "parameters": run["valid"]["parameters"],
        }
        for stem, run in runs.items()
    }
    tested = {
        protocol: claims(
            {row.removeprefix(mark): each for row, each in rows.items() if row.startswith((mark, "real Bach"))},
            *(listed, best),
        )
        for protocol, rows in grades.items()
    }
    told_claims(tested, mark)
    compared = {measure: losses(runs, ROWS, measure) for measure in ("nats", "nats_kept")}
    for measure, each in compared.items():
        told_losses(each, f"{mark}{measure}")
    return {"trained": seconds, "claims": tested, "losses": compared["nats"], "losses_kept": compared["nats_kept"]}


def main() -> None:
    """Grade everything, print the table, write JSON and PNG."""
    logs = RESULTS / "sunmask" / "logs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--samples", type=Path, default=logs / "table2", help="of the first sitting")
    parser.add_argument("--equal", type=Path, default=logs / "table2_equal", help="of the second, if it is there")
    parser.add_argument("--third", type=Path, default=logs / "table2_third", help="of the third, if it is there")
    parser.add_argument("--most", type=int, help="grade only so many of each: a smoke run")
    parser.add_argument("--graded", type=Path, help="a result of this script: rows that it has are not graded again")
    parser.add_argument("--name", default="sunmask/table2")
    arguments = parser.parse_args()
    rows: dict[str, Any] = {}
    if arguments.graded is not None:
        rows = json.loads(arguments.graded.read_text())["rows"]
    else:
        rows["real Bach"] = graded(windows(arguments.data)[: arguments.most])
    folders = {name: getattr(arguments, name) for name in LATER}
    samples = samples_of(arguments.samples)
    for name, folder in folders.items():
        samples |= samples_of(folder, LATER[name][0])
    for name in [name for name in samples if name not in rows]:
        rows[name] = graded(list(samples[name][: arguments.most]))
        print(f"graded {name}", flush=True)
    runs = runs_of(arguments.samples)
    later = {name: found for name, folder in folders.items() if (found := runs_of(folder))}
    print(tabulate(rows))
    for mark, one in (("", runs), *((LATER[name][0], found) for name, found in later.items())):
        for stem, run in one.items():
            print(f"{mark}{ROWS[stem]:10} valid part, nats: {json.dumps(run['valid'])}")
    grades = {protocol: grades_of(rows, protocol) for protocol in ("key-aware", "paper")}
    tested = {protocol: claims(each) for protocol, each in grades.items()}
    told_claims(tested)
    copies = copied_bars(samples, arguments.data)
    print(json.dumps(copies))
    payload: dict[str, Any] = {
        "rows": rows, "runs": runs, "paper": PAPER, "claims": tested, "losses": losses(runs, ROWS), "copied": copies,
        "protocol": __doc__,
    }  # fmt: skip
    told_losses(payload["losses"])
    for name, found in later.items():
        payload[name] = {"runs": found, **equal_seconds(name, grades, found)}
    path = write_result(arguments.name, payload)
    draw(rows, path.with_suffix(".png"))


if __name__ == "__main__":
    main()
