"""A model of chorales to be asked: the one that ships with anyfill, or one of your own (``anyfill music train``)."""

from importlib import resources
from pathlib import Path

from anyfill.checks import refuse
from anyfill.interface.options import chosen_seed
from anyfill.interface.threads import threads
from anyfill.model import Model
from anyfill.music.files import Music, read
from anyfill.music.quantise import Piece
from anyfill.music.request import Request
from anyfill.music.sample import Progress, SamplingOptions, Search
from anyfill.music.score import VOICES
from anyfill.music.scoring import Scored, score_piece
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.training import load_model

SHIPPED = "models/bach"
"""Where the package keeps its own model."""


class ChoraleModel:
    """A model of four-part music: writes, harmonises, fills and scores.

    Music is the name of a file (MIDI, MusicXML, "jsb.json:valid:3"), a name in music21's corpus ("bwv66.6"), a
    ``Piece``, a ``Score`` or a ``Chorale``. Every verb that draws has these options (``SamplingOptions``):

        n             how many alternatives
        seed          of everything random; a new one by default, which every piece has as its ``seed``
        best          draw so many times as many and keep the best by the grade
        temperature   below 1 is safer, above 1 bolder
        nucleus       draw from the likeliest pitches of this mass; 1 = from all
        parallels     allow parallel fifths and octaves

    Fewer than ``n`` pieces come only where the model's answers are so often the same that no more were found.

    Attributes:
        model: p(asked | given) over cells of the grid (``anyfill.music.chorale``).
        name: where it came from.
    """

    def __init__(self, model: Model, name: str = "a model") -> None:
        self.model, self.name = model, name

    def __repr__(self) -> str:
        weights = sum(one.numel() for one in self.model.parameters()) / 1e6
        return f"<ChoraleModel: {self.name}, {weights:.1f} million weights; generate, harmonise, fill, score>"

    def generate(
        self,
        *,
        bars: int = 8,
        n: int = 4,
        key: str | None = None,
        seed: int | None = None,
        best: int = 1,
        temperature: float = 1.0,
        nucleus: float = 0.95,
        parallels: bool = False,
        as_drawn: bool = False,
    ) -> list[Piece]:
        """New chorales.

        Args:
            bars: their length, in 4/4. Up to 8 bars are one draw; longer ones go on four bars at a time.
            n, seed, best, temperature, nucleus, parallels: see the class.
            key: as "D minor": pieces are drawn until enough are in its mode, and transposed; by default each is moved
                to the nearest common key.
            as_drawn: keep pieces that hardly move, or are like another one.
        """
        options = SamplingOptions(n, chosen_seed(seed), best, temperature, nucleus, parallels, as_drawn)
        return [*self.search(Request.generate(bars, key), options).pieces()]

    def harmonise(
        self,
        tune: Music,
        *,
        voice: str = "soprano",
        n: int = 4,
        seed: int | None = None,
        best: int = 1,
        temperature: float = 1.0,
        nucleus: float = 0.95,
        parallels: bool = False,
    ) -> list[Piece]:
        """A tune in four parts, in several ways; the tune itself is never changed.

        Args:
            tune: music with one part, or with a part for the voice. Out of the range of its voice it is moved into it
                for the model, and everything is moved back.
            voice: which one the tune is.
            n, seed, best, temperature, nucleus, parallels: see the class.
        """
        options = SamplingOptions(n, chosen_seed(seed), best, temperature, nucleus, parallels)
        return [*self.search(Request.harmonise(tune, voice), options).pieces()]

    def fill(
        self,
        piece: Music,
        *,
        ask: str | None = None,
        n: int = 4,
        seed: int | None = None,
        best: int = 1,
        temperature: float = 1.0,
        nucleus: float = 0.95,
        parallels: bool = False,
    ) -> list[Piece]:
        """A piece with some voices and bars written anew, in several ways; all else is locked.

        Args:
            piece: what is kept of it is given to the model and never changed.
            ask: what to write, as "alto 3-6, tenor 5" or "all 3-4": bars from 1, a pickup is 0, a voice alone means
                all its bars. By default the voices that the piece does not have.
            n, seed, best, temperature, nucleus, parallels: see the class.
        """
        options = SamplingOptions(n, chosen_seed(seed), best, temperature, nucleus, parallels)
        return [*self.search(Request.fill(piece, ask), options).pieces()]

    def score(self, piece: Music) -> Scored:
        """How likely a piece is under the model's own law, exactly, and where it surprises."""
        with threads(1):
            return score_piece(self.model, read(piece))

    def search(self, request: Request, options: SamplingOptions, *, progress: Progress | None = None) -> Search:
        """What the verbs draw their pieces from, for those who want each piece when it is done."""
        return Search(self.model, request, options, progress)


def load(folder: str | Path | None = None) -> ChoraleModel:
    """A model of four-part music, ready to be asked.

    Args:
        folder: made by ``anyfill music train``; None = the model that ships with anyfill.
    """
    return ChoraleModel(load_network(folder), "the model that ships with anyfill" if folder is None else str(folder))


def load_network(folder: str | Path | None = None) -> Model:
    """The model inside, with 32-bit weights."""
    if folder is not None:
        return _of_chorales(load_model(folder).float(), str(folder))
    with resources.as_file(resources.files("anyfill").joinpath(SHIPPED)) as shipped:
        if not (shipped / "config.json").is_file():
            expected = "the folder of a model (this anyfill comes without one of its own)"
            raise refuse("--model", expected=expected, got="none")
        return _of_chorales(load_model(shipped).float(), "the model that ships with anyfill")


def _of_chorales(model: Model, name: str) -> Model:
    network = model.network
    if not isinstance(network, OnePassTransformer) or network.shape[1:] != (len(VOICES),) or not network.periods:
        raise refuse(name, expected="a model of four-part music (anyfill music train)", got="a model of something else")
    if not model.factorizations:
        raise refuse(name, expected="a trained model", got="one that was never trained")
    return model
