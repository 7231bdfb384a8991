"""Pictures: fill what is erased, score, draw new ones, train; every answer from one model, with exact probabilities.

    >>> from anyfill import images
    >>> model = images.load("digits")  # or "fashion"; images.train(folder, output) makes your own
    >>> fills = model.fill("four.png", "bottom", n=4, seed=0)  # doctest: +SKIP
    >>> fills[0].save("filled.png")  # doctest: +SKIP
    >>> model.score("four.png").bits_per_dimension  # doctest: +SKIP
    >>> model.sample(8)  # doctest: +SKIP
    >>> model.surprise("four.png")  # a heat map  # doctest: +SKIP

Pictures are files, images of Pillow, arrays or tensors, of any size. ``trace`` has the steps of a fill one by one.
"""

from typing import TYPE_CHECKING

from anyfill.lazy import lazily

if TYPE_CHECKING:
    from anyfill.images.filling import Fills, Frame
    from anyfill.images.model import ImageModel, load
    from anyfill.images.picture import Picture, read_picture
    from anyfill.images.reading import Pictures, read_pictures
    from anyfill.images.scoring import Score
    from anyfill.images.training import train

__all__ = [
    "Fills",
    "Frame",
    "ImageModel",
    "Picture",
    "Pictures",
    "Score",
    "load",
    "read_picture",
    "read_pictures",
    "train",
]

_HOME = {
    "Fills": "filling",
    "Frame": "filling",
    "ImageModel": "model",
    "Picture": "picture",
    "Pictures": "reading",
    "Score": "scoring",
    "load": "model",
    "read_picture": "picture",
    "read_pictures": "reading",
    "train": "training",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
