"""Every kind of file is read as the picture it shows, or refused in one sentence."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from anyfill.images.picture import MAX_PIXELS, Picture, as_picture, read_picture

GREY = np.arange(48, dtype=np.uint8).reshape(6, 8) * 5
RGB = np.stack([GREY, 255 - GREY, GREY // 2], axis=2)


def saved(image: Image.Image, path: Path, **options) -> Path:
    image.save(path, **options)
    return path


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tiff", ".webp"])
@pytest.mark.parametrize("pixels", [GREY, RGB], ids=["grey", "colour"])
def test_lossless_files_give_back_their_pixels(pixels, suffix, tmp_path) -> None:
    options = {"lossless": True} if suffix == ".webp" else {}
    read = read_picture(saved(Image.fromarray(pixels), tmp_path / f"a{suffix}", **options))
    assert np.array_equal(read.pixels, pixels.reshape(6, 8, -1))
    assert read.erased is None
    assert read.remarks == ()


def test_jpeg_is_near(tmp_path) -> None:
    smooth = np.add.outer(np.arange(16), np.arange(16)).astype(np.uint8) * 8
    read = read_picture(saved(Image.fromarray(smooth), tmp_path / "a.jpg", quality=95))
    assert np.abs(read.pixels[..., 0].astype(int) - smooth).max() <= 6


def test_sixteen_bits_become_eight_and_it_is_said(tmp_path) -> None:
    deep = (GREY.astype(np.uint16) * 257)[..., None][..., 0]
    read = read_picture(saved(Image.fromarray(deep), tmp_path / "a.png"))
    assert np.array_equal(read.pixels[..., 0], GREY)
    assert "16 bits" in read.remarks[0]


def test_cmyk_is_read_as_colour_and_it_is_said(tmp_path) -> None:
    read = read_picture(saved(Image.fromarray(RGB).convert("CMYK"), tmp_path / "a.tiff"))
    assert np.array_equal(read.pixels, RGB)
    assert "CMYK" in read.remarks[0]


def test_a_palette_is_read_as_its_colours(tmp_path) -> None:
    flat = np.zeros((4, 4, 3), dtype=np.uint8)
    flat[:2], flat[2:] = (255, 0, 0), (0, 0, 255)
    image = Image.fromarray(flat).convert("P", palette=Image.Palette.ADAPTIVE)
    assert np.array_equal(read_picture(saved(image, tmp_path / "a.png")).pixels, flat)


def test_transparent_pixels_of_any_mode_are_erased(tmp_path) -> None:
    alpha = np.full((6, 8), 255, dtype=np.uint8)
    alpha[2:4, 3:] = 0
    for number, pixels in enumerate((GREY[..., None], RGB)):
        image = Image.fromarray(np.concatenate([pixels, alpha[..., None]], axis=2))
        read = read_picture(saved(image, tmp_path / f"{number}.png"))
        assert np.array_equal(read.erased, alpha == 0)
        assert np.array_equal(read.pixels, pixels)
    image = Image.fromarray(np.array([[0, 1], [1, 0]], dtype=np.uint8), mode="P")
    image.putpalette([0, 0, 0, 255, 255, 255])
    read = read_picture(saved(image, tmp_path / "p.png", transparency=1))
    assert read.erased.tolist() == [[False, True], [True, False]]


def test_half_transparent_pixels_are_said(tmp_path) -> None:
    alpha = np.full((6, 8), 200, dtype=np.uint8)
    alpha[0] = 60
    image = Image.fromarray(np.concatenate([RGB, alpha[..., None]], axis=2))
    read = read_picture(saved(image, tmp_path / "a.png"))
    assert np.array_equal(read.erased, alpha < 128)
    assert read.remarks == (
        "a.png is transparent in part: what is more than half transparent is erased, "
        "what is less so is read as opaque (40 pixels)",
    )
    image = Image.fromarray(np.concatenate([RGB, np.minimum(alpha, 60)[..., None]], axis=2))
    assert read_picture(saved(image, tmp_path / "b.png")).remarks[0].endswith("half transparent is erased")


def test_a_turned_photograph_is_put_upright(tmp_path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    read = read_picture(saved(Image.fromarray(RGB), tmp_path / "a.png", exif=exif))
    assert (read.height, read.width) == (8, 6)
    assert np.array_equal(read.pixels, np.rot90(RGB, -1))


def test_of_an_animation_the_first_frame_is_read(tmp_path) -> None:
    frames = [Image.fromarray(np.full((4, 4), level, dtype=np.uint8)) for level in (0, 255)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    read = read_picture(tmp_path / "a.gif")
    assert not read.pixels.any()
    assert "2 frames" in read.remarks[0]


def test_one_pixel_is_a_picture(tmp_path) -> None:
    read = read_picture(saved(Image.fromarray(GREY[2:3, 3:4]), tmp_path / "a.png"))
    assert read.pixels.tolist() == [[[GREY[2, 3]]]]


def png_of(width: int, height: int, body: bytes, *, bits: int = 8, colour: int = 0) -> bytes:
    """A PNG file by hand: colour 0 = grey, 2 = red, green and blue."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def huge(width: int, height: int) -> bytes:
    """A PNG file of this size that hardly has content: only its head is true."""
    return png_of(width, height, b"\0")


@pytest.mark.parametrize("levels", [[0, 65_536], [-1, 5]])
def test_levels_beyond_sixteen_bits_are_refused_and_not_cut_off(tmp_path, levels) -> None:
    Image.fromarray(np.array([levels], dtype=np.int32)).save(tmp_path / "deep.tif")
    with pytest.raises(ValueError, match=r"deep\.tif: expected levels from 0 to 65,535, got some from"):
        read_picture(tmp_path / "deep.tif")


def test_sixteen_bits_a_channel_of_colours_are_said_too(tmp_path) -> None:
    """Pillow makes eight of them without a word."""
    body = b"".join(b"\0" + (line.astype(">u2") * 257).tobytes() for line in RGB)
    (tmp_path / "a.png").write_bytes(png_of(RGB.shape[1], RGB.shape[0], body, bits=16, colour=2))
    read = read_picture(tmp_path / "a.png")
    assert np.array_equal(read.pixels, RGB)
    assert "16 bits" in read.remarks[0]


def test_a_folder_is_no_picture(tmp_path) -> None:
    with pytest.raises(ValueError, match="expected a picture, got a folder"):
        read_picture(tmp_path)


def png() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "got an empty file", id="0 bytes"),
        pytest.param(b"hello, I am a text\n" * 20, "got something else", id="not an image"),
        pytest.param(np.random.default_rng(1).bytes(4000), "got something else", id="random bytes"),
        pytest.param(png()[:3000], "got a damaged one", id="truncated"),
        pytest.param(png()[:40], "or one that is cut off", id="cut off in its head"),
        pytest.param(huge(20_000, 20_000), f"at most {MAX_PIXELS:,} pixels, got 400,000,000", id="20,000 x 20,000"),
        pytest.param(huge(9_000, 9_000), "got 9,000 x 9,000", id="9,000 x 9,000"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(content, words, tmp_path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)) as refused:
        read_picture(path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_fractions_nan_and_booleans_are_pictures() -> None:
    values = np.array([[0.0, 1.0], [np.nan, 0.5]])
    read = as_picture(values)
    assert read.erased.tolist() == [[False, False], [True, False]]
    assert read.pixels[..., 0].tolist() == [[0, 255], [0, 128]]
    assert as_picture(torch.tensor([[True, False]])).pixels[..., 0].tolist() == [[255, 0]]
    assert as_picture(Image.fromarray(RGB)).pixels.shape == (6, 8, 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_fractions_of_any_precision_are_pictures(dtype) -> None:
    assert as_picture(torch.tensor([[0.0, 1.0, 0.5]], dtype=dtype)).pixels[..., 0].tolist() == [[0, 255, 128]]


def test_what_is_masked_is_erased_whatever_stands_there() -> None:
    masked = np.ma.masked_greater(np.array([[10, 999], [20, 30]]), 255)
    read = as_picture(masked)
    assert read.erased.tolist() == [[False, True], [False, False]]
    assert read.pixels[..., 0].tolist() == [[10, 0], [20, 30]]
    coloured = np.ma.masked_array(np.full((1, 2, 3), 0.5), mask=[[[False] * 3, [False, True, False]]])
    assert as_picture(coloured).erased.tolist() == [[False, True]]
    assert as_picture(np.ma.masked_array(np.zeros((2, 2), bool))).erased is None


@pytest.mark.parametrize(
    "bad", [np.zeros((3, 3, 2)), np.zeros(5), np.array([[300]]), np.array([[-1]]), np.array([[1.5]]), np.array([["a"]])]
)
def test_numbers_that_are_no_picture_are_refused(bad) -> None:
    with pytest.raises(ValueError, match="picture: expected"):
        as_picture(bad)


def test_what_is_saved_is_read_back_with_its_holes(tmp_path) -> None:
    erased = np.zeros((6, 8), dtype=bool)
    erased[1, 2:5] = True
    Picture(RGB, erased).save(tmp_path / "a.png")
    read = read_picture(tmp_path / "a.png")
    assert np.array_equal(read.pixels, RGB)
    assert np.array_equal(read.erased, erased)
    with pytest.raises(ValueError, match=r"ends in \.png"):
        Picture(RGB).save(tmp_path / "a.jpg")


def test_colours_under_transparent_pixels_are_none(tmp_path) -> None:
    layers = np.repeat(GREY[..., None], 4, axis=2)
    layers[..., 3] = 255
    layers[:3] = 200, 10, 30, 0
    read = read_picture(saved(Image.fromarray(layers), tmp_path / "a.png"))
    assert read.channels == 1
    assert np.array_equal(read.pixels[3:, :, 0], GREY[3:])


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float64])
def test_four_channels_are_read_as_the_same_image_is(kind) -> None:
    alpha = np.full((6, 8), 255, dtype=np.uint8)
    alpha[0], alpha[1] = 0, 200
    layers = np.concatenate([RGB, alpha[..., None]], axis=2)
    given = layers / 255 if kind is np.float64 else layers.astype(kind)
    image, array = as_picture(Image.fromarray(layers)), as_picture(given)
    assert np.array_equal(image.pixels, array.pixels)
    assert np.array_equal(image.erased, array.erased)
    assert image.remarks == array.remarks
    if kind is np.float64:
        given[5, 5, 0] = np.nan
        assert as_picture(given).erased[5, 5]
        assert as_picture(given).erased[0].all()


def test_channels_in_front_are_told_how_to_go_behind() -> None:
    for channels in (1, 3):
        with pytest.raises(ValueError, match=r"channels in front: permute\(1, 2, 0\) puts them behind"):
            as_picture(torch.zeros(channels, 6, 8))
    with pytest.raises(ValueError, match=r"channels in front: transpose\(1, 2, 0\) puts"):
        as_picture(np.zeros((3, 6, 8)))
