"""The page in a real browser: what it says when something is asked, slow, missing or out of date."""

import threading

import pytest

from ggpi.studio import episodes, server
from ggpi.studio.catalogue import directory

from .conftest import PATIENCE, TOKEN, WORLDS, running

pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, of the extra dev")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from .test_page import Page, page  # noqa: F401

pytestmark = pytest.mark.slow


def test_the_closed_loop_explains_policies(page):  # noqa: F811
    page.click('[data-depth="0"]')
    page.wait("studio.settings.depth === 0 && studio.agents[0].moments.at(-1).plans.length === 4")
    page.click("#why")
    page.wait("document.querySelectorAll('#explained tbody tr').length === 4")
    said = page.find("#explained").text
    assert said.count("then V") >= 4 and said.count("followed") == 1 and " → " not in said
    assert page.find("#explained tbody tr[data-chosen]").text.startswith(
        page.ask("studio.world.policies[studio.agents[0].moments.at(-1).policy]")
    )


class Slow:
    """Decisions wait until they are let through."""

    def __init__(self, monkeypatch):
        self.go, decide = threading.Event(), episodes.decide

        def slow(*args, **options):
            assert self.go.wait(PATIENCE)
            return decide(*args, **options)

        monkeypatch.setattr(episodes, "decide", slow)


def test_a_plan_that_takes_long_is_announced(page, monkeypatch):  # noqa: F811
    """Nothing can be saved before it is there."""
    slow = Slow(monkeypatch)
    page.browser.get("about:blank")
    page.browser.get(page.address)
    page.wait("studio.settings && document.getElementById('status').textContent")
    assert page.ask("[...document.querySelectorAll('[data-export]')].every((one) => one.disabled)")
    slow.go.set()
    page.wait("studio.agents[0]?.moments?.length > 0 && document.getElementById('status').textContent === ''")
    page.wait("[...document.querySelectorAll('[data-export]')].every((one) => !one.disabled)")
    slow.go.clear()
    page.click("#step")
    page.wait("document.getElementById('status').textContent === 'Planning…'")
    slow.go.set()
    page.wait(
        "studio.agents[0].moments.at(-1).t === 1 && document.getElementById('status').textContent === ''"
    )


def test_a_setting_that_changes_nothing_is_not_waited_for(page):  # noqa: F811
    page.click('[data-depth="2"]')
    page.browser.execute_async_script("setTimeout(arguments[0], 700)")
    page.wait("document.getElementById('status').textContent === ''")
    page.find("#formula").send_keys("exp(")
    page.browser.execute_async_script("setTimeout(arguments[0], 700)")
    page.wait(
        "document.getElementById('error').textContent && !document.getElementById('status').textContent"
    )


def test_a_film_reports_its_progress_and_leaves_the_page_alive(page):  # noqa: F811
    for t in (1, 2, 3):
        page.click("#step")
        page.wait(f"studio.agents[0].moments.at(-1).t === {t}")
    shares, turns = page.browser.execute_async_script(
        "const done = arguments[0], shares = []; let turns = 0; import('/static/export.js').then(async (files) => {"
        "const timer = setInterval(() => { turns += 1; }, 0); await files.gif(studio, (share) => shares.push(share));"
        "clearInterval(timer); done([shares, turns]); })"
    )
    assert shares == [0.25, 0.5, 0.75, 1] and turns > 0


def test_an_old_page_is_told_to_load_again(page, monkeypatch):  # noqa: F811
    monkeypatch.setattr(server, "VERSION", 99)
    page.browser.get("about:blank")
    page.browser.get(page.address)
    page.wait("document.getElementById('error').textContent.includes('reload this page')")
    assert "version 99" in page.find("#error").text


def test_a_server_with_another_token_says_so(browser):
    import uvicorn

    with running() as port:
        page = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.load()
    page.wait("document.getElementById('error').textContent.includes('does not answer')")
    other = uvicorn.Server(uvicorn.Config(server.app(WORLDS, token="other"), port=port, log_level="warning"))
    thread = threading.Thread(target=other.run, daemon=True)
    thread.start()
    try:
        page.wait("document.getElementById('error').textContent.includes('another token')")
        page.browser.get("about:blank")
        page.browser.get_log("browser")  # says that the token was rejected
    finally:
        other.should_exit = True
        thread.join(PATIENCE)


def test_the_address_holds_the_seed_and_the_place(page):  # noqa: F811
    page.click("#reset")
    page.wait("studio.settings.seed === 1 && location.hash.includes('seed=1')")
    canvas = page.find("#map-0")
    x, y = page.ask("studio.maps[0].toScreen([10.2, 9.8])")
    page.click('[data-tool="put"]')
    half = canvas.size["width"] / 2, canvas.size["height"] / 2
    chain = ActionChains(page.browser)
    chain.move_to_element_with_offset(canvas, round(x - half[0]), round(y - half[1])).click().perform()
    page.wait("location.hash.includes('put=')")
    anchor, python = page.ask("location.hash"), page.ask("studio.settings.python")
    assert "jax.random.key(1), 0), 0)" in python
    page.load(anchor)
    page.wait("studio.settings.put && studio.settings.seed === 1")
    assert page.ask("studio.settings.python") == python
    page.wait("String(studio.agents[0].moments.at(-1).place) === '10,10'")


def test_arrow_keys_turn_the_ant(browser):
    pytest.importorskip("mujoco", reason="the ant needs MuJoCo")
    with running(worlds={"ant": directory("ant-ghms", "ant")}) as port:
        page = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        page.load()
        page.wait("Boolean(studio.body)")
        before = page.ask("[studio.body.turn, studio.body.lift, studio.body.distance]")
        page.find("#body").send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_UP, "+")
        after = page.ask("[studio.body.turn, studio.body.lift, studio.body.distance]")
        assert after == pytest.approx([before[0] + 0.2, before[1] + 0.08, 0.87 * before[2]])
