"""Hooks of ``make docs``: the site also shows what lies outside docs/, and the pages stay readable as plain files.

Pages link to the repository as it is on disk (``../results/sfarm/fig5.png``). Pictures that they show are copied into
the site, CONTRIBUTING.md and CHANGELOG.md become pages, and a link to any other file goes to the repository on the web.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the repository's root and the pictures of results/ join the files of docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for picture in sorted((ROOT / "results").rglob("*.png")):
        where = picture.relative_to(ROOT).as_posix()
        files.append(File.generated(config, f"figures/{where}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that leave docs/ lead to the copy in the site, or to the repository."""
    here = page.file.src_uri
    origin = next((name for name, made in PAGES.items() if made == here), f"docs/{here}")

    def target(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        real = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        inside = PAGES.get(real, real.removeprefix("docs/") if real.startswith("docs/") else f"figures/{real}")
        if files.get_file_from_path(inside) is not None:
            return posixpath.relpath(inside, posixpath.dirname(here) or ".") + anchor
        if not (ROOT / real).exists():
            return match[0]  # left for mkdocs to complain about
        return f"{config.extra['repository']}/{'tree' if (ROOT / real).is_dir() else 'blob'}/main/{real}{anchor}"

    return _LINK.sub(target, markdown.replace("<BLANKLINE>", ""))
