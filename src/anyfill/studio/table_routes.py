"""/api/tables: open a table, look at its pages, fill it, ask about a row, find what surprises, download."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, HTTPException, Path, Query, UploadFile
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from anyfill.checks import MAX_SEED
from anyfill.interface.output import jsonable
from anyfill.studio.context import AStudio, Start, Started, Tab
from anyfill.studio.uploads import TABLES, keep

routes = APIRouter(prefix="/api/tables", tags=["tables"])
Key = Annotated[str, Path(max_length=40, description="of a table that is open")]
Row = Annotated[int, Field(ge=0, le=10**9, description="number of a row, from 0")]
Name = Annotated[str, Field(max_length=500)]
Said = Annotated[str, Field(max_length=500)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
LEVEL = 0.9
MAX_PAGE = 500
"""Rows of a page."""


class Kinds(BaseModel):
    """What columns are, whatever they look like."""

    columns: Annotated[dict[Name, Said], Field(max_length=2000)]


class FillTable(BaseModel):
    """How to fill."""

    recipe: Literal["gaussian", "fast", "auto"] = "gaussian"
    seed: Seed = 0
    level: Annotated[float, Field(gt=0, lt=1)] = LEVEL
    model: Annotated[str, Field(max_length=200, description="a key of /api/models, in place of training one")] = ""


class AskCell(BaseModel):
    """A cell."""

    row: Row
    column: Name
    seed: Seed = 0


class WhatIf(BaseModel):
    """A row, with some of its values said otherwise; None: not given."""

    row: Row
    changes: Annotated[dict[Name, Said | None], Field(max_length=2000)] = {}


class Next(WhatIf):
    """What could be measured next, to learn a target."""

    target: Name
    costs: Annotated[dict[Name, Annotated[float, Field(gt=0, lt=1e9)]], Field(max_length=2000)] = {}
    seed: Seed = 0


class Surprises(BaseModel):
    """How many rows are wanted."""

    top: Annotated[int, Field(ge=1, le=200)] = 20
    seed: Seed = 0


class Download(BaseModel):
    """Which file is wanted."""

    what: Literal["filled", "draws", "scores", "report"] = "filled"
    suffix: Literal[".csv", ".parquet", ".xlsx"] = ".csv"
    seed: Seed = 0


@routes.post("/upload", summary="Open a table from a file")
async def upload(file: Annotated[UploadFile, File()], studio: AStudio, tab: Tab) -> dict[str, Any]:
    """CSV, TSV, Parquet or Excel; what its columns are is found out and can be said otherwise."""
    path, name = await keep(file, TABLES, studio.new_file), (file.filename or "table")[-120:]

    def opened() -> dict[str, Any]:
        from anyfill.studio.table_store import OpenTable

        try:
            return studio.tables.add(OpenTable(path, name)).describe()
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    return await studio.pool.ask(tab, opened)


@routes.post("/example", summary="Open the example")
async def example(studio: AStudio, tab: Tab) -> dict[str, Any]:
    """344 made-up penguins, some of whose cells are missing."""

    def opened() -> dict[str, Any]:
        import numpy as np

        from anyfill.studio.table_store import OpenTable
        from anyfill.tables.examples import made_up_penguins

        frame = made_up_penguins(344)
        lost = np.random.default_rng(1).random(frame.shape) < 0.06
        path = studio.new_file(".csv")
        frame.mask(lost).convert_dtypes().to_csv(path, index=False)  # whole numbers without .0, as people write them
        return studio.tables.add(OpenTable(path, "penguins.csv")).describe()

    return await studio.pool.ask(tab, opened)


@routes.get("/{key}", summary="What is known of a table")
async def describe(key: Key, studio: AStudio) -> dict[str, Any]:
    """Columns with their kinds, holes, whether it is filled."""
    return studio.tables.get(key).describe()


@routes.post("/{key}/kinds", summary="Say what columns are")
async def kinds(key: Key, said: Kinds, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """number, int, number[0,1], bool, category, ordinal:low<mid<high, datetime, ignore."""
    table = studio.tables.get(key)

    def change() -> dict[str, Any]:
        table.say(said.columns)
        return table.describe()

    return await studio.pool.ask(tab, change)


@routes.get("/{key}/rows", summary="A page of rows")
async def rows(
    key: Key,
    studio: AStudio,
    tab: Tab,
    first: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
) -> dict[str, Any]:
    """A cell is its text; a hole is null, or [answer, low, high] where it is filled."""
    table = studio.tables.get(key)
    return {"first": first, "rows": await studio.pool.ask(tab, lambda: table.page(first, count))}


@routes.post("/{key}/fill", status_code=202, summary="Train a model and fill the holes")
async def fill_table(key: Key, asked: FillTable, studio: AStudio, start: Start) -> Started:
    """A job."""
    table = studio.tables.get(key)

    def work(job: Any) -> dict[str, Any]:
        from anyfill.studio.table_work import fill

        settings: dict[str, Any] = {"recipe": asked.recipe, "seed": asked.seed}
        if not asked.model:
            return jsonable(fill(job, table, settings, asked.level))
        model, folder = studio.models.get("table", asked.model), studio.models.entry("table", asked.model).folder
        return jsonable(fill(job, table, {"folder": str(folder), "seed": asked.seed}, asked.level, model))

    return start(work)


@routes.post("/{key}/surprises", status_code=202, summary="The most surprising rows and cells")
async def find_surprises(key: Key, asked: Surprises, studio: AStudio, start: Start) -> Started:
    """A job."""
    from anyfill.studio.table_work import surprises

    table = studio.tables.get(key)
    table.require_model()
    return start(lambda job: jsonable(surprises(table, asked.top, asked.seed)))


@routes.post("/{key}/download", status_code=202, summary="Make a file to download")
async def make_file(key: Key, asked: Download, studio: AStudio, start: Start) -> Started:
    """A job; its result names the file."""
    from anyfill.studio.table_work import download

    table = studio.tables.get(key)
    table.require_model()
    return start(lambda job: download(table, asked.what, asked.suffix, asked.seed, studio.new_file))


@routes.get("/{key}/files/{file}", summary="A file that was made")
async def get_file(key: Key, file: Annotated[str, Path(max_length=40)], studio: AStudio) -> FileResponse:
    """Under the name of the table it was made of."""
    found = studio.tables.get(key).files.get(file)
    if found is None or not found[0].is_file():
        raise HTTPException(404, "there is no such file")
    return FileResponse(found[0], filename=found[1], media_type="application/octet-stream")


@routes.post("/{key}/cell", summary="What is known of one cell")
async def cell(key: Key, asked: AskCell, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """Its distribution given the other cells of its row, draws, and what it depends on most."""
    from anyfill.studio.table_questions import answer_cell

    table = studio.tables.get(key)
    return await studio.pool.ask(tab, lambda: answer_cell(table, asked.row, asked.column, asked.seed))


@routes.post("/{key}/whatif", summary="What would follow from other values")
async def whatif(key: Key, asked: WhatIf, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """The distributions of all columns that are not given."""
    from anyfill.studio.table_questions import answer_whatif

    table = studio.tables.get(key)
    return await studio.pool.ask(tab, lambda: answer_whatif(table, asked.row, asked.changes))


@routes.post("/{key}/next", summary="What to measure next")
async def measure_next(key: Key, asked: Next, studio: AStudio, tab: Tab) -> dict[str, Any]:
    """Expected nats of information about the target of every cell that is not given, per cost."""
    from anyfill.studio.table_questions import answer_next

    table, (target, costs, seed) = studio.tables.get(key), (asked.target, asked.costs, asked.seed)
    return await studio.pool.ask(tab, lambda: answer_next(table, asked.row, asked.changes, target, costs, seed))
