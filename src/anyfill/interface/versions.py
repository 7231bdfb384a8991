"""What ran, and on what: for ``anyfill version`` and for every results file."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import torch


def anyfill_version() -> str:
    """The installed version, or "unknown" in a checkout that was never installed."""
    try:
        return version("anyfill")
    except PackageNotFoundError:
        return "unknown"


def device_name() -> str:
    """The device that training takes by default, in words."""
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({torch.get_num_threads()} threads)"


def environment() -> dict[str, str | int | None]:
    """Versions and device, as results files keep them."""
    return {
        "anyfill": anyfill_version(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device_name(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }
