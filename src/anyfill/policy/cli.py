"""The commands ``anyfill policy``: train, ask, rollout and report.

Thin: each reads its options, calls the verb of the same name, and says in a few words what came of it. Everything is
imported when a command runs.
"""

from pathlib import Path
from typing import Annotated

import typer

from anyfill.checks import refuse, refuse_given
from anyfill.interface.options import (
    AsJson,
    Device,
    OnDevice,
    Resume,
    Seed,
    add_commands,
    chosen_seed,
    command,
    new_group,
)
from anyfill.policy.settings import Settings

Source = Annotated[
    Path, typer.Argument(metavar="DEMOS", help=".npz, .csv, .parquet, or a folder with one trajectory in each file.")
]
GroupsFile = Annotated[
    Path | None,
    typer.Option(help="JSON or YAML: which columns are observation, action, goal, next.", show_default=False),
]
ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a model (anyfill policy train).")]
Heat = Annotated[
    float | None, typer.Option(min=0.0, max=5.0, help="Below 1 is safer, above 1 bolder.", show_default="1")
]
Mode = Annotated[bool, typer.Option("--mode", help="The likeliest value of each, as --temperature 0.")]


@command("Train a model on demonstrations.")
def train(
    *,
    source: Source,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    groups: GroupsFile = None,
    settings: Settings,
    resume: Resume = False,
    device: OnDevice = Device.auto,
) -> None:
    """Train a model on demonstrations, for the other commands.

    Demonstrations of FrankaKitchen are read as they are; other trajectories need --groups. Some trajectories are held
    out, and the model's questions are scored on them at the end. Ctrl-C leaves a checkpoint; --resume goes on.
    """
    from anyfill.policy.reading import read_demonstrations
    from anyfill.policy.training import train_in_words

    def say(line: str) -> None:
        typer.echo(line, err=True)

    found = read_demonstrations(source, groups)
    for line in train_in_words(found, output, settings, device=device.value, resume=resume, say=say):
        typer.echo(line)
    typer.echo(f"model saved in {output}")


@command("Ask a model about a step of a trajectory, or score a file.")
def ask(
    *,
    model: ModelFolder,
    source: Source,
    groups: GroupsFile = None,
    question: Annotated[
        str, typer.Option(help="policy, goal, inverse, forward, sensors, task, safe, lost; complete.")
    ] = "policy",
    trajectory: Annotated[int | None, typer.Option(min=0, help="Which trajectory.", show_default="0")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="Which step of it.", show_default="0")] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="A sensor that is not read, by name. May be repeated.", show_default=False)
    ] = None,
    hold: Annotated[
        list[str] | None,
        typer.Option(help="An action that is held: NAME=VALUE. May be repeated.", show_default=False),
    ] = None,
    goal: Annotated[str | None, typer.Option(help="Another goal than that of the file.", show_default=False)] = None,
    show: Annotated[
        str | None, typer.Option(help="Of a whole trajectory the part that is given: 0%-30%.", show_default=False)
    ] = None,
    n: Annotated[
        int | None, typer.Option("-n", "--n", min=1, max=1000, help="How many answers.", show_default="1")
    ] = None,
    score: Annotated[bool, typer.Option("--score", help="Nats per variable over the whole file instead.")] = False,
    temperature: Heat = None,
    mode: Mode = False,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Ask a model about a step of a trajectory: what is asked, what the file has there, and n answers."""
    from anyfill.interface.output import json_text
    from anyfill.policy.asking import held_values, points_shown
    from anyfill.policy.model import load
    from anyfill.policy.reading import read_demonstrations

    if score:
        drawn = {"--n": n, "--temperature": temperature, "--mode": mode, "--seed": seed}
        places = {"--trajectory": trajectory, "--step": step, "--goal": goal}
        refuse_given("with --score, which asks about the whole file", {**places, **drawn})
    heat = _heat(temperature, mode=mode)
    found = read_demonstrations(source, groups)
    loaded = load(model)
    held, shown = held_values(loaded.layout, hold or []), points_shown(loaded.layout, show)
    if score:
        nats, count = loaded.nats(found, question, missing=missing or (), held=held, shown=shown)
        result: dict[str, object] = {"question": question, "nats_per_variable": nats, "values": count}
        typer.echo(json_text(result) if as_json else f"{question}: {nats:.4f} nats for each of {count:,} values")
        return
    seed = chosen_seed(seed)
    answer = loaded.ask(
        found,
        question,
        trajectory=trajectory or 0,
        step=step or 0,
        n=n or 1,
        missing=missing or (),
        held=held,
        shown=shown,
        goal=goal,
        temperature=heat,
        seed=seed,
    )
    if as_json:
        answers = [dict(zip(answer.names, values)) for values in answer.values]
        recorded = dict(zip(answer.names, answer.recorded))
        typer.echo(json_text({"question": question, "seed": seed, "recorded": recorded, "answers": answers}))
        return
    typer.echo(f"{question}, seed {seed}")
    for place, name in enumerate(answer.names):
        cells = [_cell(values[place]) for values in answer.values]
        typer.echo(f"{name:<28} recorded {_cell(answer.recorded[place]):>12}   answers {'  '.join(cells)}")


@command("Let a model act in the simulator.")
def rollout(
    *,
    model: ModelFolder,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the results.")] = Path("rollouts"),
    env: Annotated[str, typer.Option(help="The environment.")] = "FrankaKitchen-v1",
    goal: Annotated[
        str | None, typer.Option(help="Tasks to do in this order: 'microwave,kettle'.", show_default=False)
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, max=10_000, help="How many episodes.")] = 8,
    steps: Annotated[int, typer.Option(min=1, help="Steps of an episode.")] = 280,
    lose: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of the sensors that are lost.")] = 0.0,
    motor_off: Annotated[str | None, typer.Option(help="A motor that is off: 'motor 3'.", show_default=False)] = None,
    told: Annotated[bool, typer.Option("--told/--untold", help="Whether the model knows what is lost or off.")] = True,
    temperature: Heat = None,
    mode: Mode = False,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Parallel processes.")] = 1,
    film: Annotated[bool, typer.Option("--film/--no-film", help="Draw frames where the simulator can.")] = True,
    seed: Seed = None,
) -> None:
    """Let a model act in the simulator: success per task, frames and states over time in the output folder.

    Needs the extra: pip install "anyfill[policy]". Sensors that are lost and the motor that is off stay so through an
    episode; told, the model is asked without them; untold, it believes what they read.
    """
    from anyfill.policy.model import load
    from anyfill.policy.report import save_rollouts
    from anyfill.policy.rollouts import Conditions
    from anyfill.policy.rollouts import rollout as roll
    from anyfill.policy.simulator import require_environment

    if not told and not lose and motor_off is None:
        raise refuse("--untold", expected="--lose or --motor-off, which the model is not told of", got="neither")
    require_environment(env)
    seed, heat = chosen_seed(seed), _heat(temperature, mode=mode)
    conditions, loaded = Conditions(lose, motor_off, told), load(model)
    typer.echo(f"seed {seed}", err=True)
    found = roll(
        loaded,
        goal=goal,
        episodes=episodes,
        seed=seed,
        temperature=heat,
        conditions=conditions,
        steps=steps,
        workers=workers,
        environment=env,
        progress=True,
    )
    about = {"model": str(model), "method": loaded.method}
    why = save_rollouts(found, output, **about, conditions=conditions, temperature=heat, filmed=film)
    if why is not None:
        typer.echo(f"note: no film, states only: {why}", err=True)
    typer.echo(found.describe())
    for task, share in found.summary()["share_done"].items():
        typer.echo(f"{task:<16} {share:.0%}")
    typer.echo(f"wrote {output}")


@command("One page about several rollouts.")
def report(
    *,
    folders: Annotated[list[Path], typer.Argument(metavar="ROLLOUTS...", help="Folders of anyfill policy rollout.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the page.")] = Path("report"),
) -> None:
    """One page about several rollouts: success per task, film strips, states over time. Open index.html in OUTPUT."""
    from anyfill.policy.report import write_report

    write_report(folders, output)
    typer.echo(f"wrote {output / 'index.html'}")


def _heat(temperature: float | None, *, mode: bool) -> float:
    """The temperature that was said, in one way or the other."""
    if mode:
        refuse_given("with --mode, which is --temperature 0", {"--temperature": temperature})
        return 0.0
    return 1.0 if temperature is None else temperature


def _cell(value: float | str | None) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def register(app: typer.Typer) -> None:
    """Add ``policy`` and its commands to the application."""
    own = add_commands(new_group(), train, ask, rollout, report)
    app.add_typer(own, name="policy", help="Robots and trajectories: learn from demonstrations, act.")
