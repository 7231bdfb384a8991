"""What a model of pictures is of; kept in its notes."""

from dataclasses import dataclass

NOTES = "images"
"""Under which a saved model keeps it."""


@dataclass(frozen=True, slots=True)
class About:
    """What a model is of; kept in its notes.

    Attributes:
        height, width, channels: of its pictures.
        levels: of a channel, 2 to 256.
        binary: how two levels were made of 256: "threshold", "dynamic" or "static".
        border: mean level, 0 to 255, along the edge of the pictures it was trained on.
    """

    height: int
    width: int
    channels: int
    levels: int
    binary: str | None = None
    border: float = 128.0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    @property
    def dimensions(self) -> int:
        """N."""
        return self.height * self.width * self.channels

    def __str__(self) -> str:
        colours = "grey" if self.channels == 1 else "colour"
        depth = f"black and white ({self.binary})" if self.levels == 2 else f"{colours}, {self.levels} levels"
        return f"{self.width}x{self.height}, {depth}"
