"""Many pictures of one size, from wherever people keep them.

    a folder                 of PNG, JPEG, WebP … files, also in folders below it; hidden ones (.name) are left out
    images-idx3-ubyte[.gz]   idx, as MNIST and Fashion-MNIST come
    data_batch_1.bin         CIFAR's binary records: a label (CIFAR-100: two), then 3 x 32 x 32 bytes
    sheet.png:32x32          many small pictures in one: tiles, or a picture in every line of pixels
    file.npz[:name]          an array (n, H, W[, C]) of bytes, or (n, S²) or as many packed bits

A pixel of a model has ``levels`` values. Of 256 each level is a value; of two, black and white, it must be said how
they are made, because likelihoods of the one say nothing of the other:

    threshold   1 from level 128 on
    dynamic     1 with probability level / 255, drawn anew every time a picture is read
    static      likewise, drawn once and for all; files of black and white pictures are static as they are
"""

import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyfill.checks import refuse, require_count, require_member, require_seed
from anyfill.images.picture import SUFFIXES, Picture, Pixels, read_picture
from anyfill.images.resizing import resized
from anyfill.images.settings import BINARY, MAX_SIDE, Binary
from anyfill.rows import Rows
from anyfill.training.data import derive

DEFAULT_SIDE = 32
"""Of pictures that are shrunk."""
_DRAWS = 256
"""Different draws of each picture, of dynamically binarised ones."""
_ARCHIVE = (OSError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, KeyError)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pictures:
    """Pictures of one size.

    Attributes:
        pixels: uint8 (n, H, W, C), C = 1 or 3.
        name: where they come from.
        labels: int64 (n,), if the source has them.
        remarks: what was changed or left out.
    """

    pixels: Pixels
    name: str = "pictures"
    labels: np.ndarray[Any, np.dtype[np.int64]] | None = None
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, number: int) -> Picture:
        return Picture(self.pixels[number], None, f"{self.name}, number {number}")

    def __repr__(self) -> str:
        count, height, width, channels = self.pixels.shape
        return f"<Pictures {self.name}: {count:,} of {width}x{height}, {'grey' if channels == 1 else 'colour'}>"


def read_pictures(source: str | Path, *, size: tuple[int, int] | None = None, grey: bool | None = None) -> Pictures:
    """All pictures of a source, see the module's text.

    Args:
        source: a folder or a file.
        size: (height, width): crop to these proportions and shrink; None = as they are, if all are of one size and at
            most 64 x 64, else 32 x 32.
        grey: True = without colours; None = as most of them are.
    """
    path, _, part = str(source).partition(":")
    place = Path(source)
    if not place.exists() and part and Path(path).exists():
        place = Path(path)
    else:
        part = ""
    if place.is_dir():
        return _folder(place, size, grey)
    if place.suffix.lower() == ".npz":
        found = Pictures(*_archive(place, part))
    elif place.suffix.lower() == ".bin":
        found = _records(place)
    elif place.suffix.lower() in SUFFIXES:
        found = _sheet(place, part)
    else:
        found = _idx(place)
    if not len(found):
        raise refuse(f"{source}", expected="one picture at least", got="none")
    return _fitted(found, size, grey)


def _fitted(found: Pictures, size: tuple[int, int] | None, grey: bool | None) -> Pictures:
    """The pictures in the size and the colours that are wanted."""
    pixels, remarks = found.pixels, list(found.remarks)
    side = pixels.shape[1:3]
    wanted = size or (side if max(side) <= MAX_SIDE else (DEFAULT_SIDE, DEFAULT_SIDE))
    if wanted != side or (grey and pixels.shape[3] == 3):
        each = (Picture(one) for one in pixels)
        pixels = np.stack([resized(one.grey() if grey else one, wanted).pixels for one in each])
        if wanted != side:
            remarks.append(f"{found.name}: cropped and resized from {side[1]}x{side[0]} to {wanted[1]}x{wanted[0]}")
    if grey is False and pixels.shape[3] == 1:
        pixels = np.repeat(pixels, 3, axis=3)
    return Pictures(np.ascontiguousarray(pixels), found.name, found.labels, tuple(remarks))


def _folder(folder: Path, size: tuple[int, int] | None, grey: bool | None) -> Pictures:
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    # Systems keep previews and notes on pictures in hidden files and folders, by the names of pictures.
    files = sorted(path for path in found if not any(name.startswith(".") for name in path.relative_to(folder).parts))
    if not files:
        raise refuse(f"{folder}", expected=f"pictures ({', '.join(SUFFIXES)})", got="none")
    sizes: set[tuple[int, int]] = set()
    coloured, bad = 0, list[str]()
    read: list[Picture] = []
    name = folder.resolve().name or str(folder)  # "." has none
    for picture in _readable(files, bad):
        shape = (picture.height, picture.width)
        sizes.add(shape)
        coloured += picture.channels == 3
        # Of large pictures no more is kept than is needed, so that a folder of photographs fits in memory.
        large = max(shape) > MAX_SIDE or size is not None
        read.append(resized(picture, size or (DEFAULT_SIDE, DEFAULT_SIDE)) if large else picture)
    if not read:
        raise refuse(f"{folder}", expected="pictures that can be read", got=f"none ({bad[0]})")
    remarks = _in_all(read)
    if bad:
        remarks.append(f"{len(bad)} of {len(files)} files cannot be read and are left out (the first: {bad[0]})")
    if any(picture.erased is not None for picture in read):
        remarks.append(f"{name}: what is transparent is read as it lies under it")
    same = len(sizes) == 1 and max(next(iter(sizes))) <= MAX_SIDE
    wanted = size or (next(iter(sizes)) if same else (DEFAULT_SIDE, DEFAULT_SIDE))
    if sizes != {wanted}:
        span = f"{len(sizes)} sizes" if len(sizes) > 1 else "{1}x{0}".format(*next(iter(sizes)))
        remarks.append(f"{name}: cropped and resized from {span} to {wanted[1]}x{wanted[0]}")
    channels = 1 if grey or (grey is None and coloured <= len(read) / 2) else 3
    if channels == 1 and coloured:
        remarks.append(f"{name}: {coloured} of {len(read)} pictures have colours, read as grey")
    pixels = np.stack([resized(one, wanted).with_channels(channels).pixels for one in read])
    return Pictures(pixels, name, None, tuple(remarks))


def _in_all(pictures: Sequence[Picture]) -> list[str]:
    """What was changed when the files were read, each once, whatever its numbers, with how many there are."""

    def kind(remark: str, name: str) -> str:
        return re.sub(r"\d[\d,]*", "", remark.removeprefix(name))

    count = Counter(kind(remark, one.name) for one in pictures for remark in one.remarks)
    first = {kind(remark, one.name): remark for one in reversed(pictures) for remark in one.remarks}
    return [first[what] + (f" ({many} files like it)" if many > 1 else "") for what, many in count.items()]


def _readable(files: Sequence[Path], bad: list[str]) -> Iterator[Picture]:
    for path in files:
        try:
            yield read_picture(path)
        except (ValueError, OSError) as error:
            bad.append(str(error))


def _idx(path: Path) -> Pictures:
    """idx: two zeros, the type of numbers (8 = bytes), the number of axes, their lengths, the bytes."""
    pixels = read_idx(path)
    if pixels.ndim not in (3, 4):
        raise refuse(f"{path}", expected="an idx file of pictures (n, height, width)", got=f"one of {pixels.shape}")
    beside = path.with_name(path.name.replace("images-idx3", "labels-idx1").replace("images.idx3", "labels.idx1"))
    labels = read_idx(beside).astype(np.int64) if beside != path and beside.is_file() else None
    if labels is not None and len(labels) != len(pixels):
        raise refuse(f"{beside}", expected=f"{len(pixels)} labels", got=len(labels))
    return Pictures(_four(pixels, path), path.name, labels)


def read_idx(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of an idx file, plain or .gz, in the shape that it states."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise refuse(f"{path}", expected="a whole .gz file", got="a damaged one") from None
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        expected = "a folder of pictures, idx, CIFAR records (.bin), a sheet (.png:32x32) or .npz"
        raise refuse(f"{path}", expected=expected, got="an empty file" if not content else "something else")
    axes = content[3]
    shape = [int(n) for n in np.frombuffer(content[4 : 4 + 4 * axes], dtype=">u4")]
    body = content[4 + 4 * axes :]
    if len(shape) != axes or len(body) != int(np.prod(shape, dtype=np.int64)):
        raise refuse(f"{path}", expected=f"bytes for {shape}", got=f"{len(body):,}, so it is cut off or damaged")
    return np.frombuffer(body, dtype=np.uint8).reshape(shape)


def _records(path: Path) -> Pictures:
    """CIFAR's: 1 + 3072 bytes (CIFAR-10), or 2 + 3072 (CIFAR-100, whose second label is the fine one)."""
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    for labels in (1, 2):
        if len(content) and len(content) % (3072 + labels) == 0:
            records = content.reshape(-1, 3072 + labels)
            pixels = records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            return Pictures(pixels, path.name, records[:, labels - 1].astype(np.int64))
    raise refuse(f"{path}", expected="CIFAR records of 3,073 or 3,074 bytes", got=f"{len(content):,} bytes")


def _sheet(path: Path, part: str) -> Pictures:
    found = re.fullmatch(r"(\d+)x(\d+)", part)
    if found is None or 0 in (int(found[1]), int(found[2])):
        expected = f"{path.name}:WIDTHxHEIGHT, the size of the pictures on the sheet, or a folder"
        raise refuse(f"{path}", expected=expected, got=f"a sheet of {part or 'an unstated size'}")
    width, height = int(found[1]), int(found[2])
    sheet = read_picture(path)
    rows, columns, channels = sheet.pixels.shape
    if columns == width * height:
        return Pictures(sheet.pixels.reshape(rows, height, width, channels), path.name)
    if rows % height or columns % width:
        raise refuse(f"{path}", expected=f"whole tiles of {part}, or lines of {width * height} pixels", got=sheet.size)
    tiles = sheet.pixels.reshape(rows // height, height, columns // width, width, channels).transpose(0, 2, 1, 3, 4)
    return Pictures(tiles.reshape(-1, height, width, channels), path.name)


def _archive(path: Path, part: str) -> tuple[Pixels, str]:
    try:
        with np.load(path, allow_pickle=False) as held:
            names = list(held.files)
            if not names:
                raise refuse(f"{path}", expected="an array of pictures", got="no array at all")
            if part and part not in names:
                raise refuse(f"{path}", expected=f"one of {', '.join(names)} behind the colon", got=part)
            if not part and len(names) != 1 and "images" not in names:
                raise refuse(f"{path}", expected=f"{path.name}:NAME, one of {', '.join(names)}", got="none")
            name = part or ("images" if "images" in names else names[0])
            values: np.ndarray[Any, Any] = held[name]
    except _ARCHIVE as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise refuse(f"{path}", expected="a whole .npz file of arrays", got=f"another ({error})") from None
    if values.dtype == bool:
        values = values.astype(np.uint8) * 255
    if values.dtype != np.uint8:
        raise refuse(f"{path}: {name}", expected="bytes (uint8) or booleans", got=values.dtype)
    if values.ndim == 2:
        values = _square(values, path)
    elif values.size > 0 and values.max() <= 1:
        values = values * np.uint8(255)
    return _four(values, path), f"{path.name}:{name}"


def _square(values: Pixels, path: Path) -> Pixels:
    """(n, S²) as pictures, or (n, S²/8) as packed bits."""
    for packed in (False, True):
        side = round((values.shape[1] * (8 if packed else 1)) ** 0.5)
        if side * side == values.shape[1] * (8 if packed else 1):
            flat = np.unpackbits(values, axis=1) if packed else values
            scale = 255 if flat.size and flat.max() <= 1 else 1
            return (flat * np.uint8(scale)).reshape(-1, side, side)
    raise refuse(f"{path}", expected="rows of S x S pixels", got=f"rows of {values.shape[1]}")


def _four(values: Pixels, path: Path) -> Pixels:
    values = values[..., None] if values.ndim == 3 else values
    if values.ndim != 4 or values.shape[3] not in (1, 3) or 0 in values.shape[1:]:
        raise refuse(f"{path}", expected="pictures (n, height, width, 1 or 3)", got=values.shape)
    return values


def codes_of(pixels: Pixels, levels: int) -> Tensor:
    """int64, same shape: bytes as codes of 0 … levels - 1; of two levels by the threshold 128."""
    return torch.from_numpy(pixels.astype(np.int64)) * levels // 256


def bytes_of(codes: Tensor, levels: int) -> Pixels:
    """uint8, same shape: codes as bytes; the ends are 0 and 255."""
    if levels == 256:
        return codes.clamp(0, 255).to(torch.uint8).numpy()
    return torch.round(codes.clamp(0, levels - 1).double() * 255 / (levels - 1)).to(torch.uint8).numpy()


class PictureRows:
    """Pictures as rows of codes, a source to train on (``RowSource``): height x width x channels variables.

    Args:
        pictures: what is read.
        levels: of a pixel's channel, 2 to 256.
        binary: how black and white is made; None unless there are two levels.
        seed: of draws.
    """

    def __init__(self, pictures: Pictures, levels: int = 256, binary: Binary | None = None, *, seed: int = 0) -> None:
        require_count("levels", levels, minimum=2, maximum=256)
        if (binary is None) != (levels != 2):
            raise refuse("binary", expected="one of threshold, dynamic, static, and two levels", got=f"{levels} levels")
        if binary is not None:
            require_member("binary", binary, BINARY)
        self.levels, self.binary, self.seed = levels, binary, require_seed("seed", seed)
        self._bytes = torch.from_numpy(pictures.pixels.reshape(len(pictures), -1).copy())

    def __len__(self) -> int:
        """Of dynamic ones: how many different draws are read before they come again."""
        return len(self._bytes) * (_DRAWS if self.binary == "dynamic" else 1)

    @property
    def variables(self) -> int:
        """N, all channels of all pixels."""
        return self._bytes.shape[1]

    def take(self, index: Tensor) -> Rows:
        """The rows of these numbers; a draw depends on its row's number and the seed alone, so runs can be resumed."""
        number = index.cpu()
        pixels = self._bytes[number % len(self._bytes)]
        if self.binary in (None, "threshold"):
            return Rows.from_values(pixels.long() * self.levels // 256)
        noise = torch.stack([self._noise(int(one)) for one in number])
        return Rows.from_values((noise < pixels / 255).long())

    def _noise(self, number: int) -> Tensor:
        own = derive(self.seed, "black and white", number) if self.seed else number  # of 0: as ever
        return torch.rand(self.variables, generator=torch.Generator().manual_seed(own), dtype=torch.float64)

    def rows(self, count: int | None = None) -> Rows:
        """The first so many pictures, all by default."""
        return self.take(torch.arange(min(count or len(self._bytes), len(self._bytes))))
