"""What every writer of files needs from the system."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` survive a power cut, where the system has a way to."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
