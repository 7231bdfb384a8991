"""Pictures of the studio for its guide: PYTHONPATH=. python docs/figures/studio.py [--model DIR] [-o FOLDER]."""

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import expect

from benchmarks.studio_browser import browsing, running

SOON = 180_000
"""Milliseconds to wait at most."""


def table(page: Any) -> None:
    """A filled table and a cell of it."""
    expect(page.get_by_role("button", name="Fill the holes")).to_be_enabled(timeout=SOON)
    page.get_by_role("button", name="Fill the holes").click()
    expect(page.locator(".answer").first).to_be_visible(timeout=SOON)
    page.locator("[data-cell='4 4'].answer").click()  # which is in view
    expect(page.locator(".side .plot, .side .levels").first).to_be_visible(timeout=SOON)


def chorale(page: Any) -> None:
    """A harmonised tune, two regions painted away."""
    page.get_by_label("Seed").fill("3")
    page.get_by_role("button", name="Harmonise").click()
    expect(page.locator(".alternative")).to_have_count(4, timeout=SOON)
    page.get_by_role("button", name="Take").first.click()
    page.get_by_label("Voices and bars to paint away").fill("alto 2-3, tenor 4")
    page.get_by_role("button", name="Paint away").last.click()
    page.wait_for_timeout(1500)
    page.evaluate("scrollTo(0, 0)")


def picture(page: Any) -> None:
    """A digit, its lower half painted away, completions of two kinds; or how to make a model."""
    expect(page.get_by_text("What you see holds").or_(page.get_by_text("anyfill image train"))).to_be_visible(
        timeout=SOON
    )
    fill = page.get_by_role("button", name="Fill what is erased")
    if fill.count():
        page.get_by_label("Seed").fill("1")
        page.get_by_label("Sampler and steps").select_option("64")
        fill.click()
        expect(page.locator(".told")).to_contain_text("64 steps", timeout=SOON)
        page.get_by_label("Sampler and steps").select_option("exact")
        fill.click()
        expect(page.locator(".told")).to_contain_text("pixel by pixel", timeout=SOON)


def text(page: Any) -> None:
    """Ranked fills of a blank."""
    page.get_by_role("button", name="Fill the blanks").click()
    expect(page.locator(".fills li").first).to_be_visible(timeout=SOON)


def translation(page: Any) -> None:
    """A sentence, a word of its translation locked, others for another; or how to make a model."""
    expect(page.get_by_text("anyfill translate train").or_(page.get_by_label("The sentence"))).to_be_visible(
        timeout=SOON
    )
    translate = page.get_by_role("button", name="Translate", exact=True)
    if translate.count():
        expect(page.get_by_label("The sentence")).not_to_be_empty(timeout=SOON)
        translate.click()
        words = page.locator(".words button")
        expect(words.first).to_be_visible(timeout=SOON)
        words.first.click()
        page.get_by_role("button", name="Lock").click()
        words.nth(1).click()
        expect(page.get_by_label("What else could stand there").locator("li").first).to_be_visible(timeout=SOON)


SCENES = {"table": table, "chorale": chorale, "picture": picture, "text": text, "translation": translation}


def main() -> None:
    """Take them all, in both themes; those in the dark and without a place in the guide go to another folder."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    parser.add_argument("--dark", type=Path, help="folder for the dark ones")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--only", choices=SCENES, action="append", help="these pages")
    said = parser.parse_args()
    with running(*(word for one in said.model for word in ("--model", one))) as (base, _):
        for dark, folder in ((False, said.output), (True, said.dark)):
            if folder is None:
                continue
            for name in said.only or SCENES:
                height = {"chorale": 940, "picture": 1240}.get(name, 800)
                with browsing(base, width=said.width, height=height, dark=dark) as page:
                    page.goto(f"{base}#/{name}")
                    SCENES[name](page)
                    page.wait_for_timeout(400)
                    save(page.screenshot(), folder / f"studio_{name}.png")


def save(shot: bytes, path: Path) -> None:
    """Write a picture with as few colours as it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(io.BytesIO(shot)).convert("RGB").quantize(200).save(path, optimize=True)


if __name__ == "__main__":
    main()
