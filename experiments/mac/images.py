"""MAC's pictures: original, masked and filled, on CIFAR-10 and on 64 x 64 ImageNet samples shrunk to 32 x 32.

    python -m experiments.mac.images --out RUN --seconds 500       the models of experiments.sfarm.table3 in RUN serve
    python -m experiments.mac.images --out RUN --network paper     MAC's 141 M network: 960 GFLOP a trained picture

Training masks single channels (N = 3072); the pictures mask whole pixels, as the paper's do: 18 pictures, half of the
pixels at random for 6, a half for 6, a square for 6. Bits per missing sub-pixel of the same masks are written beside
the pictures. ImageNet samples are for looking: no model is trained on them. Joint and marginal bits of MAC's two
losses stand in ``experiments.sfarm.table3``.
"""

import math

import numpy as np
import torch

from anyfill.evaluation import mean_of
from anyfill.images.reading import read_pictures
from experiments.sfarm.picture_fills import as_pixels, filled, grid_picture, masked_pixels
from experiments.sfarm.picture_scores import question_of, scored, structured
from experiments.sfarm.pictures import Data, load, parser_of, trained, write

COUNT = 18


def masks_of(shape: tuple[int, int, int]) -> torch.Tensor:
    """bool (18, H W): a third each of random halves, bottom halves and inner squares."""
    found = structured(shape, COUNT)
    names = ("random 50 %", "bottom", "inside")
    return torch.cat([found[name][0][k * 6 : k * 6 + 6] for k, name in enumerate(names)])


def imagenet(data: Data, folder) -> Data:  # type: ignore[no-untyped-def]
    """The ImageNet samples, shrunk by averages of squares."""
    sheet = next(path for path in sorted((folder / "imagenet_samples").glob("*64x64.*")))
    pixels = read_pictures(f"{sheet}:64x64", size=(64, 64)).pixels
    side = 64 // data.shape[0]
    shape = (len(pixels), data.shape[0], side, data.shape[1], side, 3)
    small = pixels.reshape(shape).astype(np.float64).mean((2, 4)).round().astype(np.int64)
    return Data(data.shape, data.codes, data.train, data.valid, torch.from_numpy(small).flatten(1))


def main() -> None:
    parser = parser_of(__doc__, sets=("cifar10",), methods=("mac-inpainting", "one-pass"))
    parser.add_argument("--network", choices=("shared", "paper"), default="shared")
    parser.add_argument("--fill-steps", type=int, default=256)
    arguments = parser.parse_args()
    if arguments.network == "paper":
        arguments.unet_width, arguments.unet_blocks, arguments.attention = 256, 32, "every"
    data = load(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    asked = masks_of(data.shape)
    places = {arguments.set: data}
    if data.shape[2] == 3 and (arguments.data / "imagenet_samples").exists():
        places["imagenet"] = imagenet(data, arguments.data)
    found: dict[str, dict[str, dict[str, float]]] = {}
    models = {method: trained(method, data, arguments) for method in arguments.methods}
    rows = {
        place: shown.test[torch.linspace(0, len(shown.test) - 1, COUNT).round().long()]
        for place, shown in places.items()
    }
    drawn: dict[str, tuple[torch.Tensor, ...]] = {}
    for method, model in models.items():  # all places at once: one by one, many rows take as long as few
        source = torch.Generator(device).manual_seed(arguments.seed)
        every, holes = torch.cat([*rows.values()]), asked.repeat(len(rows), 1)
        steps = arguments.fill_steps
        drawn[method] = filled(method, model, data, every, holes, steps=steps, generator=source)[0].split(COUNT)
    for number, (place, x) in enumerate(rows.items()):
        shown = places[place]
        lines = [("original", as_pixels(x, shown)), ("masked", masked_pixels(x, asked, shown))]
        for method, model in models.items():
            lines.append((method, as_pixels(drawn[method][number], shown)))
            question = question_of(asked, shown.shape[2], device)
            value = scored(method, model, x, question, shown.shape[2], passes=arguments.passes)
            mean = mean_of(-value / (question.asked.sum(1) * math.log(2)))
            found.setdefault(place, {})[method] = {"bits_per_missing": mean.value, "stderr": mean.stderr}
        grid_picture(lines, arguments.out / f"mac_{place}.png")
    write(arguments, f"mac_images_{arguments.set}", {"pictures": COUNT, "sets": found})


if __name__ == "__main__":
    main()
