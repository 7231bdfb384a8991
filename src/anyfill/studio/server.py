"""The application: routes under /api, pages for everything else, a start and an end."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from anyfill.checks import refuse
from anyfill.studio import chorale_routes, job_routes, picture_routes, table_routes, text_routes, translation_routes
from anyfill.studio.context import AStudio, Studio, no_room
from anyfill.studio.jobs import NoRoomError
from anyfill.studio.models import Models
from anyfill.studio.security import Access, Guard
from anyfill.version import __version__

SWEEP = 1.0
"""Seconds between looks at jobs that nobody watches."""


def make_app(models: Models, *, warm: bool = True) -> FastAPI:
    """The application, without the guard that stands before it (``guarded``).

    Args:
        models: what answers.
        warm: load the models that ship as soon as it starts.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        studio = app.state.studio = Studio(models)
        if warm:
            threading.Thread(target=_warm, args=(studio,), daemon=True).start()
        sweeping = asyncio.create_task(_sweep(studio))
        try:
            yield
        finally:
            sweeping.cancel()
            studio.close()

    about = "What the pages of the studio ask; the same verbs as those of anyfill's Python packages and commands."
    app = FastAPI(
        title="anyfill studio",
        version=__version__,
        description=about,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.add_exception_handler(ValueError, _refused)
    app.add_exception_handler(NoRoomError, _full)
    for room in (job_routes, table_routes, chorale_routes, picture_routes, text_routes, translation_routes):
        app.include_router(room.routes)

    @app.get("/api/models", tags=["models"], summary="The models that can be chosen")
    async def list_models(studio: AStudio) -> list[dict[str, str]]:
        return [{"key": one.key, "room": one.room, "name": one.name} for one in studio.models.entries]

    pages = Path(str(resources.files("anyfill.studio").joinpath("pages")))

    @app.get("/api/docs", include_in_schema=False)
    async def docs() -> RedirectResponse:
        return RedirectResponse("/api-docs.html")

    app.mount("/", StaticFiles(directory=pages, html=True))
    return app


def guarded(app: FastAPI, access: Access) -> ASGIApp:
    """The application with a guard before it."""
    return Guard(app, access)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """What cannot be done is said in the sentence that the command line would say."""
    return JSONResponse({"detail": " ".join(str(error).split())}, status_code=422)


async def _full(_: Request, error: Exception) -> JSONResponse:
    full = no_room()
    return JSONResponse({"detail": full.detail}, status_code=full.status_code, headers=full.headers)


async def _sweep(studio: Studio) -> None:
    while True:
        await asyncio.sleep(SWEEP)
        studio.pool.sweep()


def _warm(studio: Studio) -> None:
    """Load models while nobody waits for an answer: the first one is not to share its core with them."""
    with suppress(ValueError, OSError):  # it is said when the model is asked for
        studio.models.warm(lambda: studio.pool.is_idle)


def run(access: Access, models: Models, *, ready: Any = None) -> None:
    """Serve until interrupted.

    Args:
        access: from where it may be asked; port 0 = one that is free.
        models: what answers.
        ready: called with the address when requests are answered.
    """
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((access.host, access.port))
        except OSError as error:
            expected = "an address of this machine that is free (--port 0 takes any port)"
            where = f"--host {access.host} --port {access.port}"
            raise refuse(where, expected=expected, got=error.strerror or str(error)) from None
        listening.listen(128)  # whoever comes before all is ready waits, and is not turned away
        port = listening.getsockname()[1]
        access = Access(access.host, port, access.token)
        config = uvicorn.Config(
            guarded(make_app(models), access),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )

        class Server(uvicorn.Server):
            def handle_exit(self, sig: int, frame: Any) -> None:
                """Whoever presses Ctrl-C again says nothing new: the end takes a second at most."""
                if not self.should_exit:
                    super().handle_exit(sig, frame)

        server = Server(config)
        if ready is not None:
            ready(address(access))
        with suppress(KeyboardInterrupt):  # how it is ended
            server.run(sockets=[listening])


def address(access: Access) -> str:
    """What to open."""
    host = access.host if access.host not in ("0.0.0.0", "::") else "localhost"
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{access.port}/" + (f"?token={quote(access.token, safe='')}" if access.token else "")
