"""What every route may need: the pool, the models, the folder of the session; and who asks."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException, Request
from pydantic import BaseModel, Field

from anyfill.studio.jobs import Job, NoRoomError, Pool
from anyfill.studio.models import Models
from anyfill.studio.session import Session
from anyfill.studio.stores import Store

_TAB = re.compile(r"[A-Za-z0-9_-]{1,64}")
WAIT = 2
"""Seconds after which to come again when there is no room."""


class Studio:
    """A running studio.

    Attributes:
        pool: where work is done.
        models: what answers.
        tables: those that are open.
        session: all that is written is written in its folder; it is removed at the end.
    """

    def __init__(self, models: Models) -> None:
        self.pool, self.models, self.tables = Pool(), models, Store("table")
        self.session = Session()

    @property
    def folder(self) -> Path:
        """Of the session."""
        return self.session.folder

    def new_file(self, suffix: str) -> Path:
        """The name of a file that is not there yet."""
        return self.session.new_file(suffix)

    def close(self) -> None:
        """End everything; leaves nothing behind."""
        self.pool.close()
        self.session.close()


class Started(BaseModel):
    """A job that has begun, or will: its events are at /api/jobs/{job}/events."""

    job: str = Field(description="by which to ask for it")


def studio_of(request: Request) -> Studio:
    """The studio that a request is for."""
    return request.app.state.studio


def tab_of(request: Request, x_tab: Annotated[str, Header(max_length=200)] = "") -> str:
    """Which tab asks; requests without a name of their tab are told apart by where they come from."""
    if x_tab and _TAB.fullmatch(x_tab):
        return x_tab
    return f"at {request.client.host if request.client else 'home'}"


AStudio = Annotated[Studio, Depends(studio_of)]
Tab = Annotated[str, Depends(tab_of)]
JobKey = Annotated[
    str | None,
    Header(
        pattern=r"^[A-Za-z0-9_-]{16,64}$",
        description="a key for the job, chosen by who asks and hard to guess: asked again with it, the job is the same",
    ),
]


@dataclass(frozen=True, slots=True)
class Starter:
    """Begins the job that a request asks for.

    Attributes:
        studio: where it is done.
        tab: for whom.
        key: of the job, where who asks has chosen one.
    """

    studio: Studio
    tab: str
    key: str | None

    def __call__(self, work: Callable[[Job], dict[str, Any]]) -> Started:
        """Begin it, unless a job of this key is known; 429 if there is no room."""
        try:
            return Started(job=self.studio.pool.submit(self.tab, work, key=self.key).key)
        except NoRoomError:
            raise no_room() from None


def starter_of(studio: AStudio, tab: Tab, x_job: JobKey = None) -> Starter:
    """What begins the job of a request."""
    return Starter(studio, tab, x_job)


Start = Annotated[Starter, Depends(starter_of)]


def no_room() -> HTTPException:
    """What is said when too many are waiting."""
    return HTTPException(429, "too many are waiting: try again in a moment", headers={"Retry-After": str(WAIT)})
