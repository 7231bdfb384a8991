"""The command ``anyfill studio``."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from anyfill.interface.options import add_commands, command

PORT = 8377


@command("A local web page to use everything by hand.")
def studio(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes any port that is free.")] = PORT,
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            metavar="DIR",
            help="Folder of a model of your own, or of several; may be repeated.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; anything but this machine needs a --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="What visitors must know, eight characters or more.", show_default=False)
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Open a local web page in which tables, chorales, pictures and text can be filled by hand.

    It answers to this machine only, loads nothing from the network, and leaves nothing behind. Ctrl-C ends it.
    """
    import threading
    import webbrowser

    from anyfill.checks import refuse

    try:
        import fastapi  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import multipart  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        needed = 'the studio\'s packages (pip install "anyfill[studio]")'
        raise refuse("anyfill studio", expected=needed, got=f"no {error.name}") from None

    from anyfill.studio.models import Models
    from anyfill.studio.security import Access
    from anyfill.studio.server import run

    def ready(address: str) -> None:
        typer.echo(f"anyfill studio: {address}  (Ctrl-C ends it)")
        if not no_browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()

    run(Access(host, port, token), Models(tuple(model or ())), ready=ready)
    leave()


def leave() -> NoReturn:
    """End the process now: all is cleaned up, and threads inside of a long call would keep it waiting."""
    typer.echo("anyfill studio: ended")
    sys.stdout.flush()
    os._exit(0)


def register(app: typer.Typer) -> None:
    """Add ``studio`` to the application."""
    add_commands(app, studio)
