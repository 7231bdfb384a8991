"""Models are loaded once, when they are first asked for, and stay warm.

Those that ship are there by name; ``--model DIR`` adds the model in a folder, or all models in its subfolders. A page
chooses among these by key: it never names a folder.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from anyfill.checks import refuse
from anyfill.interface.progress import check_cancelled
from anyfill.studio.passes import count_passes

Room = Literal["text", "music", "table", "images", "translation"]
LOOK = 0.1
"""Seconds between two looks, while a model is loaded, whether it is still wanted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A model that can be chosen.

    Attributes:
        key: by which it is chosen.
        room: what it is a model of.
        name: what people call it.
        folder: where it is; None = it ships with anyfill.
    """

    key: str
    room: Room
    name: str
    folder: Path | None = None

    @property
    def place(self) -> str:
        """Its folder, never a bare word, which may be the name of a model that ships; or the name of one that does."""
        if self.folder is None:
            return self.key
        return f"./{self.folder}" if len(self.folder.parts) == 1 else f"{self.folder}"

    @property
    def option(self) -> str:
        """How the command line is told of it."""
        return f" --model {self.place}" if self._is_named else ""

    @property
    def argument(self) -> str:
        """How ``load`` is told of it."""
        return f'"{self.place}"' if self._is_named else ""

    @property
    def _is_named(self) -> bool:
        """Whether it must be named: no model of its room ships before it."""
        return self.folder is not None or self.key in ("text8", "en-de")


class Models:
    """The models of a studio."""

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        own = [entry for folder in folders for entry in entries_of(folder)]
        self.entries: tuple[Entry, ...] = (*_shipped(), *own)
        self._loading: dict[tuple[Room, str], Future[Any]] = {}
        self._lock = threading.Lock()

    def of(self, room: Room) -> list[Entry]:
        """Those of one room."""
        return [entry for entry in self.entries if entry.room == room]

    def entry(self, room: Room, key: str = "") -> Entry:
        """The one of this key; by default the first; ValueError if there is none."""
        found = next((entry for entry in self.of(room) if entry.key == key or not key), None)
        if found is None:
            there = ", ".join(entry.key for entry in self.of(room)) or "none (see: anyfill studio --model DIR)"
            raise refuse("model", expected=f"one of: {there}", got=repr(key))
        return found

    def get(self, room: Room, key: str = "") -> Any:
        """The model, loaded if it is not yet; whoever asks meanwhile waits for the same one.

        A job that is cancelled while it waits ends at once; the model is loaded nevertheless, for the next one.
        """
        entry = self.entry(room, key)
        with self._lock:
            loading = self._loading.get((room, entry.key))
            if loading is None:
                loading = self._loading[room, entry.key] = Future()
                threading.Thread(target=self._load, args=(entry, loading), daemon=True, name="studio-load").start()
        while not wait([loading], LOOK).done:
            check_cancelled()
        return loading.result()

    def _load(self, entry: Entry, loading: "Future[Any]") -> None:
        try:
            loading.set_result(load(entry))
        except BaseException as error:
            with self._lock:
                del self._loading[entry.room, entry.key]  # the next one tries again
            loading.set_exception(error)

    def warm(self, free: Callable[[], bool] = lambda: True) -> None:
        """Load those that ship, each when hands are ``free``: whoever comes next need not wait."""
        for entry in _shipped():
            while not free():
                time.sleep(0.1)
            self.get(entry.room, entry.key)


def load(entry: Entry) -> Any:
    """The model of an entry, by the face of its room, its network counting its passes."""
    if entry.room == "text":
        from anyfill import text

        model: Any = text.load(entry.key if entry.folder is None else entry.folder)
    elif entry.room == "music":
        from anyfill import music

        model = music.load(entry.folder)
    elif entry.room == "table":
        from anyfill.tables.file_model import FileModel

        loaded = FileModel.load(entry.folder or "")
        count_passes(loaded.model.model_.network)
        return loaded
    elif entry.room == "images":
        from anyfill import images

        model = images.load(entry.key if entry.folder is None else entry.folder)
    else:
        from anyfill import translation

        translator = translation.load(entry.folder or entry.key)
        count_passes(translator.decoder.model.network)
        return translator
    count_passes(model.model.network)
    return model


def entries_of(folder: Path) -> list[Entry]:
    """The model in a folder, or those in its subfolders; ValueError if there is none."""
    inside = sorted(one.parent for one in folder.glob("*/config.json"))
    places = [folder] if (folder / "config.json").is_file() else inside
    found = [Entry(f"own-{place.name}", _room(place), place.name, place) for place in places]
    if not found:
        raise refuse(f"--model {folder}", expected="the folder of a model, or a folder of such", got="neither")
    return found


def _room(folder: Path) -> Room:
    """What a model is of, by the notes that are kept with it."""
    from anyfill.training import load_notes

    notes = load_notes(folder)
    if notes.get("made_by") == "anyfill.TableModel":
        return "table"
    named: list[tuple[str, Room]] = [("images", "images"), ("translation", "translation"), ("vocabulary", "text")]
    for note, room in named:
        if note in notes:
            return room
    return "music"


def _shipped() -> list[Entry]:
    homes: tuple[tuple[Room, str, str], ...] = (
        ("text", "english", "Everyday English"),
        ("text", "text8", "English, 27 letters (text8)"),
        ("music", "bach", "Bach's chorales"),
        ("images", "digits", "Handwritten digits"),
        ("images", "fashion", "Fashion"),
        ("translation", "de-en", "German to English"),
        ("translation", "en-de", "English to German"),
    )
    base = resources.files("anyfill").joinpath("models")

    def home(room: Room, key: str) -> str:
        return f"translation-{key}" if room == "translation" else key

    return [
        Entry(key, room, name) for room, key, name in homes if base.joinpath(home(room, key), "config.json").is_file()
    ]
