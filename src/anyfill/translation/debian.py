"""Parallel text out of Debian packages: translation catalogues and LibreOffice's help, with licences listed.

Nothing is installed and nothing of it belongs to anyfill: packages are downloaded (``apt-get download``), unpacked
(``dpkg-deb -x``) into a folder that goes away, and read. What comes of it is a folder:

    pairs.tsv      English, the other language, package; cleaned, each pair once
    licences.tsv   package, pairs, the beginning of its copyright file's sha256, the licences that file names

LibreOffice's help is HTML; paragraphs belong together by the name of their file and their id, in both languages.
Catalogues (.mo) are English in their msgid. Text of user interfaces is another domain than sentences: the third column
tells them apart, and nobody should test on it.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

from anyfill.checks import counted, refuse
from anyfill.disk import whole_folder
from anyfill.translation.cleaning import Counts, Rules, cleaned
from anyfill.translation.reading import Pair, read_mo

DEFAULT = ("libreoffice-help-LANG", "libreoffice-help-en-us", "libreoffice-l10n-LANG", "gcc-12-locales")
"""LANG is the language beside English."""
_LICENCE = re.compile(r"^License:\s*(\S[^\n]*)", re.MULTILINE)
_SAFE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


@dataclass(frozen=True, slots=True)
class Built:
    """What was built: where, and what became of the pairs."""

    folder: Path
    packages: int
    counts: Counts

    def __str__(self) -> str:
        return f"{self.folder / 'pairs.tsv'}: {self.counts}, from {counted(self.packages, 'package')}"


class _Paragraphs(HTMLParser):
    """Texts of paragraphs and headings by their id."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, str] = {}
        self._key: str | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("p", "h1", "h2", "h3"):
            self._close()
            self._key = dict(attrs).get("id")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "h1", "h2", "h3"):
            self._close()

    def handle_data(self, data: str) -> None:
        if self._key:
            self._text.append(data)

    def _close(self) -> None:
        text = " ".join("".join(self._text).split())
        if self._key and text:
            self.found.setdefault(self._key, text)
        self._key, self._text = None, []


def paragraphs(html: str) -> dict[str, str]:
    """The paragraphs of a page by id."""
    reader = _Paragraphs()
    reader.feed(html)
    reader.close()
    return reader.found


@dataclass(frozen=True, slots=True)
class Package:
    """A package that is there: its name, its tree, and in that its catalogues (.mo) and pages of LibreOffice's help.

    A page comes with the same one in English, (English, other), which may be in another package.
    """

    name: str
    tree: Path
    catalogues: Sequence[Path]
    pages: Sequence[tuple[Path, Path]] = ()


def packages_in(root: Path, language: str) -> list[Package]:
    """The packages of a folder that has one folder for each, or of one tree (usr/share …), unpacked or installed.

    Whose a file in one tree is says dpkg (var/lib/dpkg/info), if it was installed by that; else all are of the package
    whose documentation is there, and where that is of several, of one with the name of the folder.
    """
    if not root.is_dir():
        raise refuse("--root", expected="a folder", got=f"{root}")
    if not (root / "usr").is_dir():
        return _packages([(one.name, one) for one in sorted(root.iterdir()) if one.is_dir()], language)
    owners: dict[str, str] = {}
    for listed in sorted(root.glob("var/lib/dpkg/info/*.list")):
        lines = listed.read_text("utf-8", errors="replace").splitlines()
        owners |= {line: listed.stem.partition(":")[0] for line in lines if line.endswith((".mo", ".html"))}
    documented = sorted(one.name for one in root.glob("usr/share/doc/*"))
    whose = documented[0] if len(documented) == 1 else root.resolve().name or "root"
    found: dict[str, tuple[list[Path], list[tuple[Path, Path]]]] = {}

    def of_owner(path: Path) -> tuple[list[Path], list[tuple[Path, Path]]]:
        return found.setdefault(owners.get(f"/{path.relative_to(root).as_posix()}", whose), ([], []))

    for path in sorted((root / "usr").rglob("*.mo")):
        of_owner(path)[0].append(path)
    for english, other in _beside(_pages(root / "usr", "en-US"), _pages(root / "usr", language)):
        of_owner(other)[1].append((english, other))
    return [Package(name, root, *own) for name, own in sorted(found.items())] or [Package(whose, root, [])]


def _packages(trees: Sequence[tuple[str, Path]], language: str) -> list[Package]:
    """The packages with these names, each in its tree: English help is in another than that of the language."""
    english = {key: page for _, tree in trees for key, page in _pages(tree, "en-US").items()}
    return [
        Package(name, tree, sorted(tree.rglob("*.mo")), _beside(english, _pages(tree, language)))
        for name, tree in trees
    ]


def _pages(tree: Path, language: str) -> dict[str, Path]:
    """The pages of a language in a tree, by their paths with * for the language."""
    found = sorted(tree.rglob(f"{language}/**/*.html"))
    return {f"/{page.relative_to(tree).as_posix()}".replace(f"/{language}/", "/*/", 1): page for page in found}


def _beside(english: Mapping[str, Path], other: Mapping[str, Path]) -> list[tuple[Path, Path]]:
    """Pages that are there in both."""
    return [(english[key], page) for key, page in other.items() if key in english]


def help_pairs(package: Package) -> Iterator[Pair]:
    """Paragraphs of all pages of help that a package has, in English and its language."""
    for pages in package.pages:
        ours, theirs = (paragraphs(page.read_text("utf-8", errors="replace")) for page in pages)
        yield from ((text, theirs[key]) for key, text in ours.items() if key in theirs)


def catalogue_pairs(package: Package, language: str) -> Iterator[Pair]:
    """Entries of all catalogues of a language that a package has; those that cannot be read are passed over."""
    for path in package.catalogues:
        parts = path.relative_to(package.tree).parts
        if language not in (part.partition("_")[0].partition("@")[0] for part in parts):
            continue
        try:
            yield from list(read_mo(path))
        except ValueError:  # another encoding, or damaged: one catalogue of many
            continue


def build(
    folder: Path,
    language: str,
    packages: Sequence[str],
    *,
    catalogues: int = 0,
    root: Path | None = None,
    say: Callable[[str], None] | None = None,
) -> Built:
    """Make the folder of pairs.

    Args:
        folder: a new one.
        language: beside English, as "de".
        packages: names; LANG in them is the language.
        catalogues: how many more packages with a catalogue of the language to look for (needs apt-file's index).
        root: what is unpacked already, one folder for each package or one tree (usr/share …); nothing is downloaded.
        say: is called with what goes on.
    """
    tell = say or _silent
    if folder.exists():
        raise refuse(f"{folder}", expected="a new folder", got="one that is there")
    if not _SAFE.fullmatch(language) and not re.fullmatch(r"[a-z]{2,3}", language):
        raise refuse("--language", expected="a language, as de", got=repr(language))
    counts, lines, seen = Counts(), list[str](), set[bytes]()
    with tempfile.TemporaryDirectory() as work, whole_folder(folder) as fresh:
        if root is None:
            names = [name.replace("LANG", language) for name in packages]
            names += _with_catalogues(language, catalogues, tell) if catalogues else []
            held = _packages(list(_unpacked(names, Path(work), tell)), language)
        else:
            held = packages_in(root, language)
        if not held:
            raise refuse("packages", expected="at least one that could be had", got="none")
        with (fresh / "pairs.tsv").open("w", encoding="utf-8") as file:
            for one in held:
                before = counts.kept
                for english, other in cleaned(
                    chain(help_pairs(one), catalogue_pairs(one, language)),
                    Rules(interface=True, min_words=2),
                    counts,
                    spelt=True,  # symbols would be read as text
                    seen=seen,
                ):
                    file.write(f"{english}\t{other}\t{one.name}\n")
                lines.append(_licence(one.name, one.tree, counts.kept - before))
                tell(f"{one.name}: {counted(counts.kept - before, 'pair')}")
        if not counts.kept:
            where = f"{root}" if root is not None else ", ".join(one.name for one in held)
            raise refuse(where, expected=f"pairs of English and {language}", got=f"none ({counts})")
        (fresh / "licences.tsv").write_text("".join(lines), encoding="utf-8")
    return Built(folder, len(held), counts)


def _silent(line: str) -> None:
    """Say nothing."""


def _licence(name: str, tree: Path, pairs: int) -> str:
    """A line of licences.tsv: by the package's own copyright file, or by all that its tree has."""
    own = tree / "usr/share/doc" / name / "copyright"
    found = [own] if own.is_file() else sorted(tree.glob("usr/share/doc/*/copyright"))
    text = b"".join(one.read_bytes() for one in found)
    named = dict.fromkeys(_LICENCE.findall(text.decode("utf-8", "replace")))
    mark = hashlib.sha256(text).hexdigest()[:16] if text else "none"
    # A package without a copyright file of its own has a link to the folder of one that has.
    linked = [path.readlink().name for path in sorted(tree.glob("usr/share/doc/*")) if path.is_symlink()]
    otherwise = f"those of {linked[0]}" if linked else "see its copyright file"
    return f"{name}\t{pairs}\t{mark}\t{'; '.join(named) or otherwise}\n"


def _unpacked(names: Sequence[str], work: Path, tell: Callable[[str], None]) -> Iterator[tuple[str, Path]]:
    """Download and unpack packages; those that cannot be had are passed over, and it is said."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise refuse("corpus", expected=f"{tool} (Debian or its kin), or --root", got="a system without it")
    for name in names:
        if not _SAFE.fullmatch(name):
            raise refuse("--package", expected="the name of a Debian package", got=repr(name))
        place, tree = work / f"{name}.deb.d", work / name
        place.mkdir()
        got = subprocess.run(["apt-get", "download", name], cwd=place, capture_output=True, text=True, check=False)
        archive = next(place.glob("*.deb"), None)
        if got.returncode or archive is None:
            tell(f"{name}: could not be had ({' '.join(got.stderr.split())[:120]})")
            continue
        subprocess.run(["dpkg-deb", "-x", str(archive), str(tree)], capture_output=True, check=True)
        archive.unlink()
        yield name, tree


def _with_catalogues(language: str, count: int, tell: Callable[[str], None]) -> list[str]:
    """Packages that carry catalogues of the language, by apt-file's index."""
    if shutil.which("apt-file") is None:
        tell("catalogues: apt-file is not installed, so only the named packages are taken")
        return []
    found = subprocess.run(
        ["apt-file", "-x", "-l", "search", f"/{language}/LC_MESSAGES/.*\\.mo$"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [name for name in found.stdout.split() if _SAFE.fullmatch(name)][:count]
