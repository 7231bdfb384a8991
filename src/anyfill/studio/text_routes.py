"""/api/text: fill blanks, colour by surprise, write; the verbs of ``anyfill.text``."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from anyfill.checks import MAX_SEED
from anyfill.interface.options import chosen_seed
from anyfill.interface.output import jsonable
from anyfill.interface.progress import metered
from anyfill.studio.context import AStudio, Start, Started, Studio, Tab
from anyfill.studio.how import arguments, options, spending
from anyfill.studio.jobs import Job

if TYPE_CHECKING:
    from anyfill.text.fills import Fills

routes = APIRouter(prefix="/api/text", tags=["text"])
MAX_TEXT = 5_000
"""Characters of a text that is asked about."""
MAX_LENGTH = 5_000
"""Tokens that are written at a time."""
Text = Annotated[str, Field(max_length=MAX_TEXT)]
ModelKey = Annotated[str, Field(max_length=200, description="a key of /api/models; the first one by default")]
Seed = Annotated[int | None, Field(ge=0, le=MAX_SEED, description="of everything random; a new one by default")]
Temperature = Annotated[float, Field(ge=0, le=5)]
Nucleus = Annotated[float | None, Field(gt=0, le=1)]


class FillText(BaseModel):
    """A text with blanks: ____ or [] or [3-8]."""

    text: Text
    n: Annotated[int, Field(ge=1, le=50)] = 5
    seed: Seed = None
    temperature: Temperature = 1.0
    letters: bool = False
    free: bool = False
    model: ModelKey = ""


class ScoreText(BaseModel):
    """A text."""

    text: Text
    model: ModelKey = ""


class WriteText(BaseModel):
    """How a text begins, and how it goes on."""

    prompt: Text = ""
    length: Annotated[int, Field(ge=1, le=MAX_LENGTH)] = 200
    seed: Seed = None
    temperature: Temperature = 1.0
    nucleus: Nucleus = None
    sampler: Literal["exact", "speculative"] = "exact"
    model: ModelKey = ""


@routes.post("/fill", status_code=202, summary="Fill blanks")
async def fill(asked: FillText, studio: AStudio, start: Start) -> Started:
    """A job; its result has the fills, best first, each with its share, and how they were found."""
    asked.seed = chosen_seed(asked.seed)
    return start(lambda job: _fill(studio, asked))


@routes.post("/write", status_code=202, summary="Write on")
async def write(asked: WriteText, studio: AStudio, start: Start) -> Started:
    """A job; sends pieces of the text as they are drawn."""
    asked.seed = chosen_seed(asked.seed)
    return start(lambda job: _write(studio, asked, job))


@routes.post("/score", summary="How surprising each token is")
async def score(asked: ScoreText, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """Bits of every token given those before it, exactly."""
    return await studio.pool.ask(tab, lambda: _score(studio, asked))


def _fill(studio: Studio, asked: FillText) -> dict[str, Any]:
    entry, model = studio.models.entry("text", asked.model), studio.models.get("text", asked.model)
    with spending() as spent:
        given: dict[str, Any] = {"n": asked.n, "seed": asked.seed}
        found = model.fill(
            asked.text, **given, temperature=asked.temperature, letters=asked.letters, free=asked.free, progress=True
        )
        ways = (("letters", asked.letters, False), ("free", asked.free, False))
        more = (("temperature", asked.temperature, 1.0), *ways)
        how = spent.how(
            given="every character outside the blanks",
            asked=f"{len(found.template.blanks)} blank{'s' * (len(found.template.blanks) != 1)}, jointly",
            kind="exact" if found.complete else "estimate",
            why=_why(found),
            python=f"text.load({entry.argument}).fill({asked.text!r}, n={asked.n}, seed={asked.seed}{arguments(more)})",
            cli=f"anyfill text fill {quote(asked.text)} -n {asked.n} --seed {asked.seed}{options(more)}{entry.option}",
        )
    return jsonable({**found.to_json(), "heading": found.heading, "stretches": found.template.stretches, "how": how})


def _why(found: "Fills") -> str:
    """What kind of numbers the shares of these fills are."""
    if found.complete:
        return f"all {found.candidates:,} fills there are were compared: shares are probabilities"
    if found.covered is not None:
        return (
            f"p(text) of {found.candidates:,} likely fills was read exactly, and shares are of these, by Bayes' rule; "
            f"they have about {found.covered:.0%} of the probability of all fills, estimated from draws of the others"
        )
    return f"{found.candidates:,} candidates were drawn and searched for, each scored exactly; shares are of these"


def _score(studio: Studio, asked: ScoreText) -> dict[str, Any]:
    entry, model = studio.models.entry("text", asked.model), studio.models.get("text", asked.model)
    if not asked.text.strip():
        return {"tokens": [], "bits": 0.0, "bits_per_character": 0.0, "remarks": [], "how": None}
    with spending() as spent:
        found = model.score(asked.text)
        how = spent.how(
            given="of each token all that stand before it",
            asked="every token of the text",
            kind="exact",
            why="the chain rule: surprises sum to -log2 p(text)",
            python=f"text.load({entry.argument}).score({asked.text!r})",
            cli=f"printf %s {quote(asked.text)} | anyfill text score -{entry.option}",
        )
    tokens = [[token.offset, token.text, round(token.bits, 4)] for token in found.tokens or ()]
    figures = {"bits": found.bits, "bits_per_character": found.bits_per_character}
    return jsonable({"tokens": tokens, **figures, "remarks": found.remarks, "how": how})


def _write(studio: Studio, asked: WriteText, job: Job) -> dict[str, Any]:
    entry, model = studio.models.entry("text", asked.model), studio.models.get("text", asked.model)
    more = (
        ("temperature", asked.temperature, 1.0),
        ("nucleus", asked.nucleus, None),
        ("sampler", asked.sampler, "exact"),
    )
    with spending() as spent:
        writer = model.writer(
            length=asked.length,
            prompt=asked.prompt,
            seed=asked.seed,
            **{name: value for name, value, _ in more},
        )
        written = ""
        for piece in metered(writer.pieces(), "writing"):
            written += piece
            if piece:
                job.send("piece", piece)
        said = f"length={asked.length}, prompt={asked.prompt!r}, seed={asked.seed}{arguments(more)}"
        prompt = f" --prompt {quote(asked.prompt)}" if asked.prompt else ""
        flags = f"--length {asked.length}{prompt} --seed {asked.seed}{options(more)}"
        how = spent.how(
            given="the beginning, and what was written before each token" if asked.prompt else "nothing",
            asked=f"{asked.length} tokens, one after the other",
            kind="exact",
            why="a draw from the model's own law"
            if asked.temperature == 1 and asked.nucleus is None
            else "a draw from the model's law, sharpened or cut as you chose",
            python=f"text.load({entry.argument}).generate({said})[0]",
            cli=f"anyfill text generate {flags}{entry.option}",
        )
    return {"text": written, "seed": asked.seed, "how": how}
