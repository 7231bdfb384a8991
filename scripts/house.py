"""How large the house is and how often it repeats itself, before and after: counts of src/anyfill.

    python scripts/house.py                          the working tree beside the revision before the rebuilding
    python scripts/house.py --rev v0.1.0             … beside another revision
    python scripts/house.py --pairs                  also list these places, and the modules with one importer

    files       Python files below src
    lines       lines of code: no blank lines, comments or docstrings
    long        files of more than 350 lines, blank ones and docstrings included
    one importer   modules that exactly one other module of the package imports; a package that re-exports is none
    pairs       pairs of files (or one file and itself) that share a run of six or more lines of one shape
    fill        files of the package in which a function is called by ``anyfill fill data.csv -o filled.csv``

Two runs have one *shape* if one becomes the other by renaming names, strings and numbers. Comments, docstrings, imports
and lines of lone punctuation are passed over. Two kinds of runs do not count: those of fewer than 30 tokens, unless
they are equal to the letter, and those that stand in more than eight places; these are forms, not repetitions.
Writes results/house.json.
"""

import argparse
import ast
import io
import json
import keyword
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "5624dc1"
RUN, THICK, COMMON, LONG = 6, 30, 8, 350
_RENAMED = (tokenize.NAME, tokenize.STRING, tokenize.NUMBER)
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_FILL = """
import sys, threading
import anyfill
from anyfill.CLI import run
seen, root = set(), anyfill.__path__[0]
def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(root):  # 1: neither module nor class body
        seen.add(code.co_filename)
threading.setprofile(watch)
sys.setprofile(watch)
run(["fill", "data.csv", "-o", "filled.csv", "--steps", "20", "--engine", "none"])
sys.setprofile(None)
print("TOUCHED", len(seen))
"""


@dataclass(frozen=True)
class Counts:
    """What is counted of one state of the tree."""

    files: int
    lines: int
    long: int
    one_importer: int
    pairs: int
    fill: int | None


def modules(src: Path) -> dict[str, Path]:
    """Every module below src by its dotted name."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        name = ".".join(path.with_suffix("").relative_to(src).parts)
        found[name.removesuffix(".__init__")] = path
    return found


def docstring_lines(tree: ast.AST) -> set[int]:
    """The lines of strings that stand by themselves: docstrings, and those below attributes."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    source = path.read_text(encoding="utf-8")
    skipped = docstring_lines(ast.parse(source))
    lines = enumerate(source.splitlines(), 1)
    return sum(1 for number, line in lines if number not in skipped and line.strip() and line.strip()[0] != "#")


def importers(found: dict[str, Path]) -> dict[str, set[str]]:
    """Who imports each module, wherever in a file it does so."""
    by = defaultdict(set)
    for name, path in found.items():
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    by[full if full in found else node.module].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    by[alias.name].add(name)
    return {name: by[name] - {name} for name, path in found.items() if path.name != "__init__.py"}


def tokens(path: Path) -> list[tuple[int, list[tokenize.TokenInfo]]]:
    """(line, its tokens) of every line that counts."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    skipped = docstring_lines(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: dict[int, list[tokenize.TokenInfo]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SKIPPED and token.start[0] not in skipped and token.string:
            lines[token.start[0]].append(token)
    return [(line, found) for line, found in lines.items() if any(re.search(r"\w", one.string) for one in found)]


def shape(run: list[tuple[int, list[tokenize.TokenInfo]]]) -> tuple[tuple[str, ...], ...]:
    """The run with its names, strings and numbers replaced by numbers in the order in which they first appear."""
    names: dict[tuple[int, str], str] = {}

    def renamed(token: tokenize.TokenInfo) -> str:
        if token.type not in _RENAMED or keyword.iskeyword(token.string):
            return token.string
        return names.setdefault((token.type, token.string), f"{token.type}:{len(names)}")

    return tuple(tuple(map(renamed, line)) for _, line in run)


def repeated(found: dict[str, Path]) -> Iterator[tuple[str, int, str, int]]:
    """Pairs of files that share a run, each with the first place in both."""
    places: dict[object, list[tuple[str, int, int]]] = defaultdict(list)
    for name, path in found.items():
        lines = tokens(path)
        for index in range(len(lines) - RUN + 1):
            run = lines[index : index + RUN]
            place = (name, index, run[0][0])
            places[tuple(tuple(token.string for token in line) for _, line in run)].append(place)
            if sum(len(line) for _, line in run) >= THICK:
                places["shape", shape(run)].append(place)
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for where in places.values():
        if 2 <= len(where) <= COMMON:
            for (a, i, line), (b, j, other) in combinations(where, 2):
                if a != b or j - i >= RUN:
                    seen.setdefault((a, b), (line, other))
    for (a, b), (line, other) in sorted(seen.items()):
        yield a, line, b, other


def files_of_fill(src: Path) -> int | None:
    """How many files of the package take part in a plain fill of a small table; None where it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f"{i},{i * i % 7},{'ab'[i % 2]}\n" for i in range(30))
        (Path(folder) / "data.csv").write_text("x,y,z\n" + rows + ",3,a\n4,,b\n")
        home = "cli.main" if (src / "anyfill" / "cli").is_dir() else "surfaces.cli"
        command = [sys.executable, "-c", _FILL.replace("CLI", home)]
        environment = {**os.environ, "PYTHONPATH": str(src)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        filled = (Path(folder) / "filled.csv").exists()
    touched = re.search(r"TOUCHED (\d+)", done.stdout)
    return int(touched[1]) if touched and filled else None


def count(src: Path) -> Counts:
    """All counts of one tree."""
    found = modules(src)
    alone = sum(len(by) == 1 for by in importers(found).values())
    lines = sum(map(code_lines, found.values()))
    long = sum(len(path.read_text(encoding="utf-8").splitlines()) > LONG for path in found.values())
    return Counts(len(found), lines, long, alone, sum(1 for _ in repeated(found)), files_of_fill(src))


def at_revision(revision: str, folder: Path) -> Path:
    """src of a revision, unpacked into the folder."""
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    """Print the table, write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rev", default=BEFORE, help="what the working tree is held against")
    parser.add_argument("--pairs", action="store_true", help="list the places that are counted")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = count(at_revision(arguments.rev, Path(folder)))
    after = count(ROOT / "src")
    for name, one in asdict(before).items():
        print(f"{name:14}{one!s:>8} -> {getattr(after, name)!s:>8}")
    if arguments.pairs:
        found = modules(ROOT / "src")
        for a, line, b, other in repeated(found):
            print(f"{a}:{line} ~ {b}:{other}")
        for name, by in importers(found).items():
            if len(by) == 1:
                print(f"{name} <- {next(iter(by))}")
    record = {"name": "house", "before": {"revision": arguments.rev, **asdict(before)}, "after": asdict(after)}
    (ROOT / "results" / "house.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
