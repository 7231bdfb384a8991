"""Peers in processes of their own: packages that may need another interpreter, asked by lines of JSON.

A script of peers (``ising_peers.py``, ``bleu_peers.py``) is called with the name of a package; it answers one line with
the package's version, then one line to each request.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Measured = dict[str, Any]


class Peer:
    """A package in a process of its own, on one thread."""

    def __init__(self, script: Path, name: str, python: str) -> None:
        pipe, self.said = subprocess.PIPE, tempfile.TemporaryFile("w+")  # noqa: SIM115 (it lives as long as the process)
        self.process = subprocess.Popen(
            (python, str(script), name),
            stdin=pipe,
            stdout=pipe,
            stderr=self.said,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.version: str = self._line()["version"]

    def ask(self, **request: Any) -> Measured:
        """The answer to one request; RuntimeError with the last word of a process that has ended."""
        if self.process.stdin is None:
            raise RuntimeError("no way to ask")
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._line()

    def close(self) -> None:
        """Let it end."""
        self.process.communicate()

    def _line(self) -> Measured:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self.said.seek(0)
            raise RuntimeError((self.said.read().strip().splitlines() or ["it ended without a word"])[-1])
        return json.loads(line)


def find_peers(
    script: Path, names: Sequence[str], python: str | None, *, tried: Callable[[Peer], object] | None = None
) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that run, here or under another interpreter, and why the others do not.

    ``tried`` asks a peer something small, so that what is installed and broken shows at once.
    """
    found: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name in names:
        for interpreter in (sys.executable, *([python] if python else [])):
            try:
                peer = Peer(script, name, interpreter)
                if tried is not None:
                    tried(peer)
                found[name] = peer
                break
            except (RuntimeError, OSError) as error:
                absent = isinstance(error, OSError) or "No package metadata" in str(error)
                missing[name] = "not installed" if absent else f"does not run: {error}"
    return found, {name: why for name, why in missing.items() if name not in found}
