"""Guides stay short, and every link of a page leads to a file that is there (make docs also checks anchors)."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDES = ("studio", "tables", "music", "text", "images", "ising", "translation", "policy")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/anyfill/models/*/README.md")])


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_has_at_most_1800_words(name):
    assert len((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split()) <= 1800


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    targets = re.findall(r"\]\((?!\w+:|#)([^)\s#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_contributing_shows_the_layers_that_are_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    assert "\n```\n" + "\n".join(layers) + "\n```\n" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
