"""Our one-pass model of chorales, and the verbs by which it is asked: the one that ships, or one of your own.

Variables are read step by step, soprano first (``anyfill.music.chorale``). Cells know their voice and their place in
the bar (``periods``), and how far they lie from each other in time (rotary positions), but not where in the piece they
are: the same weights serve any length. Questions are random subsets, and the rectangles that people ask for.
"""

from importlib import resources
from pathlib import Path
from typing import Unpack

import torch

from anyfill.checks import refuse
from anyfill.interface.options import chosen_seed
from anyfill.interface.threads import threads
from anyfill.likelihoods import Categorical
from anyfill.model import Model
from anyfill.music.chorale import BAR, CODES
from anyfill.music.files import Music, read
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import Options, Progress, SamplingOptions, Search
from anyfill.music.score import VOICES
from anyfill.music.scoring import Scored, score_piece
from anyfill.networks.embed import Discrete
from anyfill.networks.one_pass import OnePassTransformer
from anyfill.objectives.one_pass import OnePassLoss
from anyfill.questions.mixture import Mixture
from anyfill.questions.order import Increasing
from anyfill.questions.regions import Regions
from anyfill.questions.subsets import UniformSplits
from anyfill.training import load_model

SHIPPED = "models/bach"
"""Where the package keeps its own model."""


def one_pass_chorale_model(
    steps: int = 128, *, width: int = 256, depth: int = 8, heads: int = 8, dropout: float = 0.2, seed: int = 0
) -> Model:
    """An untrained model of (4, steps); about 6.4 M parameters by default."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = OnePassTransformer(
            Discrete(CODES),
            (steps, len(VOICES)),
            CODES,
            width=width,
            depth=depth,
            heads=heads,
            dropout=dropout,
            periods=(BAR, len(VOICES)),
        )
    return Model(network, Categorical(CODES), order=Increasing())


def one_pass_chorale(steps: int = 128, *, joint_share: float = 0.4) -> OnePassLoss:
    """Random subsets and rectangles in equal parts; ``joint_share`` of the rows are read from first to last."""
    voices = len(VOICES)
    questions = Mixture((UniformSplits(steps * voices), Regions(steps, voices)))
    return OnePassLoss(questions, Increasing(), joint_share)


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
        as_drawn      keep pieces that hardly move (``generate`` draws them again), or are like another one

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
        self, *, bars: int = 8, key: str | None = None, seed: int | None = None, **options: Unpack[Options]
    ) -> list[Piece]:
        """New chorales.

        Args:
            bars: their length, in 4/4. Up to 8 bars are one draw; longer ones go on four bars at a time.
            key: as "D minor": pieces are drawn until enough are in its mode, and transposed; by default each is moved
                to the nearest common key.
            seed, options: see the class.
        """
        return self._draw(Request.generate(bars, key), seed, options)

    def harmonise(
        self, tune: Music, *, voice: str = "soprano", seed: int | None = None, **options: Unpack[Options]
    ) -> list[Piece]:
        """A tune in four parts, in several ways; the tune itself is never changed.

        Args:
            tune: music with one part, or with a part for the voice. Out of the range of its voice it is moved into it
                for the model, and everything is moved back.
            voice: which one the tune is.
            seed, options: see the class.
        """
        return self._draw(Request.harmonise(tune, voice), seed, options)

    def fill(
        self, piece: Music, *, ask: str | None = None, seed: int | None = None, **options: Unpack[Options]
    ) -> list[Piece]:
        """A piece with some voices and bars written anew, in several ways; all else is locked.

        Args:
            piece: what is kept of it is given to the model and never changed.
            ask: what to write, as "alto 3-6, tenor 5" or "all 3-4": bars from 1, a pickup is 0, a voice alone means
                all its bars. By default the voices that the piece does not have.
            seed, options: see the class.
        """
        return self._draw(Request.fill(piece, ask), seed, options)

    def _draw(self, request: Request, seed: int | None, options: Options) -> list[Piece]:
        return [*self.search(request, SamplingOptions(seed=chosen_seed(seed), **options)).pieces()]

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
