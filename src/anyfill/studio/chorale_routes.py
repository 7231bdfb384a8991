"""/api/chorale: harmonise, rewrite, continue, vary, write anew; surprise; notation; files in and out."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, File, Response, UploadFile
from pydantic import BaseModel, Field

from anyfill.checks import MAX_SEED
from anyfill.interface.options import chosen_seed
from anyfill.studio.chorale_form import Region, Voice, WirePiece
from anyfill.studio.context import AStudio, Start, Started, Tab
from anyfill.studio.uploads import MUSIC, keep

if TYPE_CHECKING:
    from anyfill.studio.jobs import Job

routes = APIRouter(prefix="/api/chorale", tags=["chorale"])
KINDS = {
    "midi": (".mid", "audio/midi"),
    "musicxml": (".musicxml", "application/vnd.recordare.musicxml+xml"),
    "wav": (".wav", "audio/wav"),
    "png": (".png", "image/png"),
}
Regions = Annotated[list[Region], Field(max_length=4000)]


class Draw(BaseModel):
    """What is asked of a piece, and how it is drawn."""

    verb: Literal["harmonise", "rewrite", "continue", "vary", "generate"]
    piece: WirePiece | None = None
    asked: Regions = []
    voice: Voice = "soprano"
    bars: Annotated[int, Field(ge=1, le=32)] = 4
    amount: Annotated[float, Field(ge=0, le=1)] = 0.3
    key: Annotated[str | None, Field(max_length=30)] = None
    n: Annotated[int, Field(ge=1, le=8)] = 4
    seed: Annotated[int | None, Field(ge=0, le=MAX_SEED)] = None
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    model: Annotated[str, Field(max_length=200)] = ""


class OnePiece(BaseModel):
    """A piece."""

    piece: WirePiece
    model: Annotated[str, Field(max_length=200)] = ""


class Export(OnePiece):
    """A piece, and the kind of file that is wanted."""

    kind: Literal["midi", "musicxml", "wav", "png"]


class Ask(OnePiece):
    """A piece, and words for some of its cells: "alto 3-6, tenor 5"."""

    ask: Annotated[str, Field(max_length=500)]


@routes.post("/draw", status_code=202, summary="Alternatives")
async def draw(asked: Draw, studio: AStudio, start: Start) -> Started:
    """A job; sends each alternative as it is certain. What is not asked is never changed."""
    asked.seed = chosen_seed(asked.seed)

    def work(job: "Job") -> dict[str, Any]:
        from anyfill.studio.chorale_work import alternatives

        return alternatives(studio.models, asked, job)

    return start(work)


@routes.post("/surprise", summary="How surprising each note is")
async def surprise(asked: OnePiece, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """Nats of every note given all before it, exactly."""

    def answer() -> dict[str, Any]:
        from anyfill.studio.chorale_work import surprises

        return surprises(studio.models, asked.piece, asked.model)

    return await studio.pool.ask(tab, answer)


@routes.post("/regions", summary="Cells by their names")
async def regions(asked: Ask, studio: AStudio, tab: Tab) -> list[Region]:
    """What words name in a piece."""

    def answer() -> list[Region]:
        from anyfill.studio.chorale_work import named_regions

        return named_regions(asked.piece, asked.ask)

    return await studio.pool.ask(tab, answer)


@routes.post("/notation", summary="The engraved score")
async def notation(asked: OnePiece, studio: AStudio, tab: Tab) -> dict[str, list[str]]:
    """SVG, page by page."""

    def answer() -> dict[str, list[str]]:
        from anyfill.studio.chorale_work import engraved

        return {"pages": engraved(asked.piece)}

    return await studio.pool.ask(tab, answer)


@routes.post("/export", response_class=Response, summary="A file to keep")
async def export(asked: Export, studio: AStudio, tab: Tab) -> Response:
    """MIDI, MusicXML, WAV or a picture."""
    suffix, media_type = KINDS[asked.kind]

    def answer() -> bytes:
        from anyfill.studio.chorale_work import exported

        return exported(asked.piece, studio.new_file(suffix))

    return Response(await studio.pool.ask(tab, answer), media_type=media_type)


@routes.post("/upload", summary="Open a piece from a file")
async def upload(file: Annotated[UploadFile, File()], studio: AStudio, tab: Tab) -> dict[str, Any]:
    """MIDI or MusicXML; remarks say what was changed on the way."""
    path, name = await keep(file, MUSIC, studio.new_file), (file.filename or "piece")[-120:]

    def answer() -> dict[str, Any]:
        from anyfill.studio.chorale_work import imported

        try:
            return imported(path, name)
        finally:
            path.unlink(missing_ok=True)

    return await studio.pool.ask(tab, answer)
