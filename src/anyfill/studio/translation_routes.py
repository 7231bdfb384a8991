"""/api/translation: translate with the passes shown, alternatives, blanks; the verbs of ``anyfill.translation``.

``anyfill translate train`` makes models, and ``anyfill studio --model`` brings them here beside those that ship.
"""

from shlex import quote
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from anyfill.checks import MAX_SEED, refuse
from anyfill.interface.output import jsonable
from anyfill.studio.context import AStudio, Start, Started, Studio, Tab
from anyfill.studio.how import spending

routes = APIRouter(prefix="/api/translation", tags=["translation"])
Sentence = Annotated[str, Field(max_length=2_000)]


EXAMPLES = {
    "de": "Zwei Kinder spielen mit einem Hund im Park.",
    "en": "Two children are playing with a dog in the park.",
    "fr": "Deux enfants jouent avec un chien dans le parc.",
    "es": "Dos niños juegan con un perro en el parque.",
}
"""What a page opens with, by language."""


class Translate(BaseModel):
    """A sentence; a translation with blanks ___ in it, where only these are to be written."""

    text: Sentence
    template: Sentence = ""
    keep: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=20)] = []
    passes: Annotated[int, Field(ge=1, le=32)] = 4
    n: Annotated[int, Field(ge=1, le=10)] = 4
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0
    model: Annotated[str, Field(max_length=200)] = ""


@routes.get("/about", summary="Between which languages a model translates")
async def about(studio: AStudio, tab: Tab, model: Annotated[str, Query(max_length=200)] = "") -> dict[str, Any]:
    """The languages, and a sentence to begin with."""

    def answer() -> dict[str, Any]:
        languages = studio.models.get("translation", model).languages
        return {"languages": list(languages), "example": EXAMPLES.get(languages[0], "")}

    return await studio.pool.ask(tab, answer)


@routes.post("/translate", status_code=202, summary="Translate a sentence, or fill blanks of its translation")
async def translate(asked: Translate, studio: AStudio, start: Start) -> Started:
    """A job; its result has the best translation with its passes, and alternatives."""
    return start(lambda job: _translate(studio, asked))


def _passes(model: Any, asked: Translate) -> int | None:
    """How many are wanted, of a model that has a say in it."""
    from anyfill.translation.hypotheses import decoding_options

    return asked.passes if "passes" in decoding_options(model.recipe) else None


def _others(model: Any, asked: Translate, best: str) -> list[Any]:
    """Other translations of a single sentence, that have the words that must be there."""
    if len(model.segments(asked.text)) != 1:
        return []
    drawn = model.alternatives(asked.text, asked.n, passes=_passes(model, asked), seed=asked.seed)
    words = [phrase.split("@")[0] for phrase in asked.keep]
    return [one for one in drawn if one.text != best and all(word in one.text for word in words)]


def _translate(studio: Studio, asked: Translate) -> dict[str, Any]:
    if not asked.text.strip():
        raise refuse("text", expected="a sentence to translate", got="nothing")
    entry, model = studio.models.entry("translation", asked.model), studio.models.get("translation", asked.model)
    with spending() as spent:
        load, passes = f"translation.load({entry.argument})", _passes(model, asked)
        said, option = ("", "") if passes is None else (f", passes={passes}", f" --passes {passes}")
        if asked.template:
            found = model.fill(asked.text, asked.template, asked.n, passes=passes, seed=asked.seed)
            python = f"{load}.fill({asked.text!r}, {asked.template!r}, {asked.n}{said})"
            cli = f"anyfill translate fill {quote(asked.text)} {quote(asked.template)} -n {asked.n}{entry.option}"
            history, remarks = (), ()
        else:
            best = model.translate(asked.text, passes=passes, keep=asked.keep, seed=asked.seed, history=True)
            found = [best, *_others(model, asked, best.text)]
            python = f"{load}.translate({asked.text!r}{said}, keep={asked.keep!r}, seed={asked.seed})"
            kept = "".join(f" --keep {quote(one)}" for one in asked.keep)
            cli = f"anyfill translate text {quote(asked.text)}{option}{kept}{entry.option}"
            history, remarks = best.history, best.remarks
        how = spent.how(
            given="the sentence" + (", and all outside the blanks" if asked.template else ""),
            asked="its translation, and how long it is",
            kind="estimate",
            why="the best that so many passes found; scores are means over pieces",
            python=python,
            cli=cli,
        )
    lines = [{"text": one.text, "score": one.score, "passes": one.passes} for one in found]
    return jsonable(
        {
            "text": asked.text,
            "found": lines,
            "history": [list(one) for one in history],
            "remarks": list(remarks),
            "languages": model.languages,
            "how": how,
        }
    )
