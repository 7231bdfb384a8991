"""What a sitting trains, and in which order.

    first    teachers on everything, tuned on Multi30k, distillation, the PaDIR models that ship; both directions
    second   what ships goes on from where the first sitting left it; then, on Multi30k, en-de, from the first sitting's
             teacher and distilled pairs, equal seconds: the methods, raw pairs, the ablations
    third    one direction: a tiny teacher on Multi30k alone by the published settings, and what ships goes on with its
             translations of Multi30k and with pairs of Tatoeba
    fourth   the same, the tiny teacher going on from the third's
    published, ablations   the teacher by the published settings in the published tokens; PaDIR without one thing at a
             time (``experiments.gmlm.ablation``)
    methods  the same teacher, then every method on raw and on distilled pairs (``experiments.gmlm.methods``)

Seconds of 0 mean: what is left, shared with the steps of 0 seconds behind it.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from anyfill.translation.recipes import Options, Recipe, Size

PASSES = (1, 2, 4, 10)
_SMALL: dict[str, Any] = {"size": "tiny", "precision": "32-true"}


@dataclass(frozen=True)
class Step:
    """A model to train and what is asked of it.

    Attributes:
        name, recipe: of the model.
        corpus: "all" or "multi30k".
        data: "raw" or "distilled".
        direction: as "en-de".
        seconds: of training; 0 = its share of what is left.
        rate, dropout, batch, warmup: of training.
        begin: name of the model whose weights it begins from, where names and shapes agree; "" = none.
        passes: at which it is asked, where it has a say in that.
        beams: of models that decode from left to right.
        lengths: candidates, at 4 passes; all passes are asked for with the last.
        keep: its weights come back.
        distil: the models up to this one translate all sources afterwards, to be trained on.
        options: for ablations.
        tests: what is translated, beside the validation.
        size: of the model.
        precision: of training on CUDA; a tiny model computes faster where nothing is cast.
        updates: the most that are made; 0 = as many as the seconds allow.
        like: name of a step; as many updates as that one made, at most.
    """

    name: str
    recipe: Recipe
    corpus: str
    data: str
    direction: str
    seconds: float
    rate: float = 1.5e-3
    dropout: float = 0.2
    batch: int = 512
    warmup: int = 200
    begin: str = "teacher"
    passes: tuple[int, ...] = PASSES
    beams: tuple[int, ...] = (1, 5)
    lengths: tuple[int, ...] = (5,)
    keep: bool = False
    distil: bool = False
    options: Options = field(default_factory=lambda: Options(smoothing=0.1))
    tests: tuple[str, ...] = ("multi30k",)
    seed: int = 0
    size: Size = "compact"
    precision: Literal["bf16-mixed", "32-true"] = "bf16-mixed"
    updates: int = 0
    like: str = ""


def first(teacher: float, tuned: float) -> list[Step]:
    """Teachers, tuned ones, what ships."""
    both, ways = ("multi30k", "tatoeba"), ("en-de", "de-en")
    steps: list[Step] = []
    large: dict[str, Any] = {"rate": 2e-3, "dropout": 0.3, "begin": "", "warmup": 600, "tests": both}
    small: dict[str, Any] = {"rate": 5e-4, "dropout": 0.3, "tests": both, "distil": True}
    for way in ways:
        steps.append(Step("teacher", "autoregressive", "all", "raw", way, teacher, **large))
        steps.append(Step("tuned", "autoregressive", "multi30k", "raw", way, tuned, **small))
    shipping: dict[str, Any] = {"keep": True, "tests": both, "lengths": (1, 3, 5), "dropout": 0.1, "warmup": 400}
    return [*steps, *(Step("shipped", "padir", "all", "distilled", way, 0.0, **shipping) for way in ways)]


def smooth(**change: Any) -> Options:
    """PaDIR's options with smoothed labels."""
    return Options(smoothing=0.1, **change)


def second(each: float, longer: float) -> list[Step]:
    """What ships, trained on; methods on distilled pairs, PaDIR on raw ones, its ablations, others on raw ones."""
    going_on: dict[str, Any] = {"keep": True, "tests": ("multi30k", "tatoeba"), "lengths": (1, 3, 5), "dropout": 0.1}
    ships = [
        Step("longer", "padir", "all", "distilled", way, longer, **going_on, begin="shipped", rate=1e-3)
        for way in ("en-de", "de-en")
        if longer
    ]
    variants = {
        "stages-1": smooth(stages=1),
        "start-mask": smooth(start="mask"),
        "no-positional": smooth(positional=False),
        "kept-uniform": smooth(kept=-1.0),
    }
    tail: dict[str, Any] = {"direction": "en-de", "seconds": each, "begin": "tuned"}
    names: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae", "deep_shallow", "one_pass")
    lengths = {"padir": (1, 3, 5)}
    kept = ("padir", "cmlm", "deep_shallow")
    compared = [
        Step(
            f"{one}-distilled",
            one,
            "multi30k",
            "distilled",
            **tail,
            lengths=lengths.get(one, (5,)),
            keep=one in kept,
        )
        for one in names
    ]
    raw = [Step(f"{one}-raw", one, "multi30k", "raw", **tail) for one in names[:4]]
    ablated = [
        Step(f"padir-{name}", "padir", "multi30k", "distilled", **tail, options=options)
        for name, options in variants.items()
    ]
    return [*ships, *compared, raw[0], *ablated, *raw[1:]]


def third(way: str, teacher: float, padir: float) -> list[Step]:
    """The published teacher (Wu et al. 2021: 4 + 4 layers, d 128, dropout 0.3, rate 0.005), and what ships goes on.

    They make 8,000 updates of 8,192 tokens with a rate that falls by the square root and average checkpoints; here
    updates are twice as large and fewer, the rate falls to nothing, and the weights are a moving average.
    """
    own: dict[str, Any] = {"rate": 5e-3, "dropout": 0.3, "batch": 1024, "warmup": 400, "begin": ""}
    return [_tiny("tiny", way, teacher, **own), _going_on("third", way, padir)]


def fourth(way: str, teacher: float, padir: float) -> list[Step]:
    """The third sitting's teacher goes on, and what ships learns from it."""
    own: dict[str, Any] = {"rate": 3e-3, "dropout": 0.3, "batch": 768, "warmup": 100, "begin": "tiny"}
    return [_tiny("tutor", way, teacher, **own), _going_on("fourth", way, padir)]


def _tiny(name: str, way: str, seconds: float, **how: Any) -> Step:
    return Step(name, "autoregressive", "multi30k", "raw", way, seconds, **how, **_SMALL, distil=True, keep=True)


def _going_on(name: str, way: str, seconds: float) -> Step:
    how: dict[str, Any] = {"begin": "package", "rate": 1e-3, "dropout": 0.1, "batch": 640, "warmup": 100}
    return Step(name, "padir", "mixed", "distilled", way, seconds, **how, keep=True, lengths=(1, 3, 5))


def published(way: str, seconds: float) -> list[Step]:
    """The teacher by the published settings, as many updates as they make; a one-pass model with what is left.

    8,000 updates of some 7,700 tokens (theirs 8,192), rate 0.005, dropout 0.3, labels smoothed by 0.1. Their rate falls
    by the square root and they average the last checkpoints; here it falls to nothing, and the average moves.
    """
    own: dict[str, Any] = {"rate": 5e-3, "dropout": 0.3, "batch": 512, "warmup": 1000, "begin": "", "updates": 8000}
    joint: dict[str, Any] = {"rate": 2e-3, "dropout": 0.2, "batch": 256, "warmup": 300, "begin": ""}
    one_pass = Step("one-pass", "one_pass", "multi30k", "distilled", way, 0.0, **joint, **_SMALL)
    return [_tiny("published", way, seconds, **own), one_pass]


def ablations(way: str, each: float) -> list[Step]:
    """PaDIR of the tiny size from the teacher's weights, without one thing at a time, equal seconds; by value.

    One stage makes about twice the updates of two in the same seconds, so it is asked twice: with as many seconds, and
    with as many updates. The student is autoregressive, with a deep encoder and a decoder of one layer.
    """
    how = _from_the_teacher()

    def step(name: str, recipe: Recipe = "padir", data: str = "distilled", **change: Any) -> Step:
        return Step(name, recipe, "multi30k", data, way, each, **(how | change))

    return [
        step("whole"),
        step("raw", data="raw"),
        step("stages-1", options=smooth(stages=1)),
        step("start-mask", options=smooth(start="mask")),
        step("no-positional", options=smooth(positional=False)),
        step("stages-1-updates", options=smooth(stages=1), like="whole"),
        step("deep-shallow", "deep_shallow"),
        step("cmlm", "cmlm"),
        step("kept-uniform", options=smooth(kept=-1.0)),
    ]


def methods(way: str, teacher: float, each: float, later: float = 0.0) -> list[Step]:
    """The published teacher, its distilled pairs, then each method on these and on raw ones; most valuable first.

    Equal seconds from the teacher's weights, of its size, as in ``ablations``. Autoregression on raw pairs is the
    teacher itself. The one-pass model, which takes over no weights, gets what is left; with ``later`` it goes on for so
    many seconds more, which are not compared with anybody's.
    """
    parallel: tuple[Recipe, ...] = ("padir", "cmlm", "disco", "sundae")
    chosen: list[tuple[Recipe, str]] = [
        *((recipe, "distilled") for recipe in (*parallel, "autoregressive")),
        *((recipe, "raw") for recipe in parallel),
    ]
    steps = [
        Step(f"{recipe}-{data}", recipe, "multi30k", data, way, each, **_from_the_teacher()) for recipe, data in chosen
    ]
    first, one_pass = published(way, teacher)
    one_pass = replace(one_pass, keep=True)
    going_on = replace(one_pass, name="one-pass-on", begin="one-pass", seconds=later, rate=1.5e-3, warmup=100)
    return [first, *steps, one_pass, *([going_on] if later else [])]


def _from_the_teacher() -> dict[str, Any]:
    how: dict[str, Any] = {"begin": "published", "lengths": (1, 5), **_SMALL}
    return how | {"rate": 3e-3, "dropout": 0.1, "batch": 512, "warmup": 100}
