"""What the demo found, told three times: on the terminal, as a page, and as JSON."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.cli.demo_digits import DEPTH, HEADS, WIDTH, Fill, Trained
from anyfill.cli.demo_penguins import Answer
from anyfill.cli.demo_pictures import DREAMS_PER_ROW, dreams_width, fills_width
from anyfill.interface import page
from anyfill.interface.progress import clock

QUESTIONS = {
    "joint": "all pixels",
    "marginal": "a random subset",
    "conditional": "a random subset given another",
}

LOAD = """
from anyfill.training import load_model
model = load_model("models/one-pass")
# x: levels 0 to 16, shape (rows, 64); known: True where a pixel is given
answer = model.given(x, known)
answer.sample(5)      # five fills of each row
answer.log_prob(x)    # log p of the rest, exact, in one pass
"""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the demo found.

    Attributes:
        seconds: training time of each digit model.
        seed: of everything random.
        total: seconds that everything took.
        environment: versions and device.
        trained: the digit models with their scores, in the order of the table.
        held_out: how many digits were scored.
        fills: erased digits, filled.
        row: the penguin that was asked about.
        answers: what was asked.
        penguin_nats: - log p of a held-out row: mean and standard error.
        penguin_rows: how many held-out rows.
    """

    seconds: float
    seed: int
    total: float
    environment: dict[str, str | int | None]
    trained: list[Trained]
    held_out: int
    fills: list[Fill]
    row: dict[str, str]
    answers: list[Answer]
    penguin_nats: tuple[float, float]
    penguin_rows: int

    @property
    def best(self) -> int:
        """Which digit model needs the fewest bits for whole digits."""
        return min(range(len(self.trained)), key=lambda i: self.trained[i].scores["joint"].bits)


def results(report: Report) -> dict[str, Any]:
    """The numbers, for ``results.json``."""
    return {
        "seed": report.seed,
        "seconds": report.total,
        "environment": report.environment,
        "digits": {
            "seconds_of_training": report.seconds,
            "held_out": report.held_out,
            "models": [
                {
                    "name": one.contender.name,
                    "conditional_read_as": one.contender.conditional,
                    "parameters": one.parameters,
                    "steps": one.steps,
                    "seconds": one.seconds,
                    "scores": {name: asdict(score) for name, score in one.scores.items()},
                }
                for one in report.trained
            ],
            "fills": [
                {"name": one.name, "bits_per_pixel": one.bits, "kind": one.kind, "passes": one.passes}
                for one in report.fills
            ],
        },
        "penguins": {
            "held_out": report.penguin_rows,
            "nats_per_row": report.penguin_nats[0],
            "stderr": report.penguin_nats[1],
            "row": report.row,
            "answers": [asdict(answer) for answer in report.answers],
        },
    }


def show(report: Report, console: Console) -> None:
    """Print the two tables."""
    birds = Table(
        title="One held-out penguin, asked many ways", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for name in ("asked", "given", "answer", "kind", "cost"):
        birds.add_column(name, overflow="fold")
    for one in report.answers:
        told = f" (is {one.truth})" if one.truth else ""
        birds.add_row(one.asked, ", ".join(one.given) or "nothing", one.answer + told, one.kind, one.cost)
    console.print(birds)

    title = f"Bits per pixel on {report.held_out} held-out digits, {report.seconds:g} s of training each"
    digits = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    digits.add_column("", no_wrap=True, min_width=8)
    for name in (*QUESTIONS, "passes", "scored", "steps", "kind"):
        digits.add_column(name, justify="right", no_wrap=True)
    for i, one in enumerate(report.trained):
        cells = [f"{score.bits:.2f}" for score in one.scores.values()]
        row = (*cells, _passes(one), f"{_seconds_to_score(one):.1f} s", f"{one.steps:,}", _kinds(one))
        digits.add_row(one.contender.name, *row, style="bold" if i == report.best else "")
    console.print(digits)
    console.print(f"{_small_print_of_comparison(report)}\n", highlight=False)


def write_page(report: Report, path: Path) -> None:
    """Write ``index.html``."""
    path.write_text(page.page("anyfill demo", _pieces(report)), encoding="utf-8")


def _passes(one: Trained) -> str:
    return "/".join(str(score.passes) for score in one.scores.values())


def _seconds_to_score(one: Trained) -> float:
    return sum(score.seconds for score in one.scores.values())


def _kinds(one: Trained) -> str:
    return ", ".join(sorted({score.kind for score in one.scores.values()}))


def _small_print_of_comparison(report: Report) -> str:
    worst = max(score.stderr for one in report.trained for score in one.scores.values())
    by: dict[str, list[str]] = {}
    for one in report.trained:
        by.setdefault(one.contender.conditional, []).append(one.contender.name)
    factorizations = ", ".join(f"{how} by {' and '.join(names)}" for how, names in by.items())
    return (
        f"Lower is better; standard errors over digits are up to {worst:.2f}. Passes: what one digit needs at most, "
        "for the three questions in turn. Exact: the model's own number, pixels answered from first to last. A "
        f"conditional log p(asked | given) is read off the network {factorizations}."
    )


def _pieces(report: Report) -> list[str]:
    first, samples = report.trained[0], len(report.fills[0].samples)
    return [
        page.heading("One model, any question", 1),
        page.paragraph(
            "An any-order model learns p(asked | given) for every choice of what is asked and what is given. "
            f"Everything below was trained and computed on this machine in {clock(report.total)}.",
            "lead",
        ),
        page.heading("Fill what is missing"),
        page.paragraph(
            f"Handwritten digits the model has never seen, with a part erased. One model, trained for "
            f"{clock(first.seconds)}, fills any part: no pattern is special to it. Given pixels are neutral, filled "
            "ones coloured. Each fill is an exact draw from the model, so where the given pixels leave room for doubt, "
            "fills differ."
        ),
        page.picture("fills", "Digits with parts erased, and several fills of each", fills_width(samples, 8)),
        page.paragraph("With nothing given at all, the same model draws whole digits:"),
        page.picture("dreams", "Digits drawn from nothing", dreams_width(DREAMS_PER_ROW, 8)),
        page.heading("Ask one row many ways"),
        *_penguins(report),
        page.heading("Three ways to train, equal seconds"),
        *_comparison(report),
        page.heading("Go on from here"),
        page.paragraph("The trained models lie in models/ beside this page:"),
        page.program(LOAD),
        page.footer(_small_print(report)),
    ]


def _penguins(report: Report) -> list[str]:
    mean, error = report.penguin_nats
    rows = [
        [
            page.text(one.asked),
            page.text(", ".join(one.given) or "nothing"),
            _answer(one),
            page.kind(one.kind),
            page.text(one.cost),
        ]
        for one in report.answers
    ]
    return [
        page.paragraph(
            "A model of the Palmer penguins, a table of categories and measurements with gaps. This bird, picked for "
            "its odd bill, was held out of training:"
        ),
        page.facts(report.row.items()),
        page.paragraph(_conversation(report.answers)),
        page.paragraph(
            "Each answer says what kind of number it is. Exact means computed, not sampled: the model's own number, "
            "columns answered in their order. A bound or an estimate averages over random orders instead."
        ),
        page.table(("asked", "given", "answer", "kind", "cost"), rows, short=(3, 4)),
        page.paragraph(
            "Densities are per millimetre and per gram. The last three lines score the same row; a model whose "
            "conditionals fit together perfectly would give the same number in every order. On "
            f"{report.penguin_rows} held-out birds a whole row costs {mean:.2f} ± {error:.2f} nats.",
            "faint",
        ),
    ]


def _conversation(answers: list[Answer]) -> str:
    """The first three answers in a sentence: a guess, what to look up, the guess after that."""
    before, telling, after = answers[:3]
    return (
        f"Told its {' and '.join(before.given)}, the model guesses {_guess(before)}. Of everything else, it says, "
        f"the {telling.shares[0][0]} would tell most; told that too, it guesses {_guess(after)}. Truth: {after.truth}."
    )


def _guess(one: Answer) -> str:
    value, share = one.shares[0]
    return f"{value} ({share:.0%})"


def _answer(one: Answer) -> str:
    note = f"(it is {one.truth})" if one.truth else ""
    if not one.shares:
        return page.text(one.answer, note)
    if one.kind == "estimate":
        return page.bars(one.shares, "{:.2f} bits")
    return page.bars(one.shares) + (f"<small>{page.text(note)}</small>" if note else "")


def _comparison(report: Report) -> list[str]:
    rows = [
        [
            page.text(one.contender.name),
            *(page.text(f"{score.bits:.2f}", f"± {score.stderr:.2f}") for score in one.scores.values()),
            page.kind(_kinds(one)),
            page.text(_passes(one)),
            page.text(f"{_seconds_to_score(one):.1f} s"),
            page.text(f"{one.steps:,}"),
        ]
        for one in report.trained
    ]
    return [
        page.paragraph(
            f"Bits per pixel on {report.held_out} held-out digits, lower is better. Networks of the same size (width "
            f"{WIDTH}, depth {DEPTH}, {HEADS} heads), the same optimizer and learning rate, {report.seconds:g} seconds "
            "each on the same machine. Four rates were tried with each; optimizer, width, depth and batch size were "
            "chosen with one-pass alone, some of it on digits that are held out here. MAC's conditional is a "
            "difference of two marginals, which need not be a distribution. One run of each: an illustration, not a "
            "benchmark."
        ),
        page.table(
            ("", *QUESTIONS.values(), "kind", "passes", "to score", "steps"),
            rows,
            numbers=(1, 2, 3, 5, 6, 7),
            best=report.best,
        ),
        *(page.point(one.contender.name, one.contender.about) for one in report.trained),
        page.paragraph(_small_print_of_comparison(report), "faint"),
    ]


def _small_print(report: Report) -> str:
    where = report.environment
    return (
        f"anyfill {where['anyfill']}, torch {where['torch']}, Python {where['python']}, {where['device']}; seed "
        f"{report.seed}. The digit models stop by the clock, so how many steps they make, and with it every number of "
        "theirs, depends on the machine; the penguins' model makes a fixed number of steps. Numbers: results.json."
    )
