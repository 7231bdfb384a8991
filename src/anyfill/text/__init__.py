"""Text: fill blanks, write, score, train; every answer from one model, with exact probabilities.

    >>> from anyfill import text
    >>> model = text.load("text8")  # text.load() is everyday English; text.train(files, folder) makes your own
    >>> fills = model.fill("the l_st king of france", n=2)
    >>> fills[0].text
    'the last king of france'
    >>> fills[0].answers, round(fills[0].share, 2)
    (('a',), 0.98)
    >>> score = model.score("the quick brown fox")
    >>> round(score.bits_per_character, 2)
    2.47
    >>> [len(one) for one in model.generate(n=2, length=20, prompt="the moon ", seed=0)]
    [29, 29]

Whatever else is here is importable and not advertised: vocabularies, corpora larger than memory, recipes by name and
size (``anyfill.text.recipes``), BLEU and other metrics (``anyfill.text.metrics``).
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.text.counting import count
    from anyfill.text.doubts import check
    from anyfill.text.fills import Fill, Fills
    from anyfill.text.gaps import restore
    from anyfill.text.model import TextModel, load
    from anyfill.text.report import Score
    from anyfill.text.training import train

__all__ = ["Fill", "Fills", "Score", "TextModel", "check", "count", "load", "restore", "train"]

_HOME = {
    **{"Fill": "fills", "Fills": "fills", "Score": "report"},
    **{"TextModel": "model", "load": "model", "train": "training"},
    **{"check": "doubts", "count": "counting", "restore": "gaps"},
}

__getattr__, __dir__ = lazily(__name__, _HOME)
