"""Five hundred small pictures of our own making, to train on: hills under a sky with a sun or a moon, 16 x 16, colour.

    python -m experiments.sfarm.own_pictures FOLDER [--count 500]
    anyfill image train FOLDER -o MODEL

Each is drawn by a law written down here: day or night, a sun or a moon somewhere in the sky, one or two hills with a
smooth outline whose green depends on the hour, and a little noise.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

SIDE = 16


def landscape(draw: np.random.Generator) -> np.ndarray:
    """uint8 (16, 16, 3)."""
    day = draw.random() < 0.6
    top, bottom = ((90, 150, 235), (190, 215, 245)) if day else ((10, 12, 45), (45, 40, 90))
    height = np.linspace(0, 1, SIDE)[:, None, None]
    picture = np.broadcast_to((1 - height) * np.array(top) + height * np.array(bottom), (SIDE, SIDE, 3)).copy()
    row, column = np.mgrid[:SIDE, :SIDE]
    y, x, radius = draw.uniform(2, 6), draw.uniform(2, SIDE - 3), draw.uniform(1.2, 2.4)
    picture[(row - y) ** 2 + (column - x) ** 2 <= radius**2] = (250, 220, 80) if day else (230, 230, 215)
    for depth in range(draw.integers(1, 3)):
        base, swing, phase = draw.uniform(8, 12) + 2 * depth, draw.uniform(0.5, 2.5), draw.uniform(0, 6)
        outline = base + swing * np.sin(np.arange(SIDE) / draw.uniform(2.5, 5) + phase)
        green = np.array((70, 140, 60) if day else (20, 45, 35)) * (1 - 0.3 * depth)
        picture[row >= outline[None]] = green
    return (picture + draw.normal(0, 3, picture.shape)).round().clip(0, 255).astype(np.uint8)


def make(folder: Path, count: int, seed: int = 0) -> None:
    """Write so many PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    for number in range(count):
        Image.fromarray(landscape(draw)).save(folder / f"hills-{number:03d}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=500)
    arguments = parser.parse_args()
    make(arguments.folder, arguments.count)
