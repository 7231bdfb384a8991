"""Fingers, keys, second thoughts and narrow screens, in a real browser: what people do who have not read the guide."""

import json
import re

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import expect

from benchmarks.studio_browser import CHROMIUM, browsing, running

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="no chromium here")]
SOON = 60_000
"""Milliseconds to wait at most; machines are busy."""


@pytest.fixture(scope="module")
def base():
    with running() as (address, _):
        yield address


@pytest.fixture
def page(base):
    with browsing(base, refusals=True) as one:
        yield one


def visit(page, base, name):
    page.goto(f"{base}#/{name}")
    expect(page.locator("h1")).to_have_text(name.capitalize(), timeout=SOON)


def piece(page):
    """The chorale of the page, which is kept from its first change on."""
    return json.loads(page.evaluate("sessionStorage.getItem('chorale page')"))


def at(page, step, pitch):
    """Where a step and a pitch of the roll are; the highest pitch in view is 78."""
    box = page.locator(".roll canvas").bounding_box()
    wide = (box["width"] - 46) / 64
    return box["x"] + 46 + (step + 0.5) * wide, box["y"] + 24 + (78 - pitch + 0.5) * 11


def drag(page, *places):
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=12)
    page.mouse.up()


@pytest.mark.parametrize("width", [320, 390, 641])
def test_all_pages_are_in_view_whatever_the_width(base, width):
    with browsing(base, width=width, touch=width < 500) as page:
        visit(page, base, "text")
        ends = page.evaluate(
            "[...document.querySelectorAll('#tabs a')].map((one) => one.getBoundingClientRect().right)"
        )
        assert len(ends) == 5
        room = page.evaluate("document.getElementById('tabs').getBoundingClientRect().right")
        assert max(ends) <= min(room, width)


def test_two_fingers_push_the_roll_along_and_one_draws(base):
    with browsing(base, width=390, touch=True) as page:
        visit(page, base, "chorale")
        expect(page.get_by_text("Two fingers push the roll along.")).to_be_visible()
        canvas, undo = page.locator(".roll canvas"), page.get_by_role("button", name="Undo")
        canvas.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
        box, wire = canvas.bounding_box(), page.context.new_cdp_session(page)
        x, y = box["x"] + 250, box["y"] + 300
        far = "document.querySelector('.roll').scrollLeft"

        def touch(kind, *places):
            points = [{"x": one[0], "y": one[1], "id": n} for n, one in enumerate(places)]
            wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", (x, y))
        touch("touchStart", (x, y), (x + 40, y))
        for n in range(1, 6):
            touch("touchMove", (x - 20 * n, y), (x + 40 - 20 * n, y))
        touch("touchEnd")
        assert page.evaluate(far) == pytest.approx(100, abs=3)
        expect(undo).to_be_disabled()  # the first finger has drawn nothing
        touch("touchStart", (x, y))
        touch("touchMove", (x + 50, y))
        touch("touchEnd")
        assert page.evaluate(far) == pytest.approx(100, abs=3)
        expect(undo).to_be_enabled()


def test_the_moving_hand_pushes_the_roll_where_no_note_is(base):
    with browsing(base, width=390) as page:
        visit(page, base, "chorale")
        page.get_by_role("button", name="Move", exact=True).click()
        page.locator(".roll canvas").evaluate("(one) => one.scrollIntoView({ block: 'center' })")
        box = page.locator(".roll canvas").bounding_box()
        x, y = box["x"] + 300, box["y"] + 300
        drag(page, (x, y), (x - 120, y))
        assert page.evaluate("document.querySelector('.roll').scrollLeft") == pytest.approx(120, abs=3)
        expect(page.get_by_role("button", name="Undo")).to_be_disabled()


def test_a_drag_is_one_step_for_undo_and_eats_nothing_on_its_way(page, base):
    visit(page, base, "chorale")
    page.get_by_label("Tempo").fill("90")
    page.get_by_label("Tempo").press("Tab")
    before = piece(page)
    drag(page, at(page, 1, 71), at(page, 40, 71), at(page, 1, 71))  # over other notes and back
    assert piece(page)["voices"] == before["voices"]
    drag(page, at(page, 1, 71), at(page, 40, 71), at(page, 1, 60))
    moved = piece(page)["voices"][0]
    assert moved[0] == {"start": 0, "length": 4, "pitch": 60}
    assert moved[1:] == before["voices"][0][1:]
    page.get_by_role("button", name="Undo").click()
    assert piece(page)["voices"] == before["voices"]
    page.get_by_label("Voices and bars to paint away").fill("alto 1-2, tenor 3")
    page.get_by_role("button", name="Paint away").last.click()
    expect(page.get_by_text("Painted away: alto 1-2, tenor 3.")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Undo").click()
    assert json.loads(page.evaluate("sessionStorage['chorale marks']"))["erased"] == []


def test_the_other_button_of_a_mouse_draws_nothing(page, base):
    visit(page, base, "chorale")
    page.mouse.click(*at(page, 20, 50), button="right")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.mouse.click(*at(page, 20, 50))
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()


def test_keys_bring_their_place_into_view(base):
    with browsing(base, width=390) as page:
        visit(page, base, "chorale")
        roll = page.get_by_label(re.compile("Piano roll"))
        roll.focus()
        far = "document.querySelector('.roll').scrollLeft"
        for _ in range(16):
            page.keyboard.press("ArrowRight")
        assert page.evaluate(far) > 200
        for _ in range(16):
            page.keyboard.press("ArrowLeft")
        assert page.evaluate(far) == 0
        tall = roll.bounding_box()["height"]
        for _ in range(17):  # from A4, above all notes
            page.keyboard.press("ArrowUp")
        assert roll.bounding_box()["height"] > tall


def test_what_is_refused_leaves_no_empty_card_and_takes_no_alternative_away(page, base):
    visit(page, base, "chorale")
    rewrite, card = page.get_by_role("button", name="Rewrite erased"), page.locator(".alternatives-card")
    rewrite.click()
    expect(page.get_by_role("alert")).to_contain_text("expected something painted away", timeout=SOON)
    expect(card).to_be_hidden()
    page.get_by_label("Bars", exact=True).fill("1")
    page.get_by_role("button", name="New", exact=True).click()
    expect(page.locator(".alternative")).to_have_count(4, timeout=2 * SOON)
    expect(page.locator("#said")).to_have_text("Done.", timeout=SOON)
    rewrite.click()
    expect(page.get_by_role("alert")).to_contain_text("expected something painted away", timeout=SOON)
    expect(page.locator(".alternative")).to_have_count(4)
    expect(page.locator(".alternatives")).to_have_attribute("aria-busy", "false")


def test_a_double_click_leaves_one_job(page, base):
    visit(page, base, "text")
    begun, ended = [], []
    page.on("request", lambda one: begun.append(one.headers["x-job"]) if one.url.endswith("/write") else None)
    page.on("request", lambda one: ended.append(one.url.split("/")[-1]) if one.method == "DELETE" else None)
    page.locator("summary").click()
    page.get_by_label("Length to write").fill("60")
    page.get_by_label("Your text").fill("The moon ")
    page.get_by_role("button", name="Write on").dblclick()
    expect(page.get_by_role("button", name="Keep it")).to_be_enabled(timeout=2 * SOON)
    assert len(begun) == 2
    assert ended == begun[:1]
    expect(page.get_by_role("progressbar")).to_have_count(0)


def test_surprises_come_only_where_they_are_looked_for(page, base):
    visit(page, base, "table")
    page.get_by_role("button", name="Fill the holes").click()
    expect(page.locator(".grid .answer").first).to_be_visible(timeout=2 * SOON)
    held = []
    page.route("**/surprises", lambda route: held.append(route))
    page.get_by_role("tab", name="Surprises").click()
    page.get_by_role("tab", name="Cell").click()
    page.evaluate("document.getElementById('said').textContent = ''")
    held[0].continue_()
    expect(page.locator("#said")).to_have_text("Done.", timeout=SOON)
    expect(page.get_by_role("tabpanel")).to_have_text("Click any cell of the table.")
    page.get_by_role("tab", name="Surprises").click()
    expect(page.get_by_role("heading", name="Most surprising first")).to_be_visible()
    assert len(held) == 1


def test_another_picture_ends_what_is_drawn_for_the_one_before(page, base):
    visit(page, base, "picture")
    expect(page.get_by_text(re.compile("What you see holds"))).to_be_visible(timeout=SOON)
    ended = []
    page.on("request", lambda one: ended.append(one.url) if one.method == "DELETE" else None)
    page.get_by_role("button", name="Fill what is erased").click()
    expect(page.locator(".progress")).to_contain_text("left", timeout=SOON)
    page.get_by_role("button", name="Choose picture 4").click()
    expect(page.locator(".progress")).to_have_count(0)
    page.wait_for_timeout(1000)
    assert len(ended) == 1
    same = """() => {
        const pixels = (one) => one.getContext("2d").getImageData(0, 0, 28, 14).data.join();
        const [big, ...all] = [...document.querySelectorAll(".pixels.big, .completions canvas")].map(pixels);
        return all.every((one) => one === big);
    }"""
    assert page.evaluate(same)


@pytest.mark.parametrize(
    ("name", "field", "press", "said"),
    [
        ("text", "Length to write", "Write on", "length: .*1"),
        ("translation", "Passes", "Translate", "passes: .*1"),
        ("chorale", "Bars", "New", "bars: .*1"),
    ],
)
def test_a_nought_is_refused_and_not_mended(page, base, name, field, press, said):
    visit(page, base, name)
    if name == "text":
        page.locator("summary").click()
    page.get_by_label(field, exact=True).fill("0")
    page.get_by_role("button", name=press, exact=True).click()
    expect(page.get_by_role("alert")).to_have_text(re.compile(said), timeout=SOON)
    expect(page.locator(".written, .alternative")).to_have_count(0)


def test_a_job_that_is_not_known_any_more_leaves_the_page_as_it_begins(page, base):
    visit(page, base, "text")
    page.evaluate("sessionStorage['job text write'] = 'x'.repeat(20)")
    page.reload()
    expect(page.get_by_text(re.compile("the likeliest fills appear here"))).to_be_visible(timeout=SOON)
    expect(page.locator(".written")).to_have_count(0)


def test_fills_come_into_view_on_a_phone_and_are_told(base):
    with browsing(base, width=390, height=700) as page:
        visit(page, base, "text")
        page.get_by_role("button", name="Fill the blanks").click()
        expect(page.get_by_role("progressbar")).to_be_in_viewport(timeout=SOON)
        expect(page.locator(".fills li").first).to_be_in_viewport(timeout=SOON)
        expect(page.get_by_role("status").filter(has_text="Done.")).to_have_count(1)


def test_another_page_begins_at_its_top_without_the_drawer_of_the_one_before(base):
    with browsing(base, width=390) as page:
        visit(page, base, "text")
        page.get_by_label("Your text").fill("it was the best of times")
        page.get_by_role("button", name="How?").first.click(timeout=SOON)
        expect(page.get_by_label("How this was computed")).to_be_visible()
        page.evaluate("scrollTo(0, 400)")
        page.evaluate("location.hash = '#/chorale'")
        expect(page.locator("h1")).to_have_text("Chorale")
        expect(page.get_by_label("How this was computed")).to_be_hidden()
        assert page.evaluate("scrollY") == 0


def test_a_page_that_loads_late_does_not_take_the_place_of_the_one_chosen_since(page, base):
    visit(page, base, "text")
    held = []
    page.route("**/translation/page.js", lambda route: held.append(route))
    page.get_by_role("link", name="Translation").click()
    page.get_by_role("link", name="Chorale").click()
    expect(page.locator("h1")).to_have_text("Chorale", timeout=SOON)
    held[0].continue_()
    page.wait_for_timeout(1500)
    expect(page.locator("h1")).to_have_text("Chorale")


def test_skipping_to_the_page_is_no_page(page, base):
    visit(page, base, "text")
    page.get_by_text("Skip to the page").press("Enter")
    assert page.evaluate("[location.hash, document.activeElement.id]") == ["#/text", "main"]
    page.goto(f"{base}#main")
    page.reload()
    expect(page.locator("h1")).to_have_text("Table", timeout=SOON)


def test_the_menu_of_exports_is_gone_through_by_keys(page, base):
    visit(page, base, "chorale")
    export = page.get_by_role("button", name="Export")
    export.press("Enter")
    expect(page.get_by_role("menuitem", name="MIDI")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Picture (PNG)")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    expect(export).to_be_focused()


@pytest.mark.parametrize(("name", "label"), [("table", "A table"), ("chorale", "A piece"), ("picture", "A picture")])
def test_a_file_that_was_refused_may_be_mended_and_opened_again(page, base, name, label):
    """A field that still names the file does not tell when the same one is chosen again."""
    visit(page, base, name)
    field = page.get_by_label(f"{label} to open")
    field.set_input_files({"name": "odd.xyz", "mimeType": "text/plain", "buffer": b"?"}, timeout=SOON)
    expect(page.get_by_text(re.compile("got 'odd.xyz'"))).to_be_visible(timeout=SOON)
    assert field.input_value() == ""
