"""What the demo found, told twice: as tables in the terminal and as a page.

Both read the one document of numbers that is also written as results.json.
"""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from anyfill.cli.demo_digits import CONTENDERS, DEPTH, HEADS, QUESTIONS, WIDTH
from anyfill.interface import page
from anyfill.interface.progress import clock

Document = dict[str, Any]
"""All numbers of a demo."""


def _best(document: Document) -> int:
    """Which digit model needs the fewest bits for whole digits."""
    bits = [one["scores"]["joint"]["bits"] for one in document["digits"]["models"]]
    return bits.index(min(bits))


def _compared(one: Document) -> list[str]:
    """Of one digit model: network passes of each question, time to score, steps, kinds of its numbers."""
    scores = one["scores"].values()
    passes, seconds = "/".join(str(score["passes"]) for score in scores), sum(score["seconds"] for score in scores)
    return [passes, f"{seconds:.1f} s", f"{one['steps']:,}", ", ".join(sorted({score["kind"] for score in scores}))]


def _caption(document: Document) -> str:
    """How the comparison is to be read."""
    trained = document["digits"]["models"]
    worst = max(score["stderr"] for one in trained for score in one["scores"].values())
    by: dict[str, list[str]] = {}
    for one in trained:
        by.setdefault(one["conditional_read_as"], []).append(one["name"])
    factorizations = ", ".join(f"{how} by {' and '.join(names)}" for how, names in by.items())
    return (
        f"Lower is better; standard errors over digits are up to {worst:.2f}. Passes: what one digit needs at "
        "most, for the three questions in turn. Exact: the model's own number, pixels answered from first to last. "
        f"A conditional log p(asked | given) is read off the network {factorizations}."
    )


ANSWERED, COMPARED = ("asked", "given", "answer", "kind", "cost"), ("passes", "scored", "steps", "kind")


def show(document: Document, console: Console) -> None:
    """Print the two tables."""
    birds = _table("One held-out penguin, asked many ways")
    for name in ANSWERED:
        birds.add_column(name, overflow="fold")
    for one in document["penguins"]["answers"]:
        truth = f" (is {one['truth']})" if one["truth"] else ""
        given = ", ".join(one["given"]) or "nothing"
        birds.add_row(one["asked"], given, one["answer"] + truth, one["kind"], one["cost"])
    console.print(birds)

    found = document["digits"]
    held_out, seconds = found["held_out"], found["seconds_of_training"]
    table = _table(f"Bits per pixel on {held_out} held-out digits, {seconds:g} s of training each")
    table.add_column("", no_wrap=True, min_width=8)
    for name in (*QUESTIONS, *COMPARED):
        table.add_column(name, justify="right", no_wrap=True)
    for i, one in enumerate(found["models"]):
        cells = (f"{score['bits']:.2f}" for score in one["scores"].values())
        table.add_row(one["name"], *cells, *_compared(one), style="bold" if i == _best(document) else "")
    console.print(table)
    console.print(f"{_caption(document)}\n", highlight=False)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


LOAD = """
from anyfill.training import load_model
model = load_model("models/one-pass")
# x: levels 0 to 16, shape (rows, 64); known: True where a pixel is given
answer = model.given(x, known)
answer.sample(5)      # five fills of each row
answer.log_prob(x)    # log p of the rest, exact, in one pass
"""


def written(document: Document, title: str) -> str:
    """The page, as HTML."""
    return page.page(title, _pieces(document))


def _pieces(document: Document) -> list[str]:
    found, birds, where = document["digits"], document["penguins"], document["environment"]
    widths = found["widths_of_pictures"]
    return [
        page.heading("One model, any question", 1),
        page.paragraph(
            "An any-order model learns p(asked | given) for every choice of what is asked and what is given. "
            f"Everything below was trained and computed on this machine in {clock(document['seconds'])}.",
            "lead",
        ),
        page.heading("Fill what is missing"),
        page.paragraph(
            "Handwritten digits the model has never seen, with a part erased. One model, trained for "
            f"{clock(found['models'][0]['seconds'])}, fills any part. Given pixels are neutral, filled ones coloured. "
            "Each fill is an exact draw from the model: where the given pixels leave room for doubt, fills differ."
        ),
        page.picture("fills", "Digits with parts erased, and several fills of each", widths["fills"]),
        page.paragraph(
            "The same digits enlarged to 28 x 28, black and white, and filled by the model of handwritten digits that "
            "ships with anyfill (anyfill image fill): it was trained on other people's digits for a minute of one GPU."
        ),
        page.picture("shipped", "The same digits enlarged, filled by the model that ships", widths["shipped"]),
        page.paragraph("With nothing given at all, the model of this page draws whole digits:"),
        page.picture("dreams", "Digits drawn from nothing", widths["dreams"]),
        page.heading("Ask one row many ways"),
        page.paragraph(
            "A model of made-up penguins, a table of categories and measurements with gaps. This bird, picked for its "
            "odd bill, was held out of training:"
        ),
        page.facts(birds["row"].items()),
        page.paragraph(_conversation(*birds["answers"][:3])),
        page.paragraph(
            "Each answer says what kind of number it is. Exact means computed, not sampled: the model's own number, "
            "columns answered in their order. A bound or an estimate averages over random orders instead."
        ),
        page.table(ANSWERED, [_answer(one) for one in birds["answers"]], short=(3, 4)),
        page.paragraph(
            "Densities are per millimetre and per gram. The last three lines score the same row; a model whose "
            "conditionals fit together perfectly would give the same number in every order. On "
            f"{birds['held_out']} held-out birds a row costs {birds['nats_per_row']:.2f} ± {birds['stderr']:.2f} nats.",
            "faint",
        ),
        page.heading("Three ways to train, equal seconds"),
        page.paragraph(
            f"Bits per pixel on {found['held_out']} held-out digits, lower is better. Networks of the same size (width "
            f"{WIDTH}, depth {DEPTH}, {HEADS} heads), same optimizer and learning rate, "
            f"{found['seconds_of_training']:g} seconds each on the same machine. Four rates were tried with each; all "
            "else was chosen with one-pass alone, some of it on digits that are held out here. MAC's conditional is a "
            "difference of two marginals, which need not be a distribution. One run of each: no benchmark."
        ),
        page.table(
            ("", *QUESTIONS.values(), *COMPARED),
            [_model(one) for one in found["models"]],
            numbers=range(1, 7),
            best=_best(document),
        ),
        *(page.point(one["name"], CONTENDERS[one["name"]].about) for one in found["models"]),
        page.paragraph(_caption(document), "faint"),
        page.heading("Go on from here"),
        page.paragraph("The trained models lie in models/ beside this page:"),
        page.program(LOAD),
        page.footer(
            f"anyfill {where['anyfill']}, torch {where['torch']}, Python {where['python']}, {where['device']}; seed "
            f"{document['seed']}. The digit models stop by the clock, so how many steps they make, and with it every "
            "number of theirs, depends on the machine; the penguins' makes a fixed number. Numbers: results.json."
        ),
    ]


def _model(one: Document) -> list[str]:
    bits = (page.text(f"{score['bits']:.2f}", f"± {score['stderr']:.2f}") for score in one["scores"].values())
    *compared, kind = _compared(one)
    return [page.text(one["name"]), *bits, *map(page.text, compared), page.kind(kind)]


def _conversation(before: Document, informative: Document, after: Document) -> str:
    """Three answers in a sentence: a guess, what to look up, the guess after that."""
    first, then = (f"{value} ({share:.0%})" for value, share in (before["shares"][0], after["shares"][0]))
    return (
        f"Given its {' and '.join(before['given'])}, the model guesses {first}. Of everything else, it says, the "
        f"{informative['shares'][0][0]} would tell most; given that too, it guesses {then}. Truth: {after['truth']}."
    )


def _answer(one: Document) -> list[str]:
    note = f"(it is {one['truth']})" if one["truth"] else ""
    if not one["shares"]:
        answer = page.text(one["answer"], note)
    else:
        answer = page.bars(one["shares"], "{:.2f} bits" if one["kind"] == "estimate" else "{:.1%}")
        answer += f"<small>{page.text(note)}</small>" if note else ""
    given = page.text(", ".join(one["given"]) or "nothing")
    return [page.text(one["asked"]), given, answer, page.kind(one["kind"]), page.text(one["cost"])]
