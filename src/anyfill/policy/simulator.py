"""FrankaKitchen-v1 without a screen: one environment, and many of them in parallel processes.

The simulator is an extra that is imported when it is first used. All seven tasks are watched whatever is asked of the
robot; an episode goes on when they are done. Each process steps its own environments; the network runs in the parent,
for all of them at once.
"""

import contextlib
import gc
import importlib
import io
import multiprocessing
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from anyfill.checks import refuse
from anyfill.policy.demonstrations import Floats
from anyfill.policy.kitchen import ENVIRONMENT, OBSERVED, TASKS

Step = tuple[Floats, list[str]]
"""The 30 positions, and the tasks that were completed in this step."""


def require_environment(name: str) -> None:
    """ValueError unless this is the environment that there are rollouts of, and its simulator is installed."""
    if name != ENVIRONMENT:
        raise refuse("--env", expected=ENVIRONMENT, got=repr(name))
    try:
        _quietly("gymnasium_robotics")
        importlib.import_module("mujoco")
    except ModuleNotFoundError as error:
        expected = 'its simulator (pip install "anyfill[policy]")'
        raise refuse(ENVIRONMENT, expected=expected, got=f"no package {error.name!r}") from None


def _quietly(package: str) -> Any:
    """Import a package that has something to say about other environments whenever it is imported."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module(package)


class Kitchen:
    """One environment.

    Args:
        film: True if frames are wanted; then ``frame`` gives one.
    """

    def __init__(self, *, film: bool = False) -> None:
        if film and not os.environ.get("MUJOCO_GL"):
            os.environ["MUJOCO_GL"] = "osmesa" if not os.environ.get("DISPLAY") else "glfw"
        gymnasium: Any = importlib.import_module("gymnasium")
        gymnasium.logger.min_level = gymnasium.logger.ERROR
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gymnasium.register_envs(_quietly("gymnasium_robotics"))
            options: dict[str, Any] = {"render_mode": "rgb_array", "width": 320, "height": 240} if film else {}
            self.env: Any = gymnasium.make(
                ENVIRONMENT,
                tasks_to_complete=list(TASKS),
                terminate_on_tasks_completed=False,
                max_episode_steps=100_000,  # the caller counts
                disable_env_checker=True,
                **options,
            )

    def reset(self, seed: int) -> Floats:
        """The positions (30,) at the beginning."""
        observed, _ = self.env.reset(seed=seed)
        return _positions(observed)

    def step(self, action: Floats) -> Step:
        """Do an action (9,), each from -1 to 1."""
        observed, _, _, _, info = self.env.step(np.clip(action, -1.0, 1.0).astype(np.float64))
        return _positions(observed), [str(task) for task in info["step_task_completions"]]

    def frame(self) -> Any:
        """uint8 (H, W, 3)."""
        return self.env.render()

    def close(self) -> None:
        """Free what it holds."""
        self.env.close()


def _positions(observed: Any) -> Floats:
    return np.asarray(observed["observation"], dtype=np.float32)[list(OBSERVED)]


class Kitchens:
    """Environments side by side, in parallel processes if there is more than one worker.

    Args:
        seeds: one for each environment.
        workers: processes; 1 = all in this one.
    """

    def __init__(self, seeds: Sequence[int], workers: int = 1) -> None:
        self.shares = [
            list(map(int, part)) for part in np.array_split(np.array(seeds, dtype=np.int64), max(1, workers))
        ]
        self.shares = [part for part in self.shares if part]
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        self.own: list[Kitchen] = []
        if workers <= 1:
            return
        context = multiprocessing.get_context("spawn")  # a fork would copy torch's threads in the middle of their work
        for part in self.shares:
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, part), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def reset(self) -> Floats:
        """(B, 30): the positions at the beginning, each environment by its seed."""
        if not self.pipes:
            self.own = [Kitchen() for _ in self.shares[0]]
            return np.stack([kitchen.reset(seed) for kitchen, seed in zip(self.own, self.shares[0])])
        return np.concatenate([_received(pipe) for pipe in self.pipes])

    def step(self, actions: Floats) -> tuple[Floats, list[list[str]]]:
        """Positions (B, 30) and completed tasks after actions (B, 9)."""
        if not self.pipes:
            done = [kitchen.step(action) for kitchen, action in zip(self.own, actions)]
        else:
            ends = np.cumsum([len(part) for part in self.shares])[:-1]
            for pipe, part in zip(self.pipes, np.split(actions, ends)):
                pipe.send(part)
            done = [one for pipe in self.pipes for one in _received(pipe)]
        return np.stack([positions for positions, _ in done]), [tasks for _, tasks in done]

    def close(self) -> None:
        """End the processes."""
        for kitchen in self.own:
            kitchen.close()
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(timeout=10)
            if process.is_alive():
                process.terminate()


def _received(pipe: Any) -> Any:
    try:
        answer = pipe.recv()
    except EOFError:
        raise refuse("a worker", expected="to go on", got="it ended (not enough memory?)") from None
    if isinstance(answer, str):
        raise refuse("a worker", expected="to go on", got=answer)
    return answer


def _serve(pipe: Any, seeds: list[int]) -> None:
    """A worker: make and reset environments, then step them until the pipe closes."""
    try:
        kitchens = [Kitchen() for _ in seeds]
        pipe.send(np.stack([kitchen.reset(seed) for kitchen, seed in zip(kitchens, seeds)]))
        while True:
            try:
                actions = pipe.recv()
            except EOFError:
                return
            pipe.send([kitchen.step(action) for kitchen, action in zip(kitchens, actions)])
    except (KeyboardInterrupt, BrokenPipeError):
        return
    except Exception as error:  # told to the parent, which ends the run in a sentence
        pipe.send(f"{type(error).__name__}: {error}")


def _unheard(_: object) -> None:
    """What a viewer that could not be made has to say when it goes."""


def film(actions: Floats, seed: int, frames: int = 8) -> list[Any]:
    """Pictures of an episode that is played again from its seed and its actions (T, 9).

    ValueError if nothing can be drawn here: MuJoCo needs osmesa or egl where there is no screen.
    """
    wanted = {round(i * (len(actions) - 1) / max(1, frames - 1)) for i in range(frames)}
    hook, sys.unraisablehook = sys.unraisablehook, _unheard
    pictures: list[Any] = []
    try:
        kitchen = Kitchen(film=True)
        kitchen.reset(seed)
        for number, action in enumerate(actions):
            kitchen.step(action)
            if number in wanted:
                pictures.append(kitchen.frame())
        kitchen.close()
    except Exception as error:  # OpenGL has many ways of not being there
        expected = "OpenGL without a screen (install osmesa or set MUJOCO_GL=egl)"
        got = " ".join(str(error).split())[:100] or type(error).__name__
        raise refuse("film", expected=expected, got=got) from None
    finally:
        kitchen = None
        gc.collect()
        sys.unraisablehook = hook
    return pictures
