"""What is asked about chorales, by the verbs of ``anyfill.music``.

Regions that are whole bars are asked for in the words of ``--ask``, so that answers are those of the command line for
the same seed; others, note by note, are put into the same kind of request.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyfill import music
from anyfill.interface.output import jsonable
from anyfill.interface.progress import metered
from anyfill.music.ask import cells_of
from anyfill.music.request import Request, whole_notes
from anyfill.music.sample import SamplingOptions
from anyfill.studio.chorale_form import MAX_TITLE, TEMPOS, Region, WirePiece
from anyfill.studio.chorale_wire import cells_of_regions, piece_of, require_room, score_of, wire_of, words_of
from anyfill.studio.how import arguments, options, spending
from anyfill.studio.models import Models

if TYPE_CHECKING:
    from anyfill.studio.chorale_routes import Draw
    from anyfill.studio.jobs import Job

FILE = "piece.musicxml"
"""What the piece is called in lines that give the same answer elsewhere."""


def alternatives(models: Models, asked: "Draw", job: "Job") -> dict[str, Any]:
    """Draw alternatives, and send each as soon as it is certain."""
    entry, model = models.entry("music", asked.model), models.get("music", asked.model)
    request, python, command, about = _request(asked)
    drawing = SamplingOptions(n=asked.n, seed=asked.seed or 0, temperature=asked.temperature)
    with spending() as spent:
        search = model.search(request, drawing, progress=metered)
        found = 0
        for piece in search.pieces():
            found += 1
            job.send("piece", jsonable({**wire_of(piece), "number": found, "seed": asked.seed}))
        draw = (("key", asked.key, None), ("temperature", asked.temperature, 1.0))
        how = spent.how(
            given=about["given"],
            asked=about["asked"],
            kind="exact",
            why="draws from the model's law, less unlikely pitches and parallel fifths and octaves, "
            f"{found} different ones of {search.tally.drawn}",
            python=f"music.load({entry.argument}).{python}, n={asked.n}, seed={asked.seed}{arguments(draw)})",
            cli=f"anyfill music {command} -n {asked.n} --seed {asked.seed}{options(draw)}{entry.option}",
        )
    return {"found": found, "seed": asked.seed, "remarks": search.tally.lines(drawing), "how": how}


def surprises(models: Models, wire: WirePiece, key: str) -> dict[str, Any]:
    """Nats of every note given all before it."""
    entry, model = models.entry("music", key), models.get("music", key)
    with spending() as spent:
        scored = model.score(piece_of(wire))
        how = spent.how(
            given="of each note all that comes before it",
            asked="every note and rest",
            kind=scored.kind,
            why="the chain rule: surprises sum to -log p of the piece",
            python=f'music.load({entry.argument}).score("{FILE}")',
            cli=f"anyfill music score {FILE}{entry.option}",
        )
    notes = [
        {"voice": note.voice, "start": note.step, "length": note.steps, "note": note.note, "nats": note.nats}
        for note in scored.notes()
    ]
    return jsonable({"notes": notes, "log_likelihood": scored.total, "how": how})


def named_regions(wire: WirePiece, ask: str) -> list[Region]:
    """The cells that words name, as regions."""
    try:
        cells = cells_of(ask, piece_of(wire).chorale)
    except ValueError as error:
        raise ValueError(str(error).removeprefix("--ask ")) from error  # a page has no options
    found: list[Region] = []
    for voice, own in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], own, [False]]).astype(np.int8))).tolist()
        found += [Region(voice=voice, start=start, stop=stop) for start, stop in zip(edges[::2], edges[1::2])]
    return found


def engraved(wire: WirePiece) -> list[str]:
    """The score as pages of SVG, by verovio."""
    from anyfill.music.saving import notation_pages

    return notation_pages(piece_of(wire))


def exported(wire: WirePiece, path: Path) -> bytes:
    """The bytes of a file that ``path`` says the kind of; the file itself does not stay."""
    try:
        piece_of(wire).save(path)
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


def imported(path: Path, name: str) -> dict[str, Any]:
    """The piece in a file, as far as a page can have it, with remarks; refused where it cannot."""
    try:
        piece = music.read(path)
    except ValueError as error:
        raise ValueError(str(error).replace(str(path), name)) from None
    require_room(f"file {name}", steps=piece.chorale.steps, bar=piece.chorale.bar)
    wire, remarks = wire_of(piece), list(piece.remarks)
    tempo = min(max(wire["tempo"], TEMPOS[0]), TEMPOS[1])
    if tempo != wire["tempo"]:
        remarks.append(f"a tempo of {wire['tempo']:g} quarters a minute: taken as {tempo:g}")
    title = (wire["title"] or Path(name).stem)[:MAX_TITLE]
    return jsonable({**wire, "tempo": tempo, "title": title, "remarks": remarks})


def _request(asked: "Draw") -> tuple[Request, str, str, dict[str, str]]:
    """What is asked, the beginnings of the lines of Python and of the command line, and both in words."""
    if asked.verb == "generate":
        about = {"given": "nothing", "asked": f"four voices, {asked.bars} bars"}
        request = Request.generate(asked.bars, asked.key)
        return request, f"generate(bars={asked.bars}", f"generate --bars {asked.bars}", about
    if asked.piece is None:
        raise ValueError("piece: expected one to begin with, got none")
    ways: dict[str, Callable[[Draw, WirePiece], tuple[Request, str, str, dict[str, str]]]] = {
        "harmonise": _harmonise,
        "rewrite": _rewrite,
        "continue": _continue,
        "vary": _vary,
    }
    return ways[asked.verb](asked, asked.piece)


def _harmonise(asked: "Draw", wire: WirePiece) -> tuple[Request, str, str, dict[str, str]]:
    voice = "" if asked.voice == "soprano" else f', voice="{asked.voice}"'
    flag = "" if asked.voice == "soprano" else f" --voice {asked.voice}"
    about = {"given": f"the {asked.voice}", "asked": "the three other voices"}
    request = Request.harmonise(score_of(wire), asked.voice, key=asked.key)
    return request, f'harmonise("{FILE}"{voice}', f"harmonise {FILE}{flag}", about


def _rewrite(asked: "Draw", wire: WirePiece) -> tuple[Request, str, str, dict[str, str]]:
    piece = piece_of(wire)
    cells = cells_of_regions(asked.asked, piece.chorale.steps)
    if not cells.any():
        raise ValueError("region: expected something painted away, got nothing")
    words = words_of(cells, piece.chorale)
    about = {"given": "all that is not painted away", "asked": words or f"{int(cells.sum())} cells, note by note"}
    if words is not None:
        request = Request.fill(piece, words, key=asked.key)
        return request, f'fill("{FILE}", ask="{words}"', f'fill {FILE} --ask "{words}"', about
    request = _of_cells(Request.fill(piece, "all", key=asked.key), cells)
    return request, f'fill("{FILE}", ask="…"', f'fill {FILE} --ask "…"', about


def _of_cells(request: Request, cells: NDArray[np.bool_]) -> Request:
    """The request for these cells (4, T) alone; a note that goes on beyond them is locked as a whole."""
    asked = whole_notes(request.piece, cells)
    if not asked.any():
        raise ValueError("region: expected whole notes, got only parts of notes that go on beyond it")
    return replace(request, given=request.piece.present & ~asked, asked=asked)


def _continue(asked: "Draw", wire: WirePiece) -> tuple[Request, str, str, dict[str, str]]:
    about = {"given": "the whole piece", "asked": f"{asked.bars} bars more"}
    request = Request.go_on(piece_of(wire), asked.bars, key=asked.key)
    require_room("piece with so many bars more", steps=request.piece.chorale.steps, bar=wire.bar)
    return request, f'continue_("{FILE}", bars={asked.bars}', f"continue {FILE} --bars {asked.bars}", about


def _vary(asked: "Draw", wire: WirePiece) -> tuple[Request, str, str, dict[str, str]]:
    piece = piece_of(wire)
    cells = cells_of_regions(asked.asked, piece.chorale.steps)
    words = words_of(cells, piece.chorale) if cells.any() and not cells.all() else None
    parted = words is None and bool(cells.any()) and not bool(cells.all())  # smaller than bars: no words name it
    some = f"{int(cells.sum())} cells, note by note" if parted else "a piece like it"
    about = {"given": "the piece as a beginning; what is locked", "asked": words or some}
    request = Request.vary(piece, asked.amount, words, key=asked.key)
    if parted:
        request = _of_cells(request, cells & piece.present)
    named = "…" if parted else words
    ask, flag = (f', ask="{named}"', f' --ask "{named}"') if named else ("", "")
    said = f'vary("{FILE}", amount={asked.amount}{ask}'
    return request, said, f"vary {FILE} --amount {asked.amount}{flag}", about
