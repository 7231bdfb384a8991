"""The commands ``anyfill image``: fill, score, generate, train and show.

Thin: each reads its options, calls the verb of the same name, and says in a few words what came of it. Results go to
stdout, progress and remarks to stderr. Everything is imported when a command runs. Whether the names of results are
free is asked before anything is drawn.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from anyfill.images.settings import Settings
from anyfill.interface.options import (
    AsJson,
    Device,
    Force,
    OnDevice,
    Resume,
    Seed,
    Temperature,
    add_commands,
    chosen_seed,
    command,
    new_group,
)

PictureFile = Annotated[Path, typer.Argument(metavar="PICTURE", help="PNG, JPEG, WebP, BMP, GIF, TIFF or PPM.")]
Erase = Annotated[
    list[str] | None,
    typer.Option(
        help="What to erase: LEFT,TOP,WIDTH,HEIGHT; left, right, top, bottom, middle, frame; 30% (scattered pixels); "
        "strokes (at random); or a stroke as '3,3 20,25 / 4'. May be repeated.",
        show_default=False,
    ),
]
Mask = Annotated[
    Path | None,
    typer.Option(
        help="A second picture of the same size: white (level 128 or above) is erased; if it has transparent pixels, "
        "those are, and white is not.",
        show_default=False,
    ),
]
ModelName = Annotated[
    str, typer.Option("--model", help="digits or fashion, or a folder of a model (anyfill image train; ./digits).")
]
Invert = Annotated[
    bool | None, typer.Option("--invert/--no-invert", help="Read light as dark.", show_default="if the border says so")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How many are drawn, how, by which model, and where they go."""

    seed: Seed = None
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the result.")] = Path("out")
    force: Force = False
    temperature: Temperature = 1.0
    sampler: Annotated[
        Literal["exact", "speculative", "confidence", "entropy-bounded"],
        typer.Option(
            help="exact: one by one; speculative: the same law, other passes; approximations: confidence (the surest "
            "first, in --steps), entropy-bounded (as many at once as are nearly independent), which can take longer "
            "than exact."
        ),
    ] = "exact"
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Draw in so many steps, many pixels at once: worse, not exact.", show_default=False),
    ] = None
    model: ModelName = "digits"

    @property
    def drawn(self) -> dict[str, Any]:
        """How, as the verbs call it."""
        return {"temperature": self.temperature, "sampler": self.sampler, "steps": self.steps}

    def targets(self, stem: str, names: Sequence[str]) -> list[Path]:
        """Where the files go; refused where something is in the way, or where none can be written."""
        from anyfill.checks import refuse
        from anyfill.disk import require_writable
        from anyfill.interface.output import require_new

        if self.output.exists() and not self.output.is_dir():
            raise refuse(f"{self.output}", expected="a folder for the result", got="a file")
        paths = [self.output / f"{stem}-{name}.png" for name in names]
        for path in paths:
            require_new(path, force=self.force, way="another --seed or -o leaves it alone")
        require_writable(self.output)
        return paths


@command("Fill what is erased of a picture, in several ways.")
def fill(
    *,
    picture: PictureFile,
    mask: Mask = None,
    erase: Erase = None,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many alternatives.")] = 4,
    resize: Annotated[
        bool | None,
        typer.Option(
            "--resize/--windows",
            help="A picture of another size: cropped and scaled to the model's, or a larger one filled in windows "
            "[default: a window around each hole; for larger holes shrunk, what is drawn enlarged].",
            show_default=False,
        ),
    ] = None,
    invert: Invert = None,
    how: Drawing,
) -> None:
    """Fill what is erased of a picture, in several ways: OUTPUT/NAME-filled-SEED-1.png and so on.

    Erased is what is transparent, what --mask says and what --erase says, together. What is given is never changed.
    NAME-filled-SEED-sheet.png has what was given, what was drawn, and how uncertain each pixel is, in bits.
    """
    from anyfill.images.erasing import erased_in
    from anyfill.images.model import require_sampler
    from anyfill.images.picture import read_picture
    from anyfill.interface.output import say_remarks

    seed = chosen_seed(how.seed)
    require_sampler(how.sampler, how.steps)
    read = read_picture(picture)
    source = _generator(seed)
    read = erased_in(erased_in(read, mask, generator=source), erase, generator=source)
    stem = f"{picture.stem}-filled-{seed}"
    how.targets(stem, [*map(str, range(1, n + 1)), "sheet"])
    model = _loaded(how.model)
    ready = model.prepared(read, seed=seed, resize=resize, invert=invert)
    say_remarks(ready.picture.remarks)
    fills = model.fill_prepared(ready, n, seed, progress=True, **how.drawn)
    typer.echo(f"seed {seed}")
    for path in fills.save(how.output, stem):
        typer.echo(f"wrote {path}")


@command("How likely pictures are, and where they surprise.")
def score(
    *,
    pictures: Annotated[list[Path], typer.Argument(metavar="PICTURE...", help="PNG, JPEG, WebP …")],
    mask: Mask = None,
    erase: Erase = None,
    heat: Annotated[
        Path | None, typer.Option(help="Also draw where it surprises: FILE.png (one PICTURE).", show_default=False)
    ] = None,
    force: Force = False,
    invert: Invert = None,
    as_json: AsJson = False,
    model: ModelName = "digits",
) -> None:
    """How likely pictures are under the model, exactly, in nats and in bits per dimension (pixel and channel).

    With --erase or --mask, or both: how likely those parts are together, given the rest. A picture that is larger than
    the model's is cropped and shrunk first, which is said. A pixel's surprise is minus the logarithm of its
    probability, given all that came before.
    """
    from anyfill.checks import refuse
    from anyfill.disk import require_writable
    from anyfill.images.erasing import erased_in
    from anyfill.images.picture import read_picture, require_png
    from anyfill.interface.output import json_text, require_new, say_remarks

    if heat is not None:
        require_png(heat)
        require_new(heat, force=force)
        require_writable(heat.parent)
        if len(pictures) > 1:
            raise refuse("--heat", expected="one PICTURE", got=len(pictures))
    read = [read_picture(path) for path in pictures]
    parts: list[tuple[Any, tuple[str, ...]]] = []
    for picture in read:  # all of them before anything is scored
        if mask is None and erase is None:
            parts.append((None, ()))
            continue
        opaque, source = replace(picture, erased=None, remarks=()), _generator(0)
        part = erased_in(erased_in(opaque, mask, generator=source), erase, generator=source)  # both, as ``fill`` does
        parts.append((part.erased, part.remarks))
    loaded, found = _loaded(model), list[dict[str, object]]()
    for path, picture, (asked, remarks) in zip(pictures, read, parts):
        scored = loaded.score(picture, asked, invert=invert)
        say_remarks((*remarks, *scored.remarks))
        values = {"nats": scored.nats, "bits_per_dimension": scored.bits_per_dimension, "dimensions": scored.asked}
        name = os.fsencode(path).decode(errors="replace")  # names of files are bytes, and JSON has none of those
        found.append({"file": name, **values, "kind": scored.kind})
        if not as_json:
            typer.echo(f"{path}: {scored.describe()}")
        if heat is not None:
            scored.save(heat)
            typer.echo(f"wrote {heat}", err=as_json)
    if as_json:
        typer.echo(json_text(found))


@command("Draw new pictures.")
def generate(
    *,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=1000, help="How many.")] = 10,
    how: Drawing,
) -> None:
    """Draw new pictures from nothing: OUTPUT/NAME-SEED-1.png and so on, and all of them on NAME-SEED-sheet.png."""
    from anyfill.images.sheets import gallery

    seed = chosen_seed(how.seed)
    name = Path(how.model).name or Path(how.model).resolve().name  # "." has none
    paths = how.targets(f"{name}-{seed}", [*map(str, range(1, n + 1)), "sheet"])
    model = _loaded(how.model)
    drawn = model.sample(n, seed=seed, progress=True, **how.drawn)
    typer.echo(f"seed {seed}")
    for path, picture in zip(paths, (*drawn, gallery(drawn))):
        picture.save(path)
        typer.echo(f"wrote {path}")


@command("Train a model of your own.")
def train(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of pictures; or idx, CIFAR records (.bin), a sheet (sheet.png:32x32), or .npz[:name].",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    settings: Settings,
    resume: Resume = False,
    device: OnDevice = Device.auto,
) -> None:
    """Train a model of pictures, for --model of the other commands; 500 small ones take minutes on two cores.

    Pictures of several sizes, or larger than 64x64, are cropped and shrunk, which is said. Ctrl-C leaves a checkpoint:
    the folder can be used as it is, and the same command with --resume goes on.
    """
    from anyfill.images.training import train_in_words

    _say_if_shadowed(settings.start)

    def say(line: str) -> None:
        typer.echo(line, err=True)

    try:
        outcome = train_in_words(source, output, settings, device=device.value, resume=resume, say=say)
    except KeyboardInterrupt:
        if (output / "config.json").exists():
            typer.echo(f"what was learnt so far is in {output}; the same command with --resume goes on", err=True)
        raise
    for line in outcome:
        typer.echo(line)
    typer.echo(f"model saved in {output}")


@command("Show pictures of a folder or file on a sheet, or what a model is of.")
def show(
    *,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="What train reads, or one PICTURE, or a model.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The sheet: FILE.png.", show_default=False)
    ] = None,
    n: Annotated[
        int | None, typer.Option("-n", "--n", min=1, max=400, help="How many, evenly spread.", show_default="40")
    ] = None,
    force: Force = False,
) -> None:
    """Show pictures of a folder or file on one sheet, as they are read; or say what a model is of."""
    from anyfill.checks import refuse_given
    from anyfill.disk import require_writable
    from anyfill.images.model import SHIPPED
    from anyfill.images.picture import SUFFIXES, read_picture, require_png
    from anyfill.images.reading import read_pictures
    from anyfill.images.sheets import gallery
    from anyfill.interface.output import require_new, say_remarks
    from anyfill.training.checkpoint import is_model

    if output is not None:
        require_png(output)
        require_new(output, force=force)
        require_writable(output.parent)
    place = Path(source)
    if (source in SHIPPED and not place.exists()) or is_model(place):
        refuse_given("for a model, which is described in words", {"--output": output, "--n": n})
        typer.echo(repr(_loaded(source)))
        return
    if output is None:
        refuse_given("without --output, the sheet that they go to", {"--n": n})
    if place.is_file() and place.suffix.lower() in SUFFIXES:
        refuse_given("for one PICTURE", {"--n": n})
        one = read_picture(source)
        pictures, said, remarks = [one], repr(one), one.remarks
    else:
        many = read_pictures(source)
        count = min(n or 40, len(many))
        numbers = [place * len(many) // count for place in range(count)]
        pictures, said, remarks = [many[number] for number in numbers], repr(many), many.remarks
    say_remarks(remarks)
    typer.echo(said)
    if output is not None:
        gallery(pictures).save(output)
        typer.echo(f"wrote {output}")


def _loaded(name: str) -> Any:
    """The model of a name as it was said: of ``digits`` and ./digits, which are one as a ``Path``, the one ships."""
    from anyfill.images.model import load

    _say_if_shadowed(name)
    return load(name)


def _say_if_shadowed(name: str | None) -> None:
    """Say which of two models is taken where one that ships is named and a folder of a model is called the same."""
    from anyfill.images.model import SHIPPED
    from anyfill.interface.output import say_remarks
    from anyfill.training.checkpoint import is_model

    if name in SHIPPED and is_model(name):
        say_remarks([f"{name} is the model that ships with anyfill; the one in the folder here is ./{name}"])


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)


def register(app: typer.Typer) -> None:
    """Add ``image`` and its commands to the application."""
    own = add_commands(new_group(), fill, score, generate, train, show)
    app.add_typer(own, name="image", help="Pictures: fill what is erased, score, draw new ones, train.")
