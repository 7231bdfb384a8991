"""Pictures come out of every container as they were put in."""

import gzip
import struct

import numpy as np
import pytest
import torch
from PIL import Image

from anyfill.images.picture import Picture
from anyfill.images.reading import PictureRows, Pictures, bytes_of, codes_of, read_pictures
from anyfill.images.resizing import resized

RNG = np.random.default_rng(3)
GREY = RNG.integers(0, 256, (5, 6, 4)).astype(np.uint8)
RGB = RNG.integers(0, 256, (7, 32, 32, 3)).astype(np.uint8)


def idx(values: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_idx_with_its_labels(packed, tmp_path) -> None:
    ending = ".gz" if packed else ""
    pack = gzip.compress if packed else bytes
    labels = np.arange(5, dtype=np.uint8)
    (tmp_path / f"train-images-idx3-ubyte{ending}").write_bytes(pack(idx(GREY)))
    (tmp_path / f"train-labels-idx1-ubyte{ending}").write_bytes(pack(idx(labels)))
    read = read_pictures(tmp_path / f"train-images-idx3-ubyte{ending}")
    assert np.array_equal(read.pixels[..., 0], GREY)
    assert read.labels.tolist() == labels.tolist()


@pytest.mark.parametrize("labels", [1, 2], ids=["CIFAR-10", "CIFAR-100"])
def test_cifar_records(labels, tmp_path) -> None:
    first = np.arange(7 * labels, dtype=np.uint8).reshape(7, labels)
    records = np.concatenate([first, RGB.transpose(0, 3, 1, 2).reshape(7, -1)], axis=1)
    (tmp_path / "a.bin").write_bytes(records.tobytes())
    read = read_pictures(tmp_path / "a.bin")
    assert np.array_equal(read.pixels, RGB)
    assert read.labels.tolist() == first[:, -1].tolist()


def test_sheets_of_tiles_and_of_lines(tmp_path) -> None:
    Image.fromarray(RGB.reshape(7, 32 * 32, 3)).save(tmp_path / "lines.png")
    assert np.array_equal(read_pictures(f"{tmp_path}/lines.png:32x32").pixels, RGB)
    tiles = RGB[:6].reshape(2, 3, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(64, 96, 3)
    Image.fromarray(tiles).save(tmp_path / "tiles.png")
    assert np.array_equal(read_pictures(f"{tmp_path}/tiles.png:32x32").pixels, RGB[:6])
    with pytest.raises(ValueError, match="whole tiles of 30x30"):
        read_pictures(f"{tmp_path}/tiles.png:30x30")


def test_npz_of_bytes_booleans_rows_and_packed_bits(tmp_path) -> None:
    bits = RNG.integers(0, 2, (3, 64)).astype(np.uint8)
    np.savez(tmp_path / "a.npz", images=GREY, flat=bits, packed=np.packbits(bits, axis=1), truth=bits.astype(bool))
    assert np.array_equal(read_pictures(tmp_path / "a.npz").pixels[..., 0], GREY)
    for name in ("flat", "packed", "truth"):
        read = read_pictures(f"{tmp_path}/a.npz:{name}")
        assert np.array_equal(read.pixels.reshape(3, 64), bits * 255), name
    with pytest.raises(ValueError, match="one of images, flat, packed, truth"):
        read_pictures(f"{tmp_path}/a.npz:no")


def test_an_archive_is_not_said_to_be_shrunk_where_it_grows(tmp_path) -> None:
    np.savez(tmp_path / "small.npz", np.zeros((3, 8, 8), dtype=np.uint8))
    grown = read_pictures(tmp_path / "small.npz", size=(28, 20))
    assert grown.pixels.shape == (3, 28, 20, 1)
    assert "cropped and resized from 8x8 to 20x28" in grown.remarks[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.bin", b"x" * 100, "3,073 or 3,074"),
        ("a.npz", b"x" * 100, "a whole .npz"),
        ("a-ubyte", idx(GREY)[:-3], "cut off or damaged"),
        ("a-ubyte", b"", "an empty file"),
        ("a-ubyte", b"something", "something else"),
        ("a-ubyte.gz", gzip.compress(idx(GREY), mtime=0)[:40], "a damaged one"),
        ("a.png", b"something", "WIDTHxHEIGHT"),
    ],
)
def test_bad_containers_are_refused(name, content, words, tmp_path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name) as refused:
        read_pictures(tmp_path / name)
    assert words in str(refused.value)


def test_a_folder_of_one_size_is_read_as_it_is(tmp_path) -> None:
    (tmp_path / "below").mkdir()
    for number, one in enumerate(GREY):
        Image.fromarray(one).save(tmp_path / ("below" if number % 2 else ".") / f"{number}.png")
    read = read_pictures(tmp_path)
    assert {one.tobytes() for one in read.pixels} == {one.tobytes() for one in GREY}
    assert read.remarks == ()


def test_what_a_folder_needs_is_done_and_said(tmp_path) -> None:
    Image.fromarray(RGB[0]).save(tmp_path / "a.png")
    Image.fromarray(RGB[1][:20, :30]).save(tmp_path / "b.png")
    Image.fromarray(RNG.integers(0, 256, (200, 300, 3)).astype(np.uint8)).save(tmp_path / "c.jpg")
    (tmp_path / "d.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("not looked at")
    read = read_pictures(tmp_path)
    assert read.pixels.shape == (3, 32, 32, 3)
    said = " | ".join(read.remarks)
    assert "1 of 4 files cannot be read" in said
    assert "d.png" in said
    assert "3 sizes to 32x32" in said
    assert read_pictures(tmp_path, size=(8, 10), grey=True).pixels.shape == (3, 8, 10, 1)


def test_what_files_of_a_folder_are_read_as_is_said_once(tmp_path) -> None:
    for number in range(3):
        Image.fromarray(np.full((4, 4), 40_000 * (number > 0), dtype=np.uint16)).save(tmp_path / f"{number}.png")
    found = read_pictures(tmp_path)
    assert [one for one in found.remarks if "16 bits" in one] == [
        "0.png has 16 bits a pixel: read with 8 (3 files like it)"
    ]


def test_an_empty_folder_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="expected pictures"):
        read_pictures(tmp_path)


def test_shrinking_is_the_mean_of_boxes_and_holes_spread() -> None:
    pixels = RNG.integers(0, 256, (8, 8, 1)).astype(np.uint8)
    erased = np.zeros((8, 8), dtype=bool)
    erased[3, 3] = True
    small = resized(Picture(pixels, erased), (4, 4))
    means = pixels.reshape(4, 2, 4, 2).mean(axis=(1, 3))
    assert np.abs(small.pixels[..., 0] - means).max() <= 1
    assert small.erased.sum() == 1
    assert small.erased[1, 1]


@pytest.mark.parametrize("levels", [2, 3, 16, 256])
def test_codes_and_bytes_undo_each_other(levels) -> None:
    codes = torch.arange(levels)
    assert torch.equal(codes_of(bytes_of(codes, levels), levels), codes)
    assert bytes_of(codes, levels)[[0, -1]].tolist() == [0, 255]
    every = codes_of(np.arange(256, dtype=np.uint8), levels)
    assert every.unique().tolist() == list(range(levels))


def test_two_levels_are_made_in_three_named_ways() -> None:
    pictures = Pictures(np.repeat(np.array([0, 64, 127, 128, 255], dtype=np.uint8), 400).reshape(1, 5, 400, 1))
    index = torch.zeros(1, dtype=torch.int64)
    hard = PictureRows(pictures, 2, "threshold").take(index).x.view(5, 400).float().mean(1)
    assert hard.tolist() == [0, 0, 0, 1, 1]
    static, dynamic = (PictureRows(pictures, 2, how) for how in ("static", "dynamic"))
    assert torch.equal(static.take(index).x, static.take(index).x)
    assert not torch.equal(dynamic.take(index).x, dynamic.take(index + 1).x)
    assert torch.equal(dynamic.take(index + 1).x, dynamic.take(index + 1).x)  # by its number: runs can be resumed
    assert len(dynamic) > len(static) == 1
    for source in (static, dynamic):
        share = source.take(index).x.view(5, 400).float().mean(1)
        # Five standard errors: false alarm below 1e-5.
        assert (share - torch.tensor([0, 64, 127, 128, 255]) / 255).abs().max() < 5 * (0.25 / 400) ** 0.5
        assert share[[0, -1]].tolist() == [0, 1]
    for levels, how in ((256, "threshold"), (2, None)):
        with pytest.raises(ValueError, match="binary"):
            PictureRows(pictures, levels, how)


def test_every_seed_has_draws_of_its_own_however_large_it_is() -> None:
    grey = Pictures(np.full((3, 8, 8, 1), 128, dtype=np.uint8))
    large = (0, 1, 5, 2**23 - 1, 2**23, 20_000_000, 2**24, 2**24 + 5, 2**32 - 1)
    rows = {seed: PictureRows(grey, 2, "dynamic", seed=seed).take(torch.arange(6)).x for seed in large}
    drawn = [one.numpy().tobytes() for x in rows.values() for one in x]
    assert len(set(drawn)) == 6 * len(large)  # 64 coins each: by chance alike below 1 in 10^15
    with pytest.raises(ValueError, match="seed: expected a whole number from 0 to 4294967295"):
        PictureRows(grey, 2, "dynamic", seed=2**32)


def test_hidden_files_and_folders_are_left_out(tmp_path) -> None:
    """They were counted as files that cannot be read, or trained on: previews, and what a Mac notes on pictures."""
    folder = tmp_path / ".hidden" / "pictures"  # that the folder itself lies in one says nothing
    (folder / ".thumbnails").mkdir(parents=True)
    for number, name in enumerate(("0.png", ".1.png", ".thumbnails/2.png")):
        Image.fromarray(GREY[number]).save(folder / name)
    (folder / "._mac.png").write_bytes(b"notes on 0.png")
    read = read_pictures(folder)
    assert np.array_equal(read.pixels[..., 0], GREY[:1])
    assert read.remarks == ()


def test_what_differs_by_its_numbers_alone_is_said_once(tmp_path) -> None:
    for number in range(3):
        layers = np.full((4, 4, 4), 90, dtype=np.uint8)
        layers[..., 3] = 255
        layers[: number + 1, :, 3] = 200
        Image.fromarray(layers).save(tmp_path / f"{number}.png")
    (said,) = read_pictures(tmp_path).remarks
    assert said.endswith("read as opaque (4 pixels) (3 files like it)")


@pytest.mark.parametrize("part", ["", ":name"])
def test_an_archive_without_arrays_is_told_so(part, tmp_path) -> None:
    np.savez(tmp_path / "empty.npz")
    with pytest.raises(ValueError, match=r"empty\.npz: expected an array of pictures, got no array at all"):
        read_pictures(f"{tmp_path}/empty.npz{part}")
