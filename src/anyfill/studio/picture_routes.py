"""/api/pictures: fill what is erased, how likely a picture is, pictures to begin with: verbs of ``anyfill.images``."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Query, UploadFile
from pydantic import BaseModel, Field

from anyfill.checks import MAX_SEED
from anyfill.interface.options import chosen_seed
from anyfill.studio.context import AStudio, Start, Started, Tab
from anyfill.studio.jobs import Job
from anyfill.studio.picture_form import MAX_SIDE, WirePicture
from anyfill.studio.uploads import PICTURES, keep

routes = APIRouter(prefix="/api/pictures", tags=["pictures"])
ModelKey = Annotated[str, Field(max_length=200)]


class FillPicture(BaseModel):
    """A picture with something erased."""

    picture: WirePicture
    n: Annotated[int, Field(ge=1, le=12)] = 6
    seed: Annotated[int | None, Field(ge=0, le=MAX_SEED)] = None
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    sampler: Literal["exact", "speculative"] = "exact"
    steps: Annotated[int | None, Field(ge=1, le=MAX_SIDE**2)] = None
    model: ModelKey = ""


class OnePicture(BaseModel):
    """A picture."""

    picture: WirePicture
    model: ModelKey = ""


@routes.get("/about", summary="What a model's pictures are")
async def about(studio: AStudio, tab: Tab, model: Annotated[str, Query(max_length=200)] = "") -> dict[str, Any]:
    """Size, channels and levels; and whether there is a model at all."""
    entries = studio.models.of("images")
    if not entries:
        return {"there": False}

    def answer() -> dict[str, Any]:
        own = studio.models.get("images", model).about
        shape = {"width": own.width, "height": own.height, "channels": own.channels, "levels": own.levels}
        return {"there": True, "words": str(own), **shape}

    return await studio.pool.ask(tab, answer)


@routes.post("/fill", status_code=202, summary="Fill what is erased")
async def fill(asked: FillPicture, studio: AStudio, start: Start) -> Started:
    """A job; sends all alternatives as far as they are drawn, again and again."""
    asked.seed = chosen_seed(asked.seed)

    def work(job: Job) -> dict[str, Any]:
        from anyfill.studio.picture_work import fills

        return fills(studio.models, asked, job)

    return start(work)


@routes.post("/score", summary="How likely a picture is")
async def score(asked: OnePicture, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """Exact bits of what is seen, given nothing; where something is erased, it is neither asked nor given."""

    def answer() -> dict[str, Any]:
        from anyfill.studio.picture_work import scored

        return scored(studio.models, asked.picture, asked.model)

    return await studio.pool.ask(tab, answer)


@routes.post("/upload", summary="Open a picture from a file")
async def upload(
    file: Annotated[UploadFile, File()],
    studio: AStudio,
    tab: Tab,
    width: Annotated[int, Query(ge=1, le=MAX_SIDE)] = 28,
    height: Annotated[int, Query(ge=1, le=MAX_SIDE)] = 28,
) -> dict[str, Any]:
    """Cropped and shrunk to the size that the model sees."""
    path = await keep(file, PICTURES, studio.new_file)

    def answer() -> dict[str, Any]:
        from anyfill.studio.picture_work import opened

        try:
            return opened(path, (file.filename or "picture")[-120:], width, height)
        finally:
            path.unlink(missing_ok=True)

    return await studio.pool.ask(tab, answer)


@routes.get("/examples", summary="Pictures to begin with")
async def examples(studio: AStudio, tab: Tab, model: Annotated[str, Query(max_length=200)] = "") -> dict[str, Any]:
    """Eight pictures: handwritten digits for a model of 28 x 28 in black and white, else drawn by the model itself."""

    def answer() -> dict[str, Any]:
        from anyfill.studio.picture_work import to_begin_with

        return to_begin_with(studio.models, model)

    return await studio.pool.ask(tab, answer)
