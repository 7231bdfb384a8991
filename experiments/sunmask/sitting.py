"""SUNMASK's Table 2 and Figures 3 to 5 in one sitting on one accelerator, the most valuable first, each job alone.

Processes (``experiments.sunmask.worker``) read and compile side by side; tasks (``experiments.sunmask.plans``) are
given one by one, in order, so that no other job computes meanwhile. A task whose process still compiles waits; those of
processes that are ready go first (Coconet's before all, whose seconds nothing is compared with). A task that would not
end before ``--until`` is left out, and so is what needs it. A process that ends by itself is begun again, once.

What compiles when. Every kind of call of the U-Net over (time, pitch) is compiled for itself: on an H200, beside
trainings of other models, training took 270 s, validation and sampling 150 s each, in three processes side by side (all
in one process 338 s), the other networks 50 to 150 s each, and all of the U-Net 43 s to read when the caches were
there. Either fill the caches before, in a call of its own that ends (--compile), or let one call compile and then wait
for its turn (--go FILE: it begins when that file is there and says until when; --aside: validation and sampling of the
U-Net compile in two processes of their own meanwhile, --beside: at most so many others at a time).

    export TORCHINDUCTOR_CACHE_DIR=/tmp/inductor TRITON_CACHE_DIR=/tmp/triton
    python -m experiments.sunmask.sitting --out /tmp/compiled --compile
    python -m experiments.sunmask.sitting --out OUT --until $((S + 540))

    python -m experiments.sunmask.sitting --plan equal --out OUT --pack equal.tar.gz --aside --beside 2 --go go &
    echo $((S + 420)) > go                                              # when OUT/ready is there
    python -m experiments.sunmask.sitting --plan late --out OUT --pack equal.tar.gz --until $((S + 900)) --slow 2

    python -m experiments.sunmask.sitting --plan third --out OUT --pack third.tar.gz --aside --go go --later later &
    echo $((S + 260)) > go              # OUT/ended is there when it has trained; its processes wait, still compiled
    echo $((S + 900)) > later           # then plan "long" by the same processes; --plan long --until does it by others

    python -m experiments.sunmask.table2 --samples OUT     # grades; NAME.npz and NAME.json of OUT beside each other
    python -m experiments.sunmask.fig3 --figures OUT/figures_smc.npz --free OUT/smc.npz

leaves NAME.json, NAME.npz, figures_NAME.npz as they come and tasks.jsonl (what was done when; tasks_late.jsonl). With
--pack they are in that one file, too, after every task, and weights stay where they are, in OUT/NAME. Without, all that
is packed at the end as all.tar.gz, with the weights of SMc and SMt (8 bits) beside it, in parts that are small enough
to travel. A machine without mido, which reads MIDI files, needs it on its path.
"""

import argparse
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from experiments.sunmask.packing import packed, packed_small
from experiments.sunmask.plans import GROUPS, PACE, PLANS, SLOWEST, Task, expected, name_of
from experiments.sunmask.processes import GONE, Process, compiled
from experiments.sunmask.worker import KINDS, parser_of

LANES = [*([("pitch", kind)] for kind in KINDS), [(group, "all") for group in GROUPS if group != "pitch"]]
"""What compiles beside what, each lane in its order."""
BOTH = ["pitch", "transformer"]
WITH = [*BOTH, "coconet"]
NEEDS = {"table2": list(GROUPS), "equal": [*BOTH, "time"], "late": BOTH, "third": WITH, "long": WITH}
"""Processes of a plan."""
LOADING = ("late", "long")
"""Plans that begin with what another process has saved."""
MAKING = ("train", "load")
"""Tasks after which there is a model."""
SAFER = {"optimizer": "adamw", "learning_rate": 3e-4}
"""How what diverged is trained again, once."""
HASTE = 4.0
"""Seconds that a training which takes what is left leaves for what follows."""


class Sitting:
    """Tasks that wait, processes that compile or are ready, and what was lost.

    Args:
        start: begins a process, by its name.
        groups: the names of all.
        told: is told whatever happens.
        beside: so many compile at a time.
    """

    def __init__(
        self,
        start: Callable[[str], Process],
        groups: Sequence[str],
        told: Callable[..., None],
        *,
        beside: int | None = None,
    ) -> None:
        self.tasks, self.until = list[Task](), math.inf
        self.start, self.told = start, told
        self.starting, self.ready = dict[str, Process](), dict[str, Process]()
        self.waiting, self.beside = list(groups), beside or len(groups)
        self.pace: dict[str, float] = {}
        self.lost: set[str] = set()
        self.again: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        while self.waiting and len(self.starting) < self.beside:
            group = self.waiting.pop(0)
            self.starting[group] = self.start(group)

    @property
    def left(self) -> float:
        """Seconds."""
        return self.until - time.time()

    @property
    def coming(self) -> set[str]:
        """Processes that are not ready yet."""
        return {*self.starting, *self.waiting}

    def look(self) -> None:
        """Which processes have become ready, or have ended: those are begun again, once."""
        for group in [group for group, process in self.starting.items() if process.has_answered]:
            process = self.starting.pop(group)
            answer = process.answer(1.0)
            self.told(process=group, **answer)
            if "error" in answer:
                process.end()
                self._restart(group)
            else:
                self.ready[group] = process
        for group in [group for group, process in self.ready.items() if not process.is_alive]:
            self.told(process=group, error="it has ended")
            del self.ready[group]
            self._restart(group)
        self._begin()

    def _restart(self, group: str) -> bool:
        if group in self.again:
            return False
        self.again.add(group)
        self.waiting.insert(0, group)
        return True

    def wait(self, go: Path, ready: Path, seconds: float) -> bool:
        """Until the file ``go`` is there, which says until when; False if it never comes."""
        begun = time.time()
        while not go.exists():
            self.look()
            if not self.coming and not ready.exists():
                ready.touch()
            if time.time() - begun > seconds:
                return False
            time.sleep(0.2)
        self.until = float(go.read_text())
        return True

    def next(self) -> Task | None:
        """The next task that can be done now; what can no longer be done is left out on the way."""
        coming = self.coming
        unmade = {name_of(what) for _, what in self.tasks if what["do"] in MAKING}
        for task in sorted(self.tasks, key=lambda one: one[0] != "coconet" or "pitch" not in coming):
            group, what = task
            if group in coming and self.left > 0:
                if "pitch" in coming and group == "coconet":
                    return None  # it will be ready in a moment
                continue
            if what.get("last") and coming and self.left > 0:
                continue  # a training that takes what is left at the end
            if what["do"] not in MAKING and name_of(what) in unmade:
                continue
            what.pop("last", None)
            least = what.pop("least", None)
            if least is not None:
                what["seconds"] = max(least, min(what["seconds"], self.left - 2 * HASTE))
            needed = expected(what, self.pace)
            untrained = what["do"] != "train" and name_of(what) in self.lost
            if group in self.ready and not untrained and needed <= self.left:
                return task
            self.tasks.remove(task)
            self.told(left_out=what, expected=round(needed, 1), left=round(self.left, 1))
            self._lose(what)
            unmade -= self.lost
        return None

    def _lose(self, what: dict[str, Any]) -> None:
        if what["do"] in MAKING:
            self.lost.add(name_of(what))

    def do(self, task: Task) -> None:
        """Do it; a training that diverged, and whatever its process ended in, once more."""
        group, what = task
        at = self.tasks.index(task)
        follow = list(takewhile(lambda one: name_of(one[1]) == name_of(what), self.tasks[at + 1 :]))
        if not any(one["do"] == "save" for _, one in follow):
            follow = []
        # What is to be saved is saved and drawn from at once, even if its turn came early.
        self.tasks = [*follow, *self.tasks[:at], *self.tasks[at + 1 + len(follow) :]]
        begun = time.time()
        self.ready[group].ask(what)
        answer = self.ready[group].answer(self.left)
        self.told(task=what, seconds=round(time.time() - begun, 2), **answer)
        if "seconds_a_round" in answer:
            self.pace[name_of(what)] = answer["seconds_a_round"]
        if "error" not in answer:
            return
        if answer["error"] in GONE:
            self.ready.pop(group).end()
            if answer["error"] == GONE[1] and self._restart(group):
                self.tasks.insert(0, task)
                return
        elif what["do"] == "train" and "optimizer" not in what:
            self.tasks.insert(0, (group, {**what, **SAFER}))
            return
        self._lose(what)

    def run(self) -> None:
        """All tasks."""
        while self.tasks:
            self.look()
            task = self.next()
            if task is not None:
                self.do(task)
            elif self.tasks:
                time.sleep(0.2)

    def keep(self, names: dict[str, str]) -> None:
        """Save these models, each of its process, in 8 bits."""
        for group, name in names.items():
            if group in self.ready and name not in self.lost:
                self.ready[group].ask({"do": "save", "model": name, "eight_bit": True})
                self.told(task=f"save {name}", **self.ready[group].answer(self.left + 5.0))

    def end(self) -> None:
        """End all processes."""
        for process in [*self.ready.values(), *self.starting.values()]:
            process.end()


def parsed() -> argparse.Namespace:
    """Options."""
    parser = parser_of(__doc__)
    parser.add_argument("--plan", choices=list(PLANS), default="table2")
    parser.add_argument("--until", type=float, default=math.inf, help="seconds since 1970: all is packed by then")
    parser.add_argument("--go", type=Path, help="begin when this file is there; it says --until")
    parser.add_argument("--later", type=Path, help="then wait for this file, which says until when, for plan long")
    parser.add_argument("--patience", type=float, default=1500.0, help="seconds to wait for --go, and for --later")
    parser.add_argument("--pack", type=Path, help="a file for all but weights, written again after every task")
    parser.add_argument("--packing", type=float, default=8.0, help="seconds before the end that are left for packing")
    parser.add_argument("--compile", action="store_true", help="fill the caches and end")
    parser.add_argument("--aside", action="store_true", help="validation and sampling of the U-Net compile aside")
    parser.add_argument("--beside", type=int, help="so many processes compile at a time; by default all")
    parser.add_argument("--slow", type=float, default=1.0, help="how much slower than alone others make it")
    parser.add_argument("--seconds", type=float, default=130.0, help="of training of SMc; of equal trainings at most")
    parser.add_argument("--least", type=float, default=45.0, help="of equal trainings; else fewer models are trained")
    parser.add_argument("--transformer", type=float, default=50.0, help="of training of SMt")
    parser.add_argument("--coconet", type=float, default=45.0, help="of training of Coconet")
    parser.add_argument("--others", type=float, default=30.0, help="of training of all others, and of SMc once more")
    parser.add_argument("--seed", type=int, default=1, help="of equal trainings; those of table2 have 0")
    parser.add_argument("--rounds", type=int, default=512)
    parser.add_argument("--short", type=int, default=128)
    parser.add_argument("--long", type=int, default=1024)
    parser.add_argument("--own", type=int, default=512, help="rounds of Coconet: its own, one for each cell")
    parser.add_argument("--groups", nargs="+", choices=list(GROUPS), help="by default what the plan needs")
    return parser.parse_args()


def main() -> None:
    """Begin all, give tasks in order, pack."""
    arguments = parsed()
    start = time.time()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    passed = ["out", "data", "crop", "width", "transformer_width", "coconet_width", "dropout", "samples"]
    options = [part for key in passed for part in (f"--{key.replace('_', '-')}", str(getattr(arguments, key)))]
    options += ["--shrink"] * arguments.shrink + ["--even"] * arguments.even + ["--no-compile"] * arguments.no_compile
    threads = max(2, (os.cpu_count() or 2) // 4)
    loads = arguments.plan in LOADING
    kind = "sample" if loads else "all"
    with (out / ("tasks_late.jsonl" if loads else "tasks.jsonl")).open("w") as file:
        alone = threading.Lock()

        def told(**line: Any) -> None:
            text = json.dumps({"at": round(time.time() - start, 2), **line})
            with alone:
                file.write(text + "\n")
                file.flush()
                print(text, flush=True)
                if arguments.pack is not None and "task" in line:
                    packed_small(out, arguments.pack)

        def begun(group: str) -> Process:
            return Process(group, [*options, "--kind", kind], out / f"{arguments.plan}_{group}.log", threads)

        if arguments.compile:
            for lane in compiled(LANES, options, out, threads, min(arguments.until, start + 900.0), told):
                lane.join()
            return
        if arguments.aside:
            compiled([[("pitch", one)] for one in KINDS[1:]], options, out, threads, start + 900.0, told)
        sitting = Sitting(begun, arguments.groups or NEEDS[arguments.plan], told, beside=arguments.beside)
        sitting.until = arguments.until

        def follow(plan: str) -> None:
            sitting.until -= arguments.packing
            sitting.pace = {name: arguments.slow * PACE.get(name, SLOWEST) for name in ("smc", *PACE)}
            sitting.tasks = PLANS[plan](arguments, sitting.left)
            told(plan=plan, left=round(min(sitting.left, 1e9), 1), coming=sorted(sitting.coming))
            sitting.run()

        if arguments.go is None or sitting.wait(arguments.go, out / "ready", arguments.patience):
            follow(arguments.plan)
            if arguments.pack is None:
                sitting.keep({"pitch": "smc", "transformer": "smt"})
            (out / "ended").touch()
            if arguments.later is not None and sitting.wait(arguments.later, out / "ended", arguments.patience):
                follow("long")
        sitting.end()
    if arguments.pack is None:
        packed(out)
    else:
        packed_small(out, arguments.pack)


if __name__ == "__main__":
    main()
