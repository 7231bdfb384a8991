"""/api/translation: translate with the passes shown, alternatives, blanks; the verbs of ``anyfill.translation``.

No model ships: ``anyfill translate train`` makes one, and ``anyfill studio --model`` brings it here.
"""

from shlex import quote
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from anyfill.interface.output import jsonable
from anyfill.studio.context import AStudio, Started, Studio, Tab, start
from anyfill.studio.how import spending

routes = APIRouter(prefix="/api/translation", tags=["translation"])
Sentence = Annotated[str, Field(max_length=2_000)]


class Translate(BaseModel):
    """A sentence; a translation with blanks ___ in it, where only these are to be written."""

    text: Sentence
    template: Sentence = ""
    keep: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=20)] = []
    passes: Annotated[int, Field(ge=1, le=32)] = 4
    n: Annotated[int, Field(ge=1, le=10)] = 4
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    model: Annotated[str, Field(max_length=200)] = ""


@routes.post("/translate", status_code=202, summary="Translate a sentence, or fill blanks of its translation")
async def translate(asked: Translate, studio: AStudio, tab: Tab) -> Started:
    """A job; its result has the best translation with its passes, and alternatives."""
    return start(studio, tab, lambda job: _translate(studio, asked))


def _translate(studio: Studio, asked: Translate) -> dict[str, Any]:
    entry, model = studio.models.entry("translation", asked.model), studio.models.get("translation", asked.model)
    with spending() as spent:
        load = f"translation.load({entry.argument})"
        if asked.template:
            found = model.fill(asked.text, asked.template, asked.n, passes=asked.passes, seed=asked.seed)
            python = f"{load}.fill({asked.text!r}, {asked.template!r}, {asked.n}, passes={asked.passes})"
            cli = f"anyfill translate fill {quote(asked.text)} {quote(asked.template)} -n {asked.n}{entry.option}"
            history: Any = ()
        else:
            best = model.translate(asked.text, passes=asked.passes, keep=asked.keep, seed=asked.seed, history=True)
            others = model.alternatives(asked.text, asked.n, passes=asked.passes, seed=asked.seed)
            found = [best, *(one for one in others if one.text != best.text)]
            python = f"{load}.translate({asked.text!r}, passes={asked.passes}, keep={asked.keep!r}, seed={asked.seed})"
            kept = "".join(f" --keep {quote(one)}" for one in asked.keep)
            cli = f"anyfill translate text {quote(asked.text)} --passes {asked.passes}{kept}{entry.option}"
            history = best.history
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
        {"found": lines, "history": [list(one) for one in history], "languages": model.languages, "how": how}
    )
