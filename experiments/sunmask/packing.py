"""What a sitting leaves, in as few files as travel: records and samples in one, weights in parts."""

import tarfile
from pathlib import Path

PART = 15 * 2**20
"""Bytes of a part of the weights."""
SMALL = (".json", ".npz", ".jsonl", ".log")
"""Endings of what is packed."""


def packed_small(out: Path, pack: Path) -> None:
    """All but weights in one file, which is whole at any moment."""
    part = pack.with_name(pack.name + ".part")
    with tarfile.open(part, "w:gz") as tar:
        for path in sorted(out.iterdir()):
            if path.suffix in SMALL:
                tar.add(path, path.name)
    part.replace(pack)


def packed(out: Path) -> None:
    """Everything but weights in one file; weights in parts."""
    with tarfile.open(out / "all.tar.gz", "w:gz") as tar:
        for path in sorted(out.iterdir()):
            if path.suffix in SMALL:
                tar.add(path, path.name)
                path.unlink()
    for folder in [path for path in sorted(out.iterdir()) if path.is_dir()]:
        whole = out / f"{folder.name}.tar"
        with tarfile.open(whole, "w") as tar:
            tar.add(folder, folder.name)
        content = whole.read_bytes()
        for number, first in enumerate(range(0, len(content), PART)):
            (out / f"{folder.name}.tar.{number}").write_bytes(content[first : first + PART])
        whole.unlink()
        for path in folder.rglob("*"):
            path.unlink()
        folder.rmdir()
