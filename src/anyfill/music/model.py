"""Our one-pass model of chorales, and the verbs by which it is asked: the one that ships, or one of your own.

Variables are read step by step, soprano first (``anyfill.music.chorale``). Questions are random subsets, and the
rectangles that people ask for. There are two kinds:

    grid     58 codes, pitches only. Cells know their voice, their place in a bar of 4/4 (``periods``) and how far they
             lie from each other in time (rotary positions), but not where in the piece they are. Windows of 8 bars.
    onsets   115 codes: a cell says pitch, and whether the note begins. The metre, fermatas, the key and the distance to
             the end are told beside the notes (``anyfill.music.form``). Windows of 24 bars.

The same weights serve any length.
"""

from importlib import resources
from pathlib import Path
from typing import Any, Unpack

from anyfill.checks import refuse
from anyfill.interface.options import chosen_seed
from anyfill.interface.threads import threads
from anyfill.likelihoods import Categorical
from anyfill.model import Model, seeded
from anyfill.music.chorale import BAR, CODES, ONSET_CODES
from anyfill.music.files import Music, read
from anyfill.music.form import FEATURES
from anyfill.music.piece import Piece
from anyfill.music.request import Request
from anyfill.music.sample import Options, SamplingOptions
from anyfill.music.score import VOICES
from anyfill.music.scoring import Scored, score_piece
from anyfill.music.search import Progress, Search
from anyfill.music.windows import LONG_WINDOW, has_onsets
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
    steps: int = 128, *, width: int = 256, depth: int = 8, heads: int = 8, dropout: float = 0.2,
    value_dropout: float = 0.0, seed: int = 0,
) -> Model:  # fmt: skip
    """An untrained model of (4, steps); about 6.4 M parameters by default."""
    sizes = {"width": width, "depth": depth, "heads": heads, "dropout": dropout, "value_dropout": value_dropout}
    return _untrained(CODES, steps, seed, periods=(BAR, len(VOICES)), **sizes)


def onset_chorale_model(
    steps: int = LONG_WINDOW, *, width: int = 256, depth: int = 8, heads: int = 8, dropout: float = 0.3,
    value_dropout: float = 0.0, seed: int = 0,
) -> Model:  # fmt: skip
    """An untrained model of (4, steps) with onsets that is told the form of a piece; about 6.4 M parameters."""
    sizes = {"width": width, "depth": depth, "heads": heads, "dropout": dropout, "value_dropout": value_dropout}
    periods = (1, len(VOICES))  # the place in the bar is told
    return _untrained(ONSET_CODES, steps, seed, periods=periods, context_width=FEATURES, **sizes)


def _untrained(codes: int, steps: int, seed: int, **options: Any) -> Model:
    """A model of (4, steps) cells of so many codes; options as of ``OnePassTransformer``."""
    with seeded(seed):
        network = OnePassTransformer(Discrete(codes), (steps, len(VOICES)), codes, **options)
    return Model(network, Categorical(codes), order=Increasing())


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
        as_drawn      keep pieces that hardly move or do not end (``generate`` draws them again) or are like another
        held          leave notes as long as a model without onsets holds them (``anyfill.music.strikes``)

    Options of several verbs: ``key``, as "D minor", in place of the one that the file states (all alternatives share
    one key); ``ending``, "tonic", "half" or "open", by default as the given notes allow.

    Fewer than ``n`` pieces come only where the model's answers are so often the same that no more were found.

    Attributes:
        model: p(asked | given) over cells of the grid (``anyfill.music.chorale``).
        name: where it came from.
    """

    def __init__(self, model: Model, name: str = "a model") -> None:
        self.model, self.name = model, name

    def __repr__(self) -> str:
        weights = sum(one.numel() for one in self.model.parameters()) / 1e6
        verbs = "generate, harmonise, fill, continue_, vary, score"
        return f"<ChoraleModel: {self.name}, {weights:.1f} million weights; {verbs}>"

    @property
    def onsets(self) -> bool:
        """Whether it knows where notes begin."""
        return has_onsets(self.model)

    def generate(
        self, *, bars: int = 8, key: str | None = None, ending: str | None = None, seed: int | None = None,
        **options: Unpack[Options],
    ) -> list[Piece]:  # fmt: skip
        """New chorales.

        Args:
            bars: their length, in 4/4. What fits a window (24 bars; 8 without onsets) is one draw; longer ones go on.
            key: as "D minor": pieces are drawn until enough are in its mode, and transposed; by default each is moved
                to the nearest common key.
            ending: "tonic" by default; "half" or "open".
            seed, options: see the class.
        """
        return self._draw(Request.generate(bars, key, ending), seed, options)

    def harmonise(
        self, music: Music, *, voice: str = "soprano", tune: str | None = None, key: str | None = None,
        ending: str | None = None, others: str = "drop", seed: int | None = None, **options: Unpack[Options],
    ) -> list[Piece]:  # fmt: skip
        """A tune in four parts, in several ways; the tune itself is never changed.

        Args:
            music: with a tune in it. Out of the range of its voice it is moved into it for the model, and everything is
                moved back.
            voice: which one the tune is.
            tune: which part of the music it is: "top", "track 2", "channel 1", "part 3", or a name; None = there is one
                part only, or one for the voice.
            key, ending: see the class.
            others: "drop" leaves the other parts of a file out of the result, "keep" keeps them beside the harmony.
            seed, options: see the class.
        """
        request = Request.harmonise(music, voice, choose=tune, key=key, ending=ending, others=others)
        return self._draw(request, seed, options)

    def fill(
        self, piece: Music, *, ask: str | None = None, key: str | None = None, ending: str | None = None,
        seed: int | None = None, **options: Unpack[Options],
    ) -> list[Piece]:  # fmt: skip
        """A piece with some voices and bars written anew, in several ways; all else is locked.

        Args:
            piece: what is kept of it is given to the model and never changed.
            ask: what to write, as "alto 3-6, tenor 5" or "all 3-4": bars from 1, a pickup is 0, a voice alone means
                all its bars. By default the voices that the piece does not have.
            key, ending: see the class; by default an ending is left as it comes.
            seed, options: see the class.
        """
        return self._draw(Request.fill(piece, ask, key=key, ending=ending), seed, options)

    def continue_(
        self, piece: Music, *, bars: int = 4, key: str | None = None, ending: str | None = None,
        seed: int | None = None, **options: Unpack[Options],
    ) -> list[Piece]:  # fmt: skip
        """A piece with so many bars more behind its end, in several ways; what was there is never changed.

        Args:
            piece: of any number of voices; all four go on.
            bars: how many more; an unfinished last bar is finished first.
            key, ending: see the class.
            seed, options: see the class.
        """
        return self._draw(Request.go_on(piece, bars, key=key, ending=ending), seed, options)

    def vary(
        self, piece: Music, *, amount: float = 0.3, ask: str | None = None, key: str | None = None,
        seed: int | None = None, **options: Unpack[Options],
    ) -> list[Piece]:  # fmt: skip
        """Variations of a piece: SUNMASK's chain, begun with the piece.

        Args:
            piece: what is varied.
            amount: 0 changes nothing, 1 may change all.
            ask: vary these voices and bars only (see ``fill``).
            key: see the class.
            seed, options: see the class.
        """
        return self._draw(Request.vary(piece, amount, ask, key=key), seed, options)

    def _draw(self, request: Request, seed: int | None, options: Options) -> list[Piece]:
        return [*self.search(request, SamplingOptions(seed=chosen_seed(seed), **options)).pieces()]

    def score(self, piece: Music) -> Scored:
        """How likely a piece is under the model's own law, exactly, and where it surprises."""
        with threads(1):
            return score_piece(self.model, read(piece))

    def search(self, request: Request, options: SamplingOptions, *, progress: Progress | None = None) -> Search:
        """What the verbs draw their pieces from, for those who want each piece when it is done."""
        if options.held and (self.onsets or request.amount is not None):
            got = "variations" if request.amount is not None else "a model with onsets"
            raise refuse("--held", expected="new notes of a model without onsets: only those are struck again", got=got)
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
