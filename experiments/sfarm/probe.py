"""How fast the methods on pictures train, and what they wait for: steps a second, and a look by the profiler.

    python -m experiments.sfarm.probe --out FOLDER                        all variants, on made-up pictures
    python -m experiments.sfarm.probe --out FOLDER --tiny --only NAME     a trial on a CPU

Variants compile side by side, each in a process of its own, and are measured one after the other, alone, when all are
ready or time is up. FOLDER/probe.json has for each: steps and images a second, TFLOP/s (three times those of a forward
pass as torch counts them, masked parts of attention included), what share of a step the GPU computes, the
dearest operators and kernels, where the host waited; NAME.log what was compiled again and why; cache.tar.xz what was
compiled, for ``torch.compiler.load_cache_artifacts``.
"""

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tarfile
import time
import warnings
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from anyfill.rows import Rows
from anyfill.training import FitOptions, fit_steps
from benchmarks.common import environment
from experiments.sfarm.pictures import Data, made, options_of, parser_of


@dataclass(frozen=True, slots=True)
class Variant:
    """A method on a set, and how it is run.

    Attributes:
        method, shape, codes: as in ``pictures``.
        options: of the command line, as it takes them.
        attention: "blocks", or "mask" with torch's choice of kernel, or "cudnn" for that one.
        graphs: CUDA graphs.
        whole: compile the whole loss.
    """

    method: str
    shape: tuple[int, int, int]
    codes: int
    options: tuple[str, ...] = ()
    attention: str = "blocks"
    graphs: bool = True
    whole: bool = False


MNIST, CIFAR = (28, 28, 1), (32, 32, 3)
VARIANTS = {
    "one-pass-before": Variant("one-pass", MNIST, 2, attention="mask", graphs=False),
    "one-pass": Variant("one-pass", MNIST, 2),
    "one-pass-cudnn": Variant("one-pass", MNIST, 2, attention="cudnn"),
    "patches": Variant("one-pass-patches", MNIST, 2, ("--batch", "256")),
    "unet-before": Variant("ardm", MNIST, 2, graphs=False),
    "unet": Variant("ardm", MNIST, 2),
    "unet-whole": Variant("ardm", MNIST, 2, whole=True),
    "sfarm": Variant("sfarm", MNIST, 2),
    "cifar-one-pass": Variant("one-pass", CIFAR, 256, ("--width", "512", "--batch", "64")),
    "cifar-sfarm": Variant("sfarm", CIFAR, 256, ("--unet-width", "128", "--batch", "64")),
}


def one(name: str, out: Path, seconds: float, tiny: bool) -> None:
    """One variant: compile, wait for the word, measure alone."""
    variant = VARIANTS[name]
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    parser = parser_of(None, sets=("static",), methods=("ardm",))
    small = ("--width", "64", "--depth", "2", "--unet-width", "16", "--unet-blocks", "2", "--batch", "4")
    arguments = parser.parse_args(["--out", str(out), *variant.options, *(small if tiny else ())])
    arguments.graphs = variant.graphs
    shape = (8, 8, variant.shape[2]) if tiny else variant.shape
    source = torch.Generator().manual_seed(0)
    pictures = torch.randint(variant.codes, (20_000 if cuda else 64, shape[0] * shape[1] * shape[2]), generator=source)
    rows = Rows.from_values(pictures)
    data = Data(shape, variant.codes, rows, rows, pictures)
    model, objective = made(variant.method, data, arguments)
    options = replace(options_of(variant.method, len(pictures), arguments, device), report_every=8)
    found: dict[str, Any] = {"variant": name, "batch": options.batch_size}
    found["parameters"] = sum(each.numel() for each in model.parameters())
    found["gflop_an_image"] = flops(variant.method, data, arguments) / 1e9
    if not tiny:
        torch.set_float32_matmul_precision("high")
    if variant.whole:
        model.network.compile_parts = lambda: False  # type: ignore[assignment]
    elif variant.attention != "blocks":
        model.network.compile_parts = lambda: compiled(model.network)  # type: ignore[assignment]
    with ExitStack() as stack:
        if variant.attention == "cudnn":
            from torch.nn.attention import SDPBackend, sdpa_kernel

            stack.enter_context(sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]))
        options = FitOptions(**{field: getattr(options, field) for field in options.__dataclass_fields__})
        steps = stack.enter_context(closing(fit_steps(model, rows, objective, options)))
        begun = time.perf_counter()
        for _ in range(2 if tiny else 10 if variant.method == "one-pass-patches" else 3):
            report = next(steps)
        found["seconds_to_be_ready"] = time.perf_counter() - begun
        (out / f"{name}.ready").touch()
        while not (out / "go").exists():
            time.sleep(0.05)
        with open(out / "turn", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            next(steps)
            torch.cuda.synchronize() if cuda else None
            begun, first = time.perf_counter(), report.step + 8
            while time.perf_counter() - begun < seconds:
                report = next(steps)
            torch.cuda.synchronize() if cuda else None
            rate = (report.step - first) / (time.perf_counter() - begun)
            found |= {"steps_a_second": rate, "images_a_second": rate * options.batch_size, "loss": report.loss}
            found["tflop_a_second"] = 3 * found["gflop_an_image"] * rate * options.batch_size / 1e3
            found |= profile(steps, 1.0 / rate, cuda)
            if cuda:
                found["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30
            (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    try:
        artifacts = torch.compiler.save_cache_artifacts()
        if artifacts is not None:
            (out / f"{name}.cache").write_bytes(artifacts[0])
    except (RuntimeError, AttributeError) as error:
        print(f"no cache: {error}", file=sys.stderr, flush=True)


def compiled(network: Any) -> bool:
    """The blocks, and nothing else."""
    for block in network.blocks:
        block.compile()
    return True


def flops(method: str, data: Data, arguments: argparse.Namespace) -> float:
    """Of one forward pass of the loss, a row, as torch counts them uncompiled."""
    model, objective = made(method, data, arguments)
    rows = data.train.take(torch.arange(2))
    source = torch.Generator().manual_seed(1)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        objective.loss(model.train(), rows, objective.sample_rank(2, generator=source), generator=source)
    return counter.get_total_flops() / 2


def profile(steps: Any, step_seconds: float, cuda: bool) -> dict[str, Any]:
    """Eight steps under the profiler: share of the time that kernels run, the dearest of both kinds, waits."""
    found: dict[str, Any] = {}
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * cuda
    with torch.profiler.profile(activities=kinds) as seen:
        next(steps)
        torch.cuda.synchronize() if cuda else None
    table = seen.key_averages()
    if cuda:
        kernels = [event for event in table if event.device_type == torch.autograd.DeviceType.CUDA]
        total = sum(event.self_device_time_total for event in kernels) / 8e6
        found["kernel_seconds_a_step"], found["busy"] = total, total / step_seconds
        found["kernels_a_step"] = sum(event.count for event in kernels) / 8
        kernels.sort(key=lambda event: -event.self_device_time_total)
        found["kernels"] = [
            [event.key[:110], event.count / 8, round(event.self_device_time_total / 8e3, 3)] for event in kernels[:18]
        ]
    host = sorted(table, key=lambda event: -event.self_cpu_time_total)
    found["host"] = [
        [event.key[:80], event.count / 8, round(event.self_cpu_time_total / 8e3, 3)] for event in host[:15]
    ]
    if cuda:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            next(steps)
            torch.cuda.set_sync_debug_mode("default")
        places: dict[str, int] = {}
        for each in said:
            place = f"{Path(each.filename).name}:{each.lineno}"
            places[place] = places.get(place, 0) + 1
        found["waits_in_8_steps"] = dict(sorted(places.items(), key=lambda item: -item[1])[:12])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seconds", type=float, default=2.5, help="of measuring, each")
    parser.add_argument("--ready", type=float, default=150.0, help="seconds after which those that are ready begin")
    parser.add_argument("--end", type=float, default=270.0, help="seconds after which all is over")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--one", help="in a process of its own")
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one, arguments.out, arguments.seconds, arguments.tiny)
        return
    out: Path = arguments.out / "work"
    out.mkdir(parents=True, exist_ok=True)
    begun, running = time.perf_counter(), {}
    for name in arguments.only:
        command = [sys.executable, "-m", "experiments.sfarm.probe", "--out", str(out), "--one", name]
        command += ["--seconds", str(arguments.seconds)] + ["--tiny"] * arguments.tiny
        log = (out / f"{name}.log").open("w")
        settings = {
            "TORCH_LOGS": "recompiles,graph_breaks",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "3",
        }
        running[name] = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})
    while time.perf_counter() - begun < arguments.ready:
        if all((out / f"{name}.ready").exists() or child.poll() is not None for name, child in running.items()):
            break
        time.sleep(0.2)
    waited = time.perf_counter() - begun
    (out / "go").touch()
    while any(child.poll() is None for child in running.values()) and time.perf_counter() - begun < arguments.end:
        time.sleep(0.2)
    for child in running.values():
        if child.poll() is None:
            child.kill()
    found: dict[str, Any] = {
        **environment("cuda" if torch.cuda.is_available() else "cpu"),
        "seconds_until_all_were_ready": waited,
        "variants": {},
    }
    for name, child in running.items():
        path, log = out / f"{name}.json", (out / f"{name}.log").read_text(errors="replace")
        line: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"failed": log[-3000:]}
        line["recompiles"], line["graph_breaks"] = log.count("Recompiling function"), log.count("Graph break")
        line["exit"] = child.poll()
        found["variants"][name] = line
        if "failed" in line:
            print(f"{name}: FAILED {log[-600:]}")
        else:
            print(
                f"{name:18} {line['steps_a_second']:7.2f} steps/s {line['images_a_second']:9.0f} images/s "
                f"{line['tflop_a_second']:7.1f} TFLOP/s busy {line.get('busy', 0):.2f} "
                f"kernels {line.get('kernels_a_step', 0):.0f} "
                f"ready {line['seconds_to_be_ready']:.0f} s, recompiled {line['recompiles']}, "
                f"waits {sum(line.get('waits_in_8_steps', {}).values())}, {line.get('memory_gib', 0):.1f} GiB"
            )
    (arguments.out / "probe.json").write_text(json.dumps(found, indent=1) + "\n")
    with tarfile.open(arguments.out / "logs.tar.xz", "w:xz", preset=1) as file:
        for path in sorted(out.glob("*.log")):
            file.add(path, path.name)
    with tarfile.open(arguments.out / "cache.tar.xz", "w:xz", preset=2) as file:
        for path in sorted(out.glob("*.cache")):
            file.add(path, path.name)
    print(f"{time.perf_counter() - begun:.0f} s", flush=True)
    for path in out.iterdir():
        path.unlink()
    out.rmdir()


if __name__ == "__main__":
    main()
