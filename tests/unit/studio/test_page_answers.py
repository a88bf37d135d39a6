"""The page in a real browser: what it says when something is asked, slow, missing or out of date."""

import pytest

from .conftest import TOKEN

pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, of the extra dev")
from .test_page import Page

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser, port):
    """The page with its first plan."""
    found = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
    found.load()
    yield found
    said = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not [line for line in said if "ws://" not in line], said


def test_the_closed_loop_explains_policies(page):
    page.click('[data-depth="0"]')
    page.wait("studio.settings.depth === 0 && studio.agents[0].moments.at(-1).plans.length === 4")
    page.click("#why")
    page.wait("document.querySelectorAll('#explained tbody tr').length === 4")
    said = page.find("#explained").text
    assert said.count("then V") >= 4 and said.count("followed") == 1 and " → " not in said
    assert page.find("#explained tbody tr[data-chosen]").text.startswith(
        page.ask("studio.world.policies[studio.agents[0].moments.at(-1).policy]")
    )
