"""More of what people do with the page: recordings, copies, sliders, several tabs."""

import json
import re
import urllib.request

import pytest

from .conftest import TOKEN, running

pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, of the extra dev")
from selenium.webdriver.common.action_chains import ActionChains

from .test_page import Page, page  # noqa: F401

pytestmark = pytest.mark.slow


def test_a_recording_is_shown_and_cannot_be_changed(browser, tmp_path):
    path = tmp_path / "run.jsonl"
    with running(record=path) as port:
        live = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        live.load()
        for t in (1, 2):
            live.click("#step")
            live.wait(f"studio.agents[0].moments.at(-1).t === {t}")
        places = live.ask("studio.agents[0].moments.map(({ place }) => place)")
        live.browser.get("about:blank")
    with running(replay=path) as port:
        shown = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        shown.load()
        shown.wait("studio.agents[0].moments.at(-1).t === 2")
        assert shown.ask("studio.agents[0].moments.map(({ place }) => place)") == places
        assert len(shown.browser.find_elements("css selector", "#plans .row")) == 16
        assert shown.find("#error").text == "A recording: nothing can be changed."
        shown.drag((9, 2), (10, 2))
        shown.find("body").send_keys(" ")
        assert shown.ask("studio.shapes.length") == 1 and not shown.ask("studio.isPlaying")


def test_the_agent_is_put_where_one_clicks(page):  # noqa: F811
    page.drag((2, 9), (2, 9), "put")
    page.wait("String(studio.agents[0].moments.at(-1).place) === '2,9'")
    assert page.ask("studio.agents[0].moments.length") == 1 and page.ask("studio.shapes.length") == 1
    page.drag((6, 11), (6, 11), "put")
    page.wait("!document.getElementById('error').hidden")
    assert page.find("#error").text == "the agent cannot be put there"
    assert page.ask("studio.agents[0].moments.at(-1).place") == [2, 9]


def test_successes_are_counted(page):  # noqa: F811
    page.browser.execute_script("speed.value = '0'; speed.onchange()")
    page.click("#play")
    page.wait("document.getElementById('tally').textContent === '1/1 reached'")
    page.click("#play")
    page.wait("!studio.isPlaying")
    page.browser.execute_script("second.value = '1'; second.onchange()")
    page.click("#repeat")
    page.wait("studio.settings.repeat")
    page.find("body").send_keys(" ")
    page.wait(
        "/^left \\d+\\/[2-9] · right \\d+\\/[2-9] reached$/.test(document.getElementById('tally').textContent)"
    )


def test_the_pace_is_said_while_it_plays(page):  # noqa: F811
    assert page.find("#pace").text == ""
    page.click("#play")
    page.wait("document.getElementById('pace').textContent.length > 0")
    assert re.fullmatch(r"\d+\.\d+× real time", page.find("#pace").text)
    page.click("#play")
    assert page.find("#pace").text == ""


def test_code_and_links_are_copied(page):  # noqa: F811
    granted = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    page.browser.execute_cdp_cmd("Browser.grantPermissions", granted)
    page.load("#world=point-mass&depth=1&samples=20")
    page.wait("studio.settings.samples === 20 && studio.settings.command")
    page.click("#tab-code")
    read = (
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
    )
    for name in ("python", "command"):
        page.click(f'[data-copy="{name}"]')
        page.wait(f"document.querySelector('[data-copy=\"{name}\"]').textContent === 'Copied'")
        assert page.browser.execute_async_script(read) == page.find(f"#{name}").get_attribute("textContent")
    page.click("#share")
    page.wait("document.getElementById('share').textContent === 'Copied'")
    assert page.browser.execute_async_script(read) == page.browser.current_url
    page.wait("document.getElementById('share').textContent === 'Copy link'")


def test_two_tabs_have_agents_of_their_own(page, port):  # noqa: F811
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    try:
        other = Page(page.browser, page.address)
        other.load("#world=four-rooms&depth=1")
        other.wait("studio.settings.depth === 1")
        other.click("#step")
        other.wait("studio.agents[0].moments.at(-1).t === 1")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert json.load(answer)["sessions"] >= 2
        page.browser.switch_to.window(first)
        assert page.ask("studio.settings.depth") == 2 and page.ask("studio.agents[0].moments.at(-1).t") == 0
        page.drag((9, 2), (10, 2))
        page.wait("studio.settings.formula.includes(' + disc(')")
        page.browser.switch_to.window(next(one for one in page.browser.window_handles if one != first))
        assert other.ask("studio.shapes.length") == 1 and " + disc(" not in other.formula
        page.browser.close()
    finally:
        page.browser.switch_to.window(first)


@pytest.mark.parametrize("name", ["samples", "gamma", "alpha"])
def test_sliders_are_dragged(page, name):  # noqa: F811
    """What is said beside a slider is what the agent plans with."""
    slider, before = page.find(f"#{name}"), page.ask(f"studio.settings.{name}")
    least, most = (float(slider.get_attribute(end)) for end in ("min", "max"))
    place = round((before - least) / (most - least) * slider.size["width"] - slider.size["width"] / 2)
    chain = ActionChains(page.browser).move_to_element_with_offset(
        slider, max(place, -slider.size["width"] // 2 + 8), 0
    )
    chain.click_and_hold().move_by_offset(40 if place < 0 else -40, 0).release().perform()
    page.wait(f"studio.settings.{name} !== {before}")
    after = page.ask(f"studio.settings.{name}")
    assert (after > before) == (place < 0) and after == pytest.approx(float(slider.get_attribute("value")))
    assert float(page.find(f"#{name}-said").text) == pytest.approx(after, rel=0.01)
    page.wait("studio.agents[0].moments.at(-1).plans.length === 16")
