"""A studio in a process of its own, and a browser to visit it with: for tests, figures and benchmarks."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""


@contextmanager
def running(*options: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """``anyfill studio`` on a free port: its address, and the process."""
    command = [sys.executable, "-m", "anyfill", "studio", "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        if process.stdout is None:
            raise RuntimeError("no output")
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise RuntimeError("the studio did not say where it is")
        yield found[0], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(30)


@contextmanager
def browsing(
    base: str, *, width: int = 1280, height: int = 860, dark: bool = False, touch: bool = False, refusals: bool = False
) -> Generator[Any]:
    """A page of a browser, which must not ask anybody else, nor complain: that is looked at in the end.

    With ``touch`` it is that of a phone, with ``refusals`` it may complain that the studio refuses something.
    """
    from playwright.sync_api import sync_playwright

    complaints: list[str] = []
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=touch, is_mobile=touch
        )
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request", lambda one: None if one.url.startswith((base, "blob:", "data:")) else complaints.append(one.url)
        )
        yield page
        browser.close()
    if refusals:
        complaints = [one for one in complaints if "responded with a status of 4" not in one]
    if complaints:
        raise AssertionError(f"the browser complained: {complaints}")
