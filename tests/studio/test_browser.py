"""What a person does on every page, in a real browser; it asks nobody else and has nothing to complain of."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("playwright")
from playwright.sync_api import expect

from benchmarks.studio_browser import CHROMIUM, browsing, running

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="no chromium here")]
SOON = 60_000
"""Milliseconds to wait at most; machines are busy."""
CONTROLS = """[...document.querySelectorAll('main button, main input, main select, main textarea')]
    .filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0).length"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of 28 x 28 pictures, hardly trained, called digits; and one that translates, likewise."""
    from anyfill import images, translation

    place = tmp_path_factory.mktemp("models")
    draw = np.random.default_rng(0)
    (place / "some").mkdir()
    for n in range(24):
        pixels = np.zeros((28, 28), dtype=np.uint8)
        top, left = draw.integers(4, 12, size=2)
        pixels[top : top + 12, left : left + 5] = 255
        Image.fromarray(pixels).save(place / "some" / f"{n}.png")
    images.train(place / "some", place / "digits", width=16, depth=1, steps=4, batch=4)
    pairs = [("Der Hund ist klein.", "The dog is small."), ("Das Haus ist rot.", "The house is red.")]
    (place / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs * 3), encoding="utf-8")
    toy = {"recipe": "cmlm", "size": "toy", "vocabulary_size": 320, "length": 24, "batch": 4, "valid_share": 0.0}
    languages = {"source": "de", "target": "en"}
    translation.train(place / "pairs.tsv", place / "de-en", **languages, **toy, steps=60, device="cpu")
    return place


@pytest.fixture(scope="module")
def base(folder):
    with running("--model", str(folder)) as (address, _):
        yield address


@pytest.fixture
def page(base):
    with browsing(base) as one:
        yield one


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize("name", ["table", "chorale", "picture", "text", "translation"])
def test_pages_fit_their_window(base, name, width):
    with browsing(base, width=width) as page:
        page.goto(f"{base}#/{name}")
        expect(page.locator("h1")).to_be_visible(timeout=SOON)
        page.wait_for_timeout(800)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_drop_a_csv_and_read_a_filled_cell(page, base, tmp_path):
    draw = np.random.default_rng(0)
    z = draw.normal(size=150)
    frame = pd.DataFrame({"height": (170 + 8 * z).round(1), "weight": (70 + 9 * z + draw.normal(size=150)).round(1)})
    frame.loc[0, "weight"] = None
    frame.to_csv(tmp_path / "people.csv", index=False)
    page.goto(f"{base}#/table")
    page.get_by_label("A table to open").set_input_files(tmp_path / "people.csv")
    expect(page.get_by_text("people.csv: 150 rows, 2 columns, 1 hole.")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Fill the holes").click()
    cell = page.locator("[data-cell='0 1']")
    expect(cell).to_have_class(re.compile("answer"), timeout=SOON)
    value = float(cell.text_content())
    assert value == pytest.approx(70 + 9 * z[0], abs=4)
    low, high = map(float, re.search(r"90 %: (\S+) to (\S+)", cell.get_attribute("title")).groups())
    assert low < value < high
    cell.click()
    expect(page.locator(".side .plot").first).to_be_visible(timeout=SOON)
    expect(page.get_by_role("heading", name="Depends most on")).to_be_visible()
    page.get_by_role("tab", name="What if").click()
    before = page.locator(".whatif .said").nth(1)
    expect(before).not_to_be_empty(timeout=SOON)
    first = float(before.text_content())
    page.get_by_label("Value of height").fill("150")
    expect(before).not_to_have_text(str(first), timeout=SOON)
    assert float(before.text_content()) < 60
    page.get_by_role("button", name="Download").click()
    with page.expect_download(timeout=SOON) as download:
        page.get_by_role("menuitem", name="Filled table (CSV)").click()
    filled = pd.read_csv(download.value.path())
    assert filled.loc[0, "weight"] == pytest.approx(value)
    assert filled.drop(index=0).equals(frame.drop(index=0))


DROP = """([name, text]) => {
    const files = new DataTransfer();
    files.items.add(new File([text], name));
    for (const one of ["dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(one, { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def test_a_file_may_be_dropped_anywhere_and_a_reload_keeps_what_was_filled(page, base):
    page.goto(f"{base}#/table")
    expect(page.get_by_text(re.compile("penguins.csv: 344 rows"))).to_be_visible(timeout=SOON)
    rows = "".join(f"{n % 11},{2 * (n % 11)}\n" for n in range(60))
    page.evaluate(DROP, ["dropped.csv", "a,b\n7,\n" + rows])
    expect(page.get_by_text("dropped.csv: 61 rows, 2 columns, 1 hole.")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Fill the holes").click()
    expect(page.locator("[data-cell='0 1']")).to_have_class(re.compile("answer"), timeout=SOON)
    page.reload()
    expect(page.get_by_text("dropped.csv: 61 rows, 2 columns, 1 hole, filled.")).to_be_visible(timeout=SOON)
    page.locator(".toolbar").get_by_role("button", name="How?").click()
    expect(page.get_by_label("How this was computed")).to_contain_text("anyfill fill dropped.csv", timeout=SOON)


def test_a_hundred_thousand_rows_scroll(page, base, tmp_path):
    frame = pd.DataFrame({"n": np.arange(100_000), "x": np.arange(100_000) % 7})
    frame.to_csv(tmp_path / "long.csv", index=False)
    page.goto(f"{base}#/table")
    page.get_by_label("A table to open").set_input_files(tmp_path / "long.csv")
    expect(page.get_by_text("100,000 rows")).to_be_visible(timeout=SOON)
    asked, most, told = [], 0, page.locator(".grid .line")
    page.on("request", lambda one: asked.append(one.url) if "/rows" in one.url else None)
    for n in range(40):  # a long flight: few lines are there at any time, and few pages are asked for
        page.locator(".grid").evaluate("(grid, n) => { grid.scrollTop = (grid.scrollHeight * n) / 40; }", n)
        most = max(most, told.count())
    assert most < 60
    assert len(asked) <= 120
    page.locator(".grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    expect(page.locator("[data-cell='99999 0']")).to_have_text("99999", timeout=SOON)
    assert page.locator(".grid .line").count() < 60


def test_paint_away_a_voice_rewrite_it_and_hear_it(page, base):
    page.goto(f"{base}#/chorale")
    page.get_by_role("button", name="Harmonise").click()
    expect(page.locator(".alternative")).to_have_count(4, timeout=2 * SOON)
    page.get_by_role("button", name="Take").first.click()
    before = piece(page)
    page.get_by_label("Voices and bars to paint away").fill("alto")
    page.get_by_role("button", name="Paint away").last.click()
    page.get_by_role("button", name="Rewrite erased").click()
    expect(page.locator(".alternative.taken")).to_have_count(0, timeout=SOON)
    expect(page.get_by_role("button", name="Take").nth(1)).to_be_visible(timeout=2 * SOON)
    page.get_by_role("button", name="Take").nth(1).click()
    after = piece(page)
    assert [after["voices"][n] for n in (0, 2, 3)] == [before["voices"][n] for n in (0, 2, 3)]
    assert after["voices"][1] != before["voices"][1]
    page.get_by_role("button", name="Undo").click()
    assert piece(page) == before
    page.get_by_role("button", name="Redo").click()
    assert piece(page) == after
    page.get_by_role("button", name="Score", exact=True).click()
    expect(page.locator(".notation img").first).to_be_visible(timeout=SOON)


def piece(page):
    return json.loads(page.evaluate("sessionStorage.getItem('chorale page')"))


def test_the_sound_has_the_pitch_of_the_notes(page, base):
    page.goto(f"{base}#/chorale")
    loud, hertz = page.evaluate(
        """async () => {
            const { rendered } = await import("./js/chorale/sound.js");
            const voices = [[{ start: 0, length: 16, pitch: 69 }], [], [], []];
            const sound = await rendered({ voices, steps: 16, bar: 16, tempo: 60 }, 22050);
            const wave = sound.getChannelData(0).slice(4410, 4410 + 16384);
            let loud = 0;
            for (const one of wave) loud = Math.max(loud, Math.abs(one));
            let best = [0, 0];
            for (let hertz = 200; hertz < 1000; hertz += 2) {
                let [re, im] = [0, 0];
                wave.forEach((one, n) => {
                    const turn = 2 * Math.PI * hertz * n / 22050;
                    re += one * Math.cos(turn);
                    im += one * Math.sin(turn);
                });
                if (re * re + im * im > best[1]) best = [hertz, re * re + im * im];
            }
            return [loud, best[0]];
        }"""
    )
    assert loud > 0.02
    assert hertz == pytest.approx(440, abs=3)


def test_locked_notes_cannot_be_touched(page, base):
    page.goto(f"{base}#/chorale")
    roll = page.get_by_label(re.compile("Piano roll"))
    roll.focus()
    page.keyboard.press("l")
    before = piece(page)
    for key in ("Delete", "Enter", "p"):
        page.keyboard.press(key)
    assert piece(page)["voices"] == before["voices"]
    page.keyboard.press("l")
    page.keyboard.press("Delete")
    assert len(piece(page)["voices"][0]) == len(before["voices"][0]) - 1


def test_bars_lie_behind_a_pickup_of_any_length(page, base):
    """Bar lines used to be looked for on every fourth sixteenth, and P in a pickup to paint the first bar, too."""
    own = {"voices": [[{"start": 0, "length": 34, "pitch": 69}], [], [], []], "steps": 34, "bar": 16, "pickup": 2}
    page.goto(f"{base}#/chorale")
    page.evaluate("own => sessionStorage.setItem('chorale page', own)", json.dumps({**own, "tempo": 88, "title": ""}))
    page.reload()
    expect(page.get_by_label(re.compile("Piano roll"))).to_be_visible(timeout=SOON)
    found = page.evaluate(
        """async (own) => {
            const { makeRoll } = await import("./js/chorale/roll.js");
            const place = document.body.appendChild(document.createElement("div"));
            const canvas = place.appendChild(document.createElement("canvas"));
            const [erased, locked] = [0, 1].map(() => [[], [], [], []]);
            const state = { piece: own, now: { piece: own, erased, locked } };
            const roll = makeRoll(canvas, state, { region: null, cell: null, time: null, surprise: null, voice: 0 });
            roll.draw();
            const row = canvas.getContext("2d").getImageData(0, 3, canvas.width, 1).data;
            const colour = (x) => row.slice(4 * x, 4 * x + 4).join();
            const steps = Array.from({ length: own.steps }, (_, step) => step);
            const lines = steps.filter((step) => colour(Math.round(roll.x(step))) !== colour(2));
            place.remove();
            return lines;
        }""",
        own,
    )
    assert found == [2, 18]
    page.get_by_label(re.compile("Piano roll")).focus()
    page.keyboard.press("p")
    marks = json.loads(page.evaluate("sessionStorage.getItem('chorale marks')"))
    assert marks["erased"] == [{"voice": 0, "start": 0, "stop": 2}]


def test_paint_a_mask_on_a_digit_and_get_six_fills(page, base):
    page.goto(f"{base}#/picture")
    big = page.locator(".pixels.big")
    expect(page.locator(".gallery button").first).to_be_visible(timeout=SOON)
    expect(page.get_by_text(re.compile("What you see holds"))).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Clear").click()
    box = big.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.6, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Fill what is erased").click()
    expect(page.locator(".completions[data-done]")).to_be_visible(timeout=2 * SOON)
    assert page.locator(".completions canvas").count() == 6
    same = page.evaluate(
        """() => {
            const pixels = (one) => one.getContext("2d").getImageData(0, 0, 28, 28).data;
            const [big, ...fills] = [...document.querySelectorAll(".pixels.big, .completions canvas")].map(pixels);
            return fills.map((one) => one.reduce((sum, value, n) => sum + (value !== big[n]), 0) / 3);
        }"""
    )
    assert all(0 < changed < 28 * 28 / 3 for changed in same)  # what was not painted is as it was
    page.get_by_role("button", name="Uncertainty").click()


def test_fill_a_blank_and_see_how(page, base):
    page.goto(f"{base}#/text")
    page.get_by_label("Your text").fill("the l_st king")
    page.get_by_role("button", name="Fill the blanks").click()
    expect(page.locator(".fills li").first).to_contain_text("the last king", timeout=SOON)
    page.get_by_role("button", name="How?").last.click()
    drawer = page.get_by_label("How this was computed")
    expect(drawer).to_contain_text("anyfill text fill 'the l_st king'")
    expect(drawer).to_contain_text("exact")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    page.get_by_label("Your text").fill("it was the best of times")
    expect(page.get_by_text(re.compile("bits per character"))).to_be_visible(timeout=SOON)
    assert page.locator(".editor .behind .s1, .editor .behind .s2, .editor .behind .s3").count() > 0


def test_writing_is_stopped_by_its_button(page, base):
    page.goto(f"{base}#/text")
    page.locator("summary").click()
    page.get_by_label("Length to write").fill("5000")
    page.get_by_label("Your text").fill("the moon ")
    page.get_by_role("button", name="Write on").click()
    written = page.get_by_label("What is being written")
    expect(written).to_contain_text(re.compile("the moon .{10}", re.DOTALL), timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_enabled(timeout=SOON)


def begun(page, name):
    """Wait until the studio has begun the job of a page, which then knows it; a bar of progress is there before."""
    for _ in range(SOON // 50):
        if page.evaluate(f"sessionStorage.getItem('job {name}')"):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"no job of {name} was begun")


def test_a_job_is_taken_up_again_after_a_reload(page, base):
    page.goto(f"{base}#/text")
    page.get_by_label("Your text").fill("She poured herself a cup of ____ and drank ____.")
    page.get_by_role("button", name="Fill the blanks").click()
    begun(page, "text fill")
    page.reload()
    expect(page.locator(".fills li").first).to_contain_text("She poured herself a cup of", timeout=SOON)


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "not heard"])
def test_a_reload_between_click_and_answer_loses_no_job(page, base, heard):
    keys, begun_at_once = [], []

    def keep_silent_once(route):
        keys.append(route.request.headers["x-job"])
        if len(keys) > 1:
            route.continue_()
        elif heard:
            begun_at_once.append(route.fetch().json()["job"])  # the studio begins the job; the page never learns of it

    page.goto(f"{base}#/text")
    page.route("**/api/text/fill", keep_silent_once)
    page.get_by_label("Your text").fill("She poured herself a cup of ____ and drank ____.")
    page.get_by_role("button", name="Fill the blanks").click()
    for _ in range(SOON // 50):
        if begun_at_once or (keys and not heard):
            break
        page.wait_for_timeout(50)
    assert page.evaluate("sessionStorage.getItem('job text fill')") is None
    page.reload()
    expect(page.locator(".fills li").first).to_contain_text("She poured herself a cup of", timeout=SOON)
    assert keys == [keys[0]] * 2
    assert begun_at_once == ([keys[0]] if heard else [])
    assert page.evaluate("sessionStorage['job text fill']") == keys[0]
    assert page.evaluate("'asked text fill' in sessionStorage") is False


def test_what_is_being_written_or_painted_is_in_view_again_after_a_reload(page, base):
    page.goto(f"{base}#/text")
    page.locator("summary").click()
    page.get_by_label("Length to write").fill("5000")
    page.get_by_label("Your text").fill("The moon ")
    page.get_by_role("button", name="Write on").click()
    written = page.get_by_label("What is being written")
    expect(written).to_contain_text(re.compile("The moon .{10}", re.DOTALL), timeout=SOON)
    before = written.text_content()
    page.reload()
    expect(written).to_contain_text(before, timeout=SOON)
    page.get_by_role("button", name="Cancel").click()
    page.goto(f"{base}#/picture")
    expect(page.get_by_text(re.compile("What you see holds"))).to_be_visible(timeout=SOON)
    page.get_by_label("Model").select_option("fashion")
    expect(page.get_by_role("button", name="Fill what is erased")).to_be_enabled(timeout=SOON)
    page.get_by_role("button", name="Left").click()
    page.get_by_role("button", name="Fill what is erased").click()
    begun(page, "picture")
    look = "JSON.parse(sessionStorage.getItem('picture page'))"
    before = page.evaluate(look)
    page.reload()
    expect(page.locator(".completions[data-done]")).to_be_visible(timeout=2 * SOON)
    assert page.get_by_label("Model").input_value() == before["model"] == "fashion"
    assert page.evaluate(look) == before


def test_the_page_of_the_api_describes_itself(page, base):
    page.goto(f"{base}api/docs")
    expect(page.get_by_text("/api/text/fill", exact=True)).to_be_visible(timeout=SOON)
    page.get_by_text("/api/models", exact=True).click()
    page.get_by_role("button", name="Try it").last.scroll_into_view_if_needed()


def test_translate_lock_a_word_blank_another_and_choose_a_third(page, base):
    page.goto(f"{base}#/translation")
    expect(page.get_by_label("The sentence to translate")).to_be_visible(timeout=SOON)
    if page.get_by_label("Model").count():
        page.get_by_label("Model").select_option("own-de-en")
    expect(page.get_by_role("heading", name="de → en")).to_be_visible(timeout=SOON)
    page.get_by_label("The sentence to translate").fill("Das Haus ist rot.")
    page.get_by_role("button", name="Translate", exact=True).click()
    words = page.locator(".words button")
    expect(words.first).to_be_visible(timeout=SOON)
    expect(page.locator(".pass").nth(1)).to_contain_text("pass 1")
    before = words.all_inner_texts()
    words.nth(1).click()
    others = page.get_by_label("What else could stand there")
    expect(others.locator("li").first).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Blank it").click()
    expect(words.nth(1)).to_have_text("___")
    words.nth(0).click()
    page.get_by_role("button", name="Lock").click()
    page.get_by_role("button", name="Fill the blanks").click()
    expect(page.locator(".words .blank")).to_have_count(0, timeout=SOON)
    after = words.all_inner_texts()
    assert (after[0], after[-1]) == (before[0], before[-1])  # only the blank was written
    expect(words.nth(0)).to_have_class("locked")
    page.get_by_role("button", name="Translate", exact=True).click()
    expect(page.locator(".pass").first).to_be_visible(timeout=SOON)
    assert before[0] in words.all_inner_texts()


def test_steps_are_compared_with_what_was_drawn_before(page, base):
    page.goto(f"{base}#/picture")
    expect(page.get_by_text(re.compile("What you see holds"))).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Fill what is erased").click()
    said = page.locator(".told")
    expect(said).to_contain_text("pixel by pixel", timeout=2 * SOON)
    expect(page.locator("figcaption").first).to_contain_text("bits")
    page.get_by_label("Sampler and steps").select_option("4")
    page.get_by_role("button", name="Fill what is erased").click()
    # two passes more say how uncertain each pixel is: over what is given, and over the pixels that are asked
    expect(said).to_contain_text("4 steps, temperature 1: 6 passes", timeout=2 * SOON)
    before = page.get_by_label("Earlier fills", exact=True)
    expect(before).to_contain_text("pixel by pixel")
    assert before.locator("canvas").count() == 6


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """axe-core from npm, in a folder of its own."""
    place = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    command = ["npm", "install", "--silent", "--prefix", str(place), "axe-core@4"]
    if subprocess.run(command, capture_output=True, timeout=300, check=False).returncode:
        pytest.skip("axe-core cannot be fetched here")
    return (place / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["table", "chorale", "picture", "text", "translation"])
def test_every_control_has_a_name_and_every_word_can_be_read(base, axe, name, dark):
    with browsing(base, dark=dark) as page:
        page.goto(f"{base}#/{name}")
        expect(page.locator("h1")).to_be_visible(timeout=SOON)
        if name == "table":
            expect(page.locator(".grid .line").first).to_be_visible(timeout=SOON)
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] })")
        wrong = [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found["violations"]]
        assert wrong == []


@pytest.mark.parametrize("name", ["table", "chorale", "picture", "text", "translation"])
def test_every_control_is_reached_by_the_keyboard(base, name):
    with browsing(base) as page:
        page.goto(f"{base}#/{name}")
        expect(page.get_by_role("main").get_by_role("button").first).to_be_enabled(timeout=SOON)
        page.wait_for_timeout(1500)
        wanted, seen = page.evaluate(CONTROLS), set()
        for _ in range(wanted + 20):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("[...document.querySelectorAll('main *')].indexOf(document.activeElement)"))
        assert len(seen - {-1}) >= wanted
