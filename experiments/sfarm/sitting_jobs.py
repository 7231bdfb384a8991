"""What a sitting over pictures consists of: methods on sets with their options, in order of value, and figures."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A method on a set.

    Attributes:
        set, method: as in ``pictures``.
        seconds: name of the option that says how long it is trained.
        options: further ones of the command line.
        scoring: seconds that all but training may take, as it was seen on an H200, or a guess.
        after: the job that compiles the same, so that this one begins when that is ready and finds it compiled.
        memory: GiB of the GPU that a trial run may take with --compile-only; a guess from what is kept for gradients.
        masks: test rows of which structured masks are asked (Figure 4); 0 = none.
        mask_passes: of each row and mask; of MAC, of whose chain they are single steps, more are needed.
    """

    set: str
    method: str
    seconds: str
    options: tuple[str, ...] = ()
    scoring: float = 15.0
    after: str | None = None
    memory: float = 5.0
    masks: int = 0
    mask_passes: int = 8

    @property
    def name(self) -> str:
        return f"{self.set}.{self.method}"


EXACT = ("--orders", "1", "--order-rows", "200")
STATIC = ("--passes", "4", "--mixture-rows", "2000", "--joint", "0.4", "--dropout", "0")
CIFAR = (
    "--passes", "8", "--batch", "64", "--width", "512", "--unet-width", "128", "--joint", "0.4", "--dropout", "0",
    "--mixture-rows", "500", "--test-rows", "2000",
)  # fmt: skip
FASHION = ("--passes", "8", "--joint", "0.4", "--mixture-rows", "500", "--dropout", "0", "--test-rows", "2000")
DYNAMIC = ("--passes", "4", "--joint", "0.4", "--mixture-rows", "500", "--dropout", "0", "--test-rows", "2000")
CHAIN = ("--orders", "1", "--order-rows", "64")
ARDM = "static.ardm"
MARGINAL_ROWS, LONGEST = 50, 450
"""Of CIFAR-10's marginals: rows, and the longest asked of a U-Net."""
JOBS = (
    Job("static", "one-pass", "static", (*STATIC, "--batch", "64"), 25, memory=15.0, masks=1000),
    Job("static", "ardm", "static", STATIC, 22, masks=1000),
    Job("static", "sfarm", "static", STATIC, 27, ARDM, masks=1000),
    Job("static", "mac-inpainting", "static", STATIC + EXACT, 40, ARDM, masks=1000),
    Job("static", "one-pass-patches", "static", (*STATIC, "--mixture-rows", "10000"), 12, memory=9.0, masks=1000),
    Job("cifar10", "one-pass", "cifar", CIFAR, 10, memory=19.0),
    Job("cifar10", "ardm", "cifar", CIFAR, 12),
    Job("cifar10", "mac-inpainting", "cifar", CIFAR, 12, "cifar10.ardm"),
    Job("cifar10", "sfarm", "cifar", CIFAR, 8, "cifar10.ardm"),
    Job("fashion", "one-pass-patches", "fashion", FASHION, 10, "static.one-pass-patches", 9.0, 500),
    Job("fashion", "ardm", "fashion", FASHION, 14, ARDM, masks=500),
    Job("fashion", "mac-inpainting", "fashion", FASHION + CHAIN, 40, "fashion.ardm", masks=500, mask_passes=64),
    Job("fashion", "sfarm", "fashion", FASHION, 18, "fashion.ardm", masks=500),
    Job("static", "vae", "latent", STATIC, 8, memory=7.0),
    Job("static", "ddpm", "latent", STATIC, 28, ARDM),
    Job("static", "miwae", "latent", STATIC, 8, "static.vae", 12.0),
    Job("dynamic", "one-pass", "dynamic", (*DYNAMIC, "--batch", "64"), 5, "static.one-pass", 15.0),
    Job("dynamic", "ardm", "dynamic", DYNAMIC, 4, ARDM),
    Job("dynamic", "mac-inpainting", "dynamic", DYNAMIC + CHAIN, 9, ARDM),
    Job("dynamic", "sfarm", "dynamic", DYNAMIC, 4, "static.sfarm"),
    # How fast the paper's own network trains: what its 300 epochs would take.
    Job("static", "sfarm-paper", "paper", (*STATIC, "--steps", "1500"), 4),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """What is made of the models, by a script; all of them side by side, at the end.

    Attributes:
        script, set, options: its command.
        methods: those it takes, as far as they are there.
    """

    script: str
    set: str
    options: tuple[str, ...]
    methods: tuple[str, ...]


REGIONS = ("one-pass", "one-pass-patches", "ardm", "mac-inpainting", "sfarm")
FIGURES = {
    "fig4_static": Figure("experiments.sfarm.fig4", "static", ("--test-rows", "1000", "--passes", "8"), REGIONS),
    "fig3_static": Figure(
        "experiments.sfarm.fig3", "static", ("--test-rows", "40", "--draws", "4"),
        ("vae", "miwae", "ddpm", "sfarm", "ardm", "one-pass", "one-pass-patches"),
    ),
    "mac_images": Figure("experiments.mac.images", "cifar10", ("--fill-steps", "128"), ("mac-inpainting", "one-pass")),
    "fig4_fashion": Figure("experiments.sfarm.fig4", "fashion", ("--test-rows", "500", "--passes", "8"), REGIONS),
    "fig6_7_8": Figure(
        "experiments.sfarm.fig6_7_8", "static", ("--samples", "500", "--most-steps", "128"),
        ("one-pass", "ardm", "sfarm"),
    ),
}  # fmt: skip
TINY = (
    "--rows", "12", "--side", "14", "--width", "64", "--depth", "1", "--unet-width", "16", "--unet-blocks", "1",
    "--batch", "4", "--passes", "2", "--order-rows", "2", "--mixture-rows", "4",
)  # fmt: skip
