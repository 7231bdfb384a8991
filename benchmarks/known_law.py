"""Tables whose law is known: how many nats a model loses, question by question, and what it draws that cannot be.

    python -m benchmarks.known_law [--recipes auto,ensemble] [--rows 300,2000,20000] [--seeds 0] [--laws …]
                                   [--lines results/logs/known_law.jsonl] [--name known_law]

Each law (``LAWS``) draws rows and knows log p(asked | given) of every row exactly. A ``TableModel`` is fitted to so
many rows and asked about 2,000 others:

    nats lost = mean of log p(asked | given) - log q(asked | given),      0 = the law itself

beside the nats to be had, what ignoring ``given`` would lose. Draws of ``asked`` are held against what is possible.

    xor        c is the exclusive or of a and b, but for 4 % of rows
    parabola   y = x^2 + noise of 0.2; x given y has two modes: their spread in draws given y = 1 (of the law: 0.10)
    weekday    a shop is open on weekdays with 95 %, on weekends with 15 %, from the date alone
    hour       temperature is a wave of the hour; hours are drawn given a temperature
    threshold  a class that is age by decades, and one that is BMI cut at 18.5, 25 and 30: the share filled rightly
    sums       gross = net + tax, BMI = weight / height^2, inches of centimetres, all rounded: the share filled exactly
    share      a share between 0 and 1, and a count

Every job is a line of ``--lines``; what is there is not done again. Writes results/NAME.json.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from anyfill import TableModel
from benchmarks.common import RESULTS, commit, machine, write_result
from benchmarks.tables.jobs import append, read_lines

TESTED = 2000
Floats = NDArray[np.float64]


class Question(NamedTuple):
    """What is asked given what, its exact log-probabilities (n,) and those that ignore what is given (n,)."""

    asked: str
    given: list[str]
    truth: Floats
    ignoring: Floats


class Law(NamedTuple):
    """A law: its rows, its questions about rows, what is possible, and the kinds of its columns that are declared."""

    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    questions: Callable[[pd.DataFrame], list[Question]]
    possible: Callable[[pd.DataFrame], NDArray[np.bool_]] = lambda frame: np.ones(len(frame), dtype=bool)
    filled: tuple[str, ...] = ()
    columns: dict[str, str] | None = None


def _xor(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    a, b = rng.integers(0, 2, (2, rows))
    c = (a ^ b) ^ (rng.random(rows) < 0.04)
    names = np.array(["no", "yes"], dtype=object)
    return pd.DataFrame({"a": names[a], "b": names[b], "c": names[c]})


def _xor_questions(frame: pd.DataFrame) -> list[Question]:
    odd = (frame["a"] != frame["b"]).to_numpy()
    right = odd == (frame["c"] == "yes").to_numpy()
    return [Question("c", ["a", "b"], np.log(np.where(right, 0.96, 0.04)), np.full(len(frame), np.log(0.5)))]


NOISE = 0.2


def _parabola(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": x**2 + NOISE * rng.normal(size=rows)})


def _normal(x: Floats, center: Any, scale: float) -> Floats:
    return -0.5 * ((x - center) / scale) ** 2 - np.log(scale) - 0.5 * np.log(2 * np.pi)


def _parabola_questions(frame: pd.DataFrame) -> list[Question]:
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    grid = np.linspace(-6, 6, 6001)
    joint = _normal(grid, 0.0, 1.0) + _normal(y[:, None], grid**2, NOISE)
    of_y = np.logaddexp.reduce(joint, 1) + np.log(grid[1] - grid[0])
    y_given_x, of_x = _normal(y, x**2, NOISE), _normal(x, 0.0, 1.0)
    return [Question("y", ["x"], y_given_x, of_y), Question("x", ["y"], of_x + y_given_x - of_y, of_x)]


def _weekday(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    day = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 365, rows), unit="D")
    chance = np.where(day.dayofweek < 5, 0.95, 0.15)
    return pd.DataFrame({"day": day, "open": np.where(rng.random(rows) < chance, "yes", "no").astype(object)})


def _weekday_questions(frame: pd.DataFrame) -> list[Question]:
    chance = np.where(frame["day"].dt.dayofweek < 5, 0.95, 0.15)
    is_open, usual = (frame["open"] == "yes").to_numpy(), (5 * 0.95 + 2 * 0.15) / 7
    return [
        Question(
            "open",
            ["day"],
            np.log(np.where(is_open, chance, 1 - chance)),
            np.log(np.where(is_open, usual, 1 - usual)),
        )
    ]


def _within_year(frame: pd.DataFrame) -> NDArray[np.bool_]:
    return (frame["day"].dt.year == 2025).to_numpy()


def _hour(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    hour = np.round(24 * rng.random(rows), 2) % 24
    return pd.DataFrame(
        {"hour": hour, "temperature": 15 + 8 * np.cos((hour - 15) * np.pi / 12) + rng.normal(size=rows)}
    )


def _hour_questions(frame: pd.DataFrame) -> list[Question]:
    hour, temperature = frame["hour"].to_numpy(), frame["temperature"].to_numpy()
    grid = np.linspace(0, 24, 2401)[:-1]
    of_t = np.logaddexp.reduce(_normal(temperature[:, None], _wave(grid), 1.0), 1) - np.log(len(grid))
    by_hour = _normal(temperature, _wave(hour), 1.0)
    flat = np.full(len(frame), -np.log(24.0))
    found = by_hour + flat - of_t
    return [Question("temperature", ["hour"], by_hour, of_t), Question("hour", ["temperature"], found, flat)]


def _wave(hour: Floats) -> Floats:
    return 15 + 8 * np.cos((hour - 15) * np.pi / 12)


def _threshold(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    age = rng.integers(18, 90, rows)
    bmi = np.round(np.exp(rng.normal(3.28, 0.18, rows)), 1)
    weight = np.array(["under", "normal", "over", "obese"], dtype=object)[np.digitize(bmi, [18.5, 25, 30])]
    return pd.DataFrame({"age": age, "decade": [f"{one // 10}0s" for one in age], "bmi": bmi, "weight": weight})


def _sums(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    net, tax = np.round(rng.gamma(2, 2000, rows), 2), np.round(rng.gamma(2, 30, rows), 2)
    height, weight = np.round(rng.normal(1.7, 0.1, rows), 2), np.round(rng.normal(75, 12, rows), 1)
    cm = np.round(rng.normal(170, 10, rows), 1)
    gross, bmi = np.round(net + tax, 2), np.round(weight / height**2, 1)
    parts = {"net": net, "tax": tax, "gross": gross, "height": height, "weight": weight, "bmi": bmi}
    return pd.DataFrame({**parts, "cm": cm, "inch": np.round(cm / 2.54, 2)})


def _share(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    effort = rng.normal(size=rows)
    share = np.round(1 / (1 + np.exp(-effort - 0.5 * rng.normal(size=rows))), 3)
    return pd.DataFrame({"effort": effort, "share": share, "count": rng.poisson(np.exp(0.7 * effort))})


LAWS: dict[str, Law] = {
    "xor": Law(_xor, _xor_questions),
    "parabola": Law(_parabola, _parabola_questions),
    "weekday": Law(_weekday, _weekday_questions, _within_year),
    "hour": Law(_hour, _hour_questions, lambda frame: frame["hour"].between(0, 24, inclusive="left").to_numpy()),
    "threshold": Law(_threshold, lambda _: [], filled=("decade", "weight")),
    "sums": Law(_sums, lambda _: [], filled=("net", "tax", "gross", "bmi", "inch")),
    "share": Law(
        _share,
        lambda _: [],
        lambda frame: (frame["share"].between(0, 1) & (frame["count"] >= 0) & (frame["count"] % 1 == 0)).to_numpy(),
    ),
}


def run(name: str, rows: int, recipe: str, seed: int) -> dict[str, Any]:
    """One line: the nats lost for each question, the shares of impossible draws, CPU seconds of the fit."""
    law, rng = LAWS[name], np.random.default_rng([seed, rows])
    train, test = law.draw(rows, rng), law.draw(TESTED, rng)
    begun = time.process_time()
    model = TableModel(recipe=recipe, random_state=seed, columns=law.columns, unknown="missing").fit(train)
    found: dict[str, Any] = {"cpu_seconds": time.process_time() - begun}
    for question in law.questions(test):
        said = model.log_prob(test, asked=question.asked, given=question.given).value.numpy()
        key = f"{question.asked} | {', '.join(question.given)}"
        lost, to_be_had = (float((question.truth - other).mean()) for other in (said, question.ignoring))
        found[key] = {"lost": lost, "to_be_had": to_be_had}
    empty = pd.DataFrame({column: pd.Series(np.full(TESTED, np.nan), dtype=object) for column in train.columns})
    drawn = [model.sample_rows(TESTED, seed=seed), *_completions(model, test)]
    found["impossible"] = float(np.mean([1.0 - law.possible(one).mean() for one in drawn]))
    if name == "parabola":
        x = model.sample(empty.assign(x=np.nan, y=1.0).astype(float), 1, seed=seed)[0]["x"].to_numpy()
        found["spread"] = float(np.sqrt(np.square(np.abs(x) - 1.0).mean()))
        found["upper mode"] = float((x > 0).mean())
    for column in law.filled:
        hidden = test.assign(**{column: None})
        hidden[column] = hidden[column].astype(float if test[column].dtype.kind in "iuf" else object)
        found[f"{column} filled"] = float(
            (model.transform(hidden)[column].to_numpy() == test[column].to_numpy()).mean()
        )
    return found


def _completions(model: TableModel, test: pd.DataFrame) -> list[pd.DataFrame]:
    """Each column drawn given all others, of 300 rows."""
    some = test.head(300)
    found: list[pd.DataFrame] = []
    for column in some.columns:
        hidden = some.copy()
        hidden[column] = pd.Series([None] * len(some), dtype=object) if some[column].dtype == object else pd.NA
        if some[column].dtype.kind in "iuf":
            hidden[column] = np.nan
        elif some[column].dtype.kind == "M":
            hidden[column] = pd.NaT
        found.append(model.sample(hidden, 1, seed=0)[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default="auto,ensemble", help="ensemble is what auto was in 0.1")
    parser.add_argument("--rows", default="300,2000,20000")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--lines", default=str(RESULTS / "logs" / "known_law.jsonl"))
    parser.add_argument("--name", default="known_law")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    lines = Path(arguments.lines)
    done = read_lines(lines)
    wanted = [
        (name, int(rows), recipe, int(seed))
        for seed in arguments.seeds.split(",")
        for recipe in arguments.recipes.split(",")
        for rows in arguments.rows.split(",")
        for name in arguments.laws.split(",")
    ]
    for job in wanted:
        key = "|".join(map(str, job))
        if key not in done:
            append(lines, {"key": key, "commit": commit(), "machine": machine(), **run(*job)})
            print(lines.read_text().splitlines()[-1], flush=True)
    done = read_lines(lines)
    result = {"|".join(map(str, job)): done["|".join(map(str, job))] for job in wanted}
    said = {key: value for key, value in vars(arguments).items() if key not in ("lines", "name")}
    print(f"wrote {write_result(arguments.name, {'arguments': said, 'laws': json.loads(json.dumps(result))})}")


if __name__ == "__main__":
    main()
