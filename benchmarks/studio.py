"""How fast the studio answers: the first fill from a cold start, cancel, what-if, twenty tabs at once.

python -m benchmarks.studio          # writes results/studio.json
python -m benchmarks.studio --looks  # only how long a cancelled fill goes on, into results/studio_cancel.json
"""

import argparse
import asyncio
import json
import os
import random
import time
from typing import Any

import httpx
import numpy as np
import pandas as pd

from benchmarks.common import write_result
from benchmarks.studio_browser import running

ROWS, COLUMNS, QUESTIONS, TABS = 1000, 20, 200, 20
LONG = 5000


async def finished(client: httpx.AsyncClient, path: str, body: dict[str, Any], tab: str = "one") -> tuple[str, Any]:
    """Begin a job, as a page does: coming again where there is no room; how it ended, and with what."""
    while True:
        answer = await client.post(path, json=body, headers={"X-Tab": tab})
        if answer.status_code != 429:
            break
        await asyncio.sleep(float(answer.headers["Retry-After"]) * random.uniform(0.5, 1.5))
    answer.raise_for_status()
    name = ""
    async with client.stream("GET", f"/api/jobs/{answer.json()['job']}/events") as lines:
        async for line in lines.aiter_lines():
            name = line.removeprefix("event: ") if line.startswith("event: ") else name
            if line.startswith("data: ") and name in ("done", "failed", "cancelled"):
                return name, json.loads(line.removeprefix("data: "))
    return "lost", None


async def first_fill() -> tuple[float, float]:
    """Seconds from the command to the first filled text, and from Ctrl-C to the server's end."""
    begun = time.perf_counter()
    with running() as (base, _):
        async with httpx.AsyncClient(base_url=base, timeout=300) as client:
            state, _ = await finished(client, "/api/text/fill", {"text": "the ____ king of france", "seed": 0})
        filled = time.perf_counter()
    return filled - begun if state == "done" else float("nan"), time.perf_counter() - filled


async def cancels(client: httpx.AsyncClient, count: int = 5) -> list[float]:
    """Seconds from cancel to its being told, for texts that are being written."""
    found: list[float] = []
    for number in range(count):
        body = {"prompt": "the ", "length": 5000, "seed": number}
        key = (await client.post("/api/text/write", json=body)).json()["job"]
        begun: float | None = None
        async with client.stream("GET", f"/api/jobs/{key}/events") as lines:
            async for line in lines.aiter_lines():
                if line == "event: piece" and begun is None:
                    begun = time.perf_counter()
                    await client.delete(f"/api/jobs/{key}")
                if line == "event: cancelled" and begun is not None:
                    found.append(time.perf_counter() - begun)
                    break
    return found


def table(rows: int = ROWS) -> bytes:
    """Twenty columns that go together, a tenth of them missing."""
    draw = np.random.default_rng(0)
    z, weights = draw.normal(size=(rows, 4)), draw.normal(size=(4, COLUMNS))
    values = z @ weights + 0.5 * draw.normal(size=(rows, COLUMNS))
    frame = pd.DataFrame({f"x{n}": values[:, n].round(3) for n in range(COLUMNS)})
    for name in list(frame)[-4:]:
        frame[name] = np.where(frame[name] > 1, "high", np.where(frame[name] > -1, "middle", "low"))
    return frame.mask(draw.random(frame.shape) < 0.1).to_csv(index=False).encode()


def looks(recipe: str) -> dict[str, float]:
    """How long a fill of 5,000 rows goes on that is cancelled at a random time: until it looks again.

    All times at which it looks are written down; a time drawn evenly falls into a gap by the gap's length, and waits
    for its end. In seconds of the thread, which other work on the machine does not lengthen, and in those of the clock.
    """
    import tempfile
    from pathlib import Path

    import torch._dynamo  # noqa: F401  # what torch's first optimizer imports, once, in a second or two

    from anyfill.interface.progress import reported_to
    from anyfill.studio.jobs import Job
    from anyfill.studio.table_store import OpenTable
    from anyfill.studio.table_work import fill

    own, clock = list[float](), list[float]()

    def look(*_: Any) -> None:
        own.append(time.thread_time())
        clock.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(table(LONG))
        opened = OpenTable(path, path.name)
        with reported_to(look, check=look):
            look()
            fill(Job(lambda job: {}), opened, {"recipe": recipe, "seed": 0}, 0.9)
            look()
    found: dict[str, float] = {"looks": len(own)}
    for name, times in (("thread", own), ("clock", clock)):
        gaps = np.sort(np.diff(times))
        draw = np.random.default_rng(0)
        waits = draw.choice(gaps, 100_000, p=gaps / gaps.sum()) * draw.random(100_000)
        found |= {f"{name}_p95_seconds": float(np.percentile(waits, 95)), f"{name}_max_seconds": float(gaps[-1])}
        found[f"{name}_fill_seconds"] = float(gaps.sum())
    return found


async def what_ifs(client: httpx.AsyncClient, recipe: str) -> list[float]:
    """Seconds of each answer to a changed value, of a model made by this recipe."""
    about = (await client.post("/api/tables/upload", files={"file": ("x.csv", table())})).json()
    await finished(client, f"/api/tables/{about['table']}/fill", {"recipe": recipe})
    draw, found = random.Random(0), list[float]()
    for number in range(QUESTIONS):
        changes = {f"x{draw.randrange(8)}": f"{draw.gauss(0, 1):.2f}", **{f"x{n}": None for n in range(8, COLUMNS)}}
        begun = time.perf_counter()
        answer = await client.post(f"/api/tables/{about['table']}/whatif", json={"row": number, "changes": changes})
        found.append(time.perf_counter() - begun)
        answer.raise_for_status()
    return found


async def tabs(client: httpx.AsyncClient) -> tuple[float, int, bool]:
    """Twenty tabs fill at once: seconds until all have their answer, how many have none, and whether all are alike."""
    begun = time.perf_counter()
    body = {"text": "the l_st king", "n": 3, "seed": 1}
    ends = await asyncio.gather(*(finished(client, "/api/text/fill", body, f"tab{n}") for n in range(TABS)))
    answers = {json.dumps(found["fills"]) for state, found in ends if state == "done"}
    return time.perf_counter() - begun, sum(state != "done" for state, _ in ends), len(answers) == 1


async def measure() -> dict[str, Any]:
    """All of it."""
    filled, ended = await first_fill()
    found: dict[str, Any] = {"first_fill_seconds": filled, "end_seconds": ended}
    with running() as (base, _):
        async with httpx.AsyncClient(base_url=base, timeout=600) as client:
            found["cancel_seconds"] = max(await cancels(client))
            for recipe in ("gaussian", "auto"):
                times = await what_ifs(client, recipe)
                levels = {f"p{level}_seconds": float(np.percentile(times, level)) for level in (50, 95)}
                found |= {f"what_if_{recipe}_{name}": seconds for name, seconds in levels.items()}
            seconds, lost, alike = await tabs(client)
            found |= {"tabs": TABS, "tabs_seconds": seconds, "tabs_without_answer": lost, "tabs_alike": alike}
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--looks", action="store_true", help="only when a long fill looks whether it was cancelled")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if arguments.looks:
        found = {recipe: looks(recipe) for recipe in ("gaussian", "auto")}
        payload = {**found, "load_average_before": load, "rows": LONG, "columns": COLUMNS, "seed": 0}
        print(json.dumps(payload, indent=2))
        write_result("studio_cancel", payload)
        return
    found = asyncio.run(measure())
    payload = {**found, "load_average_before": load, "rows": ROWS, "columns": COLUMNS, "seed": 0}
    print(json.dumps(payload, indent=2))
    write_result("studio", payload)


if __name__ == "__main__":
    main()
