"""How fast the studio answers: the first fill from a cold start, cancel, what-if, twenty tabs at once.

python -m benchmarks.studio          # writes results/studio.json
"""

import asyncio
import json
import random
import time
from typing import Any

import httpx
import numpy as np
import pandas as pd

from benchmarks.common import write_result
from benchmarks.studio_browser import running

ROWS, COLUMNS, QUESTIONS, TABS = 1000, 20, 200, 20


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


async def first_fill() -> float:
    """Seconds from the command to the first filled text."""
    begun = time.perf_counter()
    with running() as (base, _):
        async with httpx.AsyncClient(base_url=base, timeout=300) as client:
            state, _ = await finished(client, "/api/text/fill", {"text": "the ____ king of france", "seed": 0})
    return time.perf_counter() - begun if state == "done" else float("nan")


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


def table() -> bytes:
    """Twenty columns that go together, a tenth of them missing."""
    draw = np.random.default_rng(0)
    z, weights = draw.normal(size=(ROWS, 4)), draw.normal(size=(4, COLUMNS))
    values = z @ weights + 0.5 * draw.normal(size=(ROWS, COLUMNS))
    frame = pd.DataFrame({f"x{n}": values[:, n].round(3) for n in range(COLUMNS)})
    for name in list(frame)[-4:]:
        frame[name] = np.where(frame[name] > 1, "high", np.where(frame[name] > -1, "middle", "low"))
    return frame.mask(draw.random(frame.shape) < 0.1).to_csv(index=False).encode()


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
    found: dict[str, Any] = {"first_fill_seconds": await first_fill()}
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
    import os

    load = os.getloadavg()[0]
    found = asyncio.run(measure())
    payload = {**found, "load_average_before": load, "rows": ROWS, "columns": COLUMNS, "seed": 0}
    print(json.dumps(payload, indent=2))
    write_result("studio", payload)


if __name__ == "__main__":
    main()
