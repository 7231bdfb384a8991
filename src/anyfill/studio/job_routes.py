"""/api/jobs: watch a job, ask how it stands, cancel it."""

import time
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel

from anyfill.studio.context import AStudio
from anyfill.studio.jobs import Job, State

routes = APIRouter(prefix="/api/jobs", tags=["jobs"])
PING = 5.0
"""Seconds of silence after which a line says that the connection stands."""


class Standing(BaseModel):
    """How a job stands."""

    state: State
    events: int
    result: Any = None


def job_of(studio: AStudio, key: str) -> Job:
    """The job of this key; 404 if there is none, or its result has expired."""
    job = studio.pool.jobs.get(key)
    if job is None:
        raise HTTPException(404, "there is no such job (results are kept for a quarter of an hour)")
    job.touched = time.monotonic()
    return job


AJob = Annotated[Job, Depends(job_of)]


@routes.get("/{key}", summary="How a job stands, and its result")
async def standing(job: AJob) -> Standing:
    """State, number of events and, when it is done, the result."""
    return Standing(state=job.state, events=len(job.events), result=job.result())


@routes.delete("/{key}", summary="Cancel a job")
async def cancel(job: AJob) -> Standing:
    """It is over at once; its work ends at its next step."""
    job.cancel()
    return Standing(state=job.state, events=len(job.events), result=job.result())


@routes.get("/{key}/events", response_class=EventSourceResponse, summary="Watch a job")
async def events(
    job: AJob,
    after: Annotated[int, Query(ge=0, le=10**9, description="so many events are known already")] = 0,
    last_event_id: Annotated[str, Header(max_length=20)] = "",
) -> AsyncGenerator[ServerSentEvent]:
    """Everything that has happened and will happen: progress, parts of the result, and how it ends.

    A job that nobody watches for some seconds is cancelled.
    """
    seen = int(last_event_id) if last_event_id.isascii() and last_event_id.isdigit() else after
    job.watchers += 1
    try:
        while True:
            for name, data in job.events[seen:]:
                seen += 1
                yield ServerSentEvent(event=name, data=data, id=str(seen))
            if job.is_over and seen >= len(job.events):
                return
            if not await job.next_event(seen, PING):
                yield ServerSentEvent(comment="still here")
    finally:
        job.watchers -= 1
        job.touched = time.monotonic()
