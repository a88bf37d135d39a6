"""The page in a real browser, Debian's Chromium: what one clicks is planned for, at any width, and for everyone."""

import itertools
import json
import threading
import urllib.request
from pathlib import Path

import pytest

from .conftest import PATIENCE, TOKEN, WORLDS, running

pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, of the extra dev")
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

AXE = Path(__file__).parents[2] / "data" / "axe" / "axe.min.js"

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser, port):
    """The page with its first plan."""
    found = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
    found.load()
    yield found
    said = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    # a page of an earlier test may have looked for its server, which has gone
    assert not [line for line in said if "ws://" not in line and "ERR_CONNECTION_REFUSED" not in line], said


class Page:
    """What a person does with the page."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def load(self, anchor="", width=1440, height=900):
        self.browser.set_window_size(width, height)
        self.browser.get("about:blank")
        self.browser.get(self.address + anchor)
        self.wait("studio.agents[0]?.moments?.length > 0")

    def ask(self, script):
        return self.browser.execute_script(f"return {script}")

    def wait(self, script):
        try:
            WebDriverWait(self.browser, PATIENCE, 0.05).until(lambda browser: self.ask(script))
        except TimeoutException:
            said = [
                self.ask(f"document.getElementById('{name}').textContent") for name in ("error", "status")
            ]
            raise AssertionError(f"never {script}; the page says {said}") from None

    def find(self, name):
        return self.browser.find_element(By.CSS_SELECTOR, name)

    def click(self, name):
        self.find(name).click()

    def drag(self, start, end, tool="disc"):
        """On the map, in its own coordinates."""
        self.click(f'[data-tool="{tool}"]')
        canvas = self.find("#map-0")
        half = canvas.size["width"] / 2, canvas.size["height"] / 2
        (x0, y0), (x1, y1) = (self.ask(f"studio.maps[0].toScreen({list(place)})") for place in (start, end))
        chain = ActionChains(self.browser)
        chain.move_to_element_with_offset(canvas, round(x0 - half[0]), round(y0 - half[1])).click_and_hold()
        chain.move_by_offset(round(x1 - x0), round(y1 - y0)).release().perform()

    @property
    def formula(self):
        return self.ask("studio.settings.formula")


def test_clicking_a_reward_makes_a_plan(page):
    page.click("#clear")
    page.wait("studio.settings.formula === '0'")
    assert page.find("#empty").is_displayed()
    page.drag((9, 2), (10, 2))
    page.wait("studio.settings.formula.startsWith('disc(')")
    page.wait("studio.agents[0].moments.at(-1).plans[0].value > 0")
    assert page.formula in page.find("#python").get_attribute("textContent")
    assert len(page.browser.find_elements(By.CSS_SELECTOR, "#plans .row")) == 16
    page.drag((2, 9), (4, 11), "box")
    page.wait("studio.settings.formula.includes(' + box(')")
    page.click('[data-sign="-1"]')
    page.drag((8, 8), (10, 8), "line")
    page.wait("studio.settings.formula.includes(' - line(')")
    page.drag((9, 8), (9, 8), "erase")
    page.wait("!studio.settings.formula.includes('line(')")


def test_the_agent_moves_and_explains_itself(page):
    page.click("#step")
    page.wait("studio.agents[0].moments.at(-1).t === 1")
    page.click("#play")
    page.wait("studio.agents[0].moments.at(-1).t > 4")
    page.click("#play")
    page.click("#why")
    page.wait("document.querySelectorAll('#explained tbody tr').length > 3")
    assert "followed" in page.find("#explained").text
    page.click("#tab-models")
    page.click("#diagnose")
    page.wait("document.querySelectorAll('#diagnosed canvas').length === 8")


def test_two_agents_side_by_side(page):
    assert not page.find("#view-1").is_displayed() and not page.find("#why-1").is_displayed()
    page.browser.execute_script("second.value = '1'; second.onchange()")
    page.wait("studio.agents[1]?.moments.length > 0")
    assert page.find("#view-1").is_displayed()
    assert page.ask("studio.agents[1].moments[0].count") == 4
    page.click("#why-1")
    page.wait("document.querySelectorAll('#explained tbody tr').length === 4")
    assert "Agent 2, step 0" in page.find("#explained").text
    third = page.find("#explained tbody tr:nth-child(3)")
    ActionChains(page.browser).move_to_element(third).perform()
    page.wait("studio.maps[1].scene.selected > 0")
    plan = page.ask("studio.agents[1].moments[0].plans[studio.maps[1].scene.selected].policies")
    assert third.text.startswith(page.ask("studio.world.policies")[plan[0]])


def test_both_agents_have_their_plans(page):
    assert not page.find("#plans-1").is_displayed()
    page.browser.execute_script("second.value = '1'; second.onchange()")
    page.wait("document.querySelectorAll('#plans-1 .row').length === 4")
    assert page.find("#summary-1").text.startswith("right: 4 plans")
    assert page.find("#summary").text.startswith("left: 16 plans")
    ActionChains(page.browser).move_to_element(page.find("#plans-1 .row:nth-child(3)")).perform()
    page.wait("studio.maps[1].scene.selected > 0 && studio.maps[0].scene.selected === 0")


def test_a_shape_stays_under_the_pointer(page):
    """Answers of the server to earlier places do not move it back, and letters are not lost while one types."""
    canvas = page.find("#map-0")
    x, y = page.ask("studio.maps[0].toScreen([9, 7])")
    chain = ActionChains(page.browser, duration=0)
    half = canvas.size["width"] / 2, canvas.size["height"] / 2
    chain.move_to_element_with_offset(canvas, round(x - half[0]), round(y - half[1])).click_and_hold()
    for _ in range(60):
        chain.move_by_offset(-3, 1).pause(0.013)
    chain.release().perform()
    (dx, dy), scale = (-180, 60), page.ask("studio.maps[0].scale[0]")
    page.wait(
        "studio.settings.formula === studio.shapes.map(({ numbers: n }) => `disc(${n[0].toPrecision(4) * 1}, "
        "${n[1].toPrecision(4) * 1}, ${n[2]})`)[0]"
    )
    found = page.ask("studio.shapes[0].numbers")
    assert found == pytest.approx([9 + dx / scale, 7 - dy / scale, 1.6], abs=0.01)
    text = "-0.01*abs(x-1)-0.02*abs(y-2)"
    for letter in text:
        page.find("#formula").send_keys(letter)
    page.wait(f"studio.settings.formula.endsWith('({text})')")


def test_steps_that_were_not_sent_are_filled_in(page):
    """As if the page had been busy during steps 1 to 3: their places are on the trail, without plans."""
    for t in (1, 2, 3, 4):
        page.click("#step")
        page.wait(f"studio.agents[0].moments.at(-1).t === {t}")
    page.browser.execute_script("studio.agents[0].moments.splice(1)")
    page.click("#step")
    page.wait("studio.agents[0].moments.at(-1).t === 5")
    assert page.ask("studio.agents[0].moments.map(({ t }) => t)") == [0, 1, 2, 3, 4, 5]
    places = page.ask("studio.agents[0].moments.map(({ place }) => place)")
    assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) <= 1 for a, b in itertools.pairwise(places))
    assert page.ask("studio.agents[0].moments.map(({ isMissed }) => Boolean(isMissed))") == [
        *(False, True, True, True, True, False)
    ]
    page.browser.execute_script("moment.value = 2; moment.oninput()")
    page.wait("document.getElementById('summary').textContent.includes('not sent')")


def test_plans_that_were_dropped_are_pale(page):
    page.browser.execute_script("planner.value = 'halving'; planner.onchange()")
    page.wait("studio.agents[0].moments.at(-1).survivors.length > 0")
    page.wait("document.querySelectorAll('#plans .row.out').length === 14")
    assert "dropped" in page.find("#plans .row.out").get_attribute("aria-label")


def test_a_moment_is_chosen_on_the_strip(page):
    for t in (1, 2, 3):
        page.click("#step")
        page.wait(f"studio.agents[0].moments.at(-1).t === {t}")
    strip = page.find("#strip")
    left = round(strip.size["width"] * (1.5 / 40 - 0.5))
    ActionChains(page.browser).move_to_element_with_offset(strip, left, 0).click().perform()
    assert page.ask("studio.scrub") == 1 and page.ask("Number(document.getElementById('moment').value)") == 1


def test_a_world_that_cannot_be_opened_leaves_the_old_one(browser):
    def broken():
        raise ValueError("there are no models yet")

    with running(worlds={**WORLDS, "broken": broken}) as port:
        page = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.load()
        page.browser.execute_script("world.value = 'broken'; world.onchange()")
        page.wait("!document.getElementById('error').hidden")
        assert page.find("#error").text == "there are no models yet"
        assert page.find("#world").get_attribute("value") == "four-rooms"
        page.drag((9, 2), (10, 2))
        page.wait("studio.settings.formula.includes(' + disc(')")
        page.browser.execute_script("samples.value = 20; samples.onchange()")
        page.wait("studio.settings.samples === 20")


def test_a_setting_that_is_rejected_is_not_shown(page):
    page.browser.execute_script(
        "planner.append(new Option('magic')); planner.value = 'magic'; planner.onchange()"
    )
    page.wait("!document.getElementById('error').hidden")
    assert page.find("#planner").get_attribute("value") == "exhaustive"


def test_the_address_holds_everything(page):
    page.load(
        "#world=point-mass&reward=disc(0.3%2C+0.3%2C+0.2)+%2B+(-abs(vx))&depth=1&samples=40&speed=2&repeat=1"
    )
    page.wait("studio.settings.depth === 1 && studio.settings.samples === 40")
    assert page.ask("studio.settings.speed === 2 && studio.settings.repeat")
    assert "speed=2&repeat=1" in page.browser.current_url
    assert page.formula == "disc(0.3, 0.3, 0.2) + (-abs(vx))"
    assert page.find("#formula").get_attribute("value") == "-abs(vx)"
    assert page.ask("studio.shapes.length") == 1
    assert page.find("#world").get_attribute("value") == "point-mass"
    assert "ggpi play point-mass-ghms" in page.find("#command").get_attribute("textContent")


def test_an_address_may_leave_settings_out(page):
    page.load("#world=point-mass&depth=1")
    page.wait("studio.settings.depth === 1")
    assert page.formula == "disc(0.6, 0.6, 0.2)" and page.ask("studio.settings.samples") == 100


def test_a_mistake_in_a_formula_is_shown_and_forgotten(page):
    page.find("#formula").send_keys("exp(")
    page.wait("!document.getElementById('error').hidden")
    assert "expected" in page.find("#error").text
    page.find("#formula").send_keys("-x)")
    page.wait("document.getElementById('error').hidden")


def test_keys_do_what_buttons_do(page):
    body = page.find("body")
    body.send_keys("1")
    page.wait("studio.settings.depth === 1")
    body.send_keys(".")
    page.wait("studio.agents[0].moments.at(-1).t === 1")
    body.send_keys("n")
    page.wait("studio.agents[0].moments.at(-1).t === 0")
    count = page.ask("studio.shapes.length")
    page.find("#map-0").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ENTER)
    page.wait(f"studio.shapes.length === {count + 1}")
    page.find("#map-0").send_keys(Keys.DELETE)
    page.wait(f"studio.shapes.length === {count}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everyone_can_use_it(page, theme):
    """No violation of the rules of axe-core, in any tab, with answers in them."""
    page.browser.execute_script(f"localStorage.setItem('theme', '{theme}')")
    page.load()
    page.click("#why")
    page.wait("document.querySelectorAll('#explained tbody tr').length > 3")
    page.click("#tab-models")
    page.click("#diagnose")
    page.wait("document.querySelectorAll('#diagnosed canvas').length === 8")
    page.browser.execute_script(AXE.read_text("utf-8"))
    for tab in ("plans", "why", "models", "code", "export"):
        page.click(f"#tab-{tab}")
        found = violations(page)
        assert found == [], (tab, found)


def violations(page):
    """Of the rules of axe-core, which has been loaded, with the elements that violate them."""
    return page.browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(({ violations }) => done(violations.map("
        "({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 120))])))"
    )


@pytest.mark.parametrize(("width", "height"), [(500, 900), (1024, 768), (3840, 2160)])
def test_it_fits_any_width(page, width, height):
    """Chromium's windows are at least 500 wide; the narrowest phones are emulated below."""
    page.load(width=width, height=height)
    assert page.ask("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.ask("document.getElementById('map-0').clientWidth > 240")


def test_it_fits_a_phone(page):
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.load()
        assert page.ask("innerWidth") == 360 and page.ask("document.scrollingElement.scrollWidth <= 360")
        small = page.ask(
            "[...document.querySelectorAll('button, select')]"
            ".filter((one) => one.offsetParent && one.offsetHeight < 26)"
            ".map((one) => one.outerHTML)"
        )
        assert small == []
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_fingers_draw_and_zoom(page):
    """One finger draws; two zoom, and leave rewards and the agent where they are, whatever the tool."""
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    page.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})

    def touch(kind, *places):
        box = page.ask("document.getElementById('map-0').getBoundingClientRect()")
        points = [{"x": box["x"] + x, "y": box["y"] + y, "id": i} for i, (x, y) in enumerate(places)]
        page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    try:
        page.load()
        count = page.ask("studio.shapes.length")
        x, y = page.ask("studio.maps[0].toScreen([2, 10])")
        touch("touchStart", (x, y))
        touch("touchMove", (x + 20, y))
        touch("touchEnd")
        page.wait(f"studio.shapes.length === {count + 1}")
        assert page.ask("studio.shapes.at(-1).numbers[2] * studio.maps[0].scale[0]") == pytest.approx(
            20, abs=1
        )
        for tool in ("erase", "put", "disc"):
            page.click(f'[data-tool="{tool}"]')
            zoom, moments = page.ask("studio.maps[0].view.zoom"), page.ask("studio.agents[0].moments.length")
            x, y = page.ask("studio.maps[0].toScreen([2, 10])")
            touch("touchStart", (x, y))
            touch("touchStart", (x, y), (x + 40, y))
            touch("touchMove", (x - 5, y), (x + 55, y))
            touch("touchEnd", (x - 5, y))
            touch("touchMove", (x - 9, y))
            touch("touchEnd")
            assert page.ask("studio.maps[0].view.zoom") == pytest.approx(1.5 * zoom, rel=0.05)
            assert page.ask("studio.shapes.length") == count + 1
            assert page.ask("studio.agents[0].moments.length") == moments
            page.click("#fit")
    finally:
        page.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_connects_again(browser):
    """The server is stopped and started again on the same port; the page resumes with its own reward."""
    import uvicorn

    from ggpi.studio.server import app

    with running() as port:
        page = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.load()
        page.find("#formula").send_keys("-0.5*x")
        page.wait("studio.settings.formula.includes('-0.5*x')")
    page.wait("document.getElementById('connection').dataset.state === 'lost'")
    page.browser.execute_script("studio.settings = null; studio.agents = []")
    server = uvicorn.Server(uvicorn.Config(app(WORLDS, token=TOKEN), port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        page.wait("studio.settings?.formula.includes('-0.5*x') && studio.agents[0]?.moments?.length > 0")
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def test_a_page_that_is_left_keeps_no_planner(page, port):
    """Browsers keep pages for the back button, with their connections; this one plans again when it is back."""

    def count():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            found = json.load(answer)
        return found["sessions"], found["planners"]

    wait = WebDriverWait(page.browser, PATIENCE, 0.05)
    wait.until(lambda _: len(set(count())) == 1)  # planners of earlier tests have ended
    others, _ = count()
    page.browser.execute_script("studio.agents[0].moments[0].isOld = true")
    page.browser.get("data:text/html,elsewhere")
    wait.until(lambda _: count() == (others - 1, others - 1))
    page.browser.back()
    page.wait(
        "studio.agents[0]?.moments?.length > 0 && !studio.agents[0].moments[0].isOld"
    )  # it is connected again
    page.click("#step")
    page.wait("studio.agents[0].moments.at(-1).t >= 1")


def test_files_are_made_in_the_page(page):
    """A GIF of the episode starts and ends as GIFs do, and has a picture for each step."""
    for t in (1, 2, 3):
        page.click("#step")
        page.wait(f"studio.agents[0].moments.at(-1).t === {t}")
    script = (
        "const done = arguments[0]; import('/static/export.js').then(async (files) => { const blob = await "
        "files.gif(studio, () => {}); const data = [...new Uint8Array(await blob.arrayBuffer())];"
        "done([String.fromCharCode(...data.slice(0, 6)), data.at(-1), data.length,"
        " (await files.json(studio).text()).length,"
        " await (await files.plansPng(files.svg(document.getElementById('plans')))).slice(1, 4).text()])})"
    )
    magic, last, size, numbers, plans = page.browser.execute_async_script(script)
    assert plans == "PNG" and magic == "GIF89a" and last == 0x3B and size > 2_000 and numbers > 500
    if not page.find('[data-export="mp4"]').get_attribute("hidden"):
        script = (
            "const done = arguments[0]; import('/static/export.js').then(async (files) => "
            "done(String.fromCharCode(...new Uint8Array(await (await files.mp4(studio)).arrayBuffer()).slice(4, 8))))"
        )
        assert page.browser.execute_async_script(script) == "ftyp"
