"""What the page draws, pixel by pixel: the ant, values, signs, ticks; and how one looks closer."""

import pytest

from ggpi.studio.catalogue import directory

from .conftest import TOKEN, running

pytest.importorskip("selenium.webdriver", reason="the page is tested with selenium, of the extra dev")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

from .test_page import Page, page  # noqa: F401

pytestmark = pytest.mark.slow

ANT = """(() => {
  const { body } = studio;
  body.render();
  const { width, height } = body.canvas, pen = new OffscreenCanvas(width, height).getContext("2d");
  pen.drawImage(body.canvas, 0, 0);
  const pixels = new Uint32Array(pen.getImageData(0, 0, width, height).data.buffer);
  let mixed = 0;
  for (const pixel of pixels) mixed = (Math.imul(mixed, 31) + pixel) | 0;
  const [torso, ...legs] = body.parts.map(({ position: { x, y, z } }) => [x, y, z]);
  return { colours: new Set(pixels).size, mixed, legs: legs.map((leg) => leg.map((part, k) => part - torso[k])) };
})()"""
"""What is seen of the ant, and where its legs are around its torso."""

INSIDE = """
const [x, y] = arguments, map = studio.maps[0], size = map.factor * devicePixelRatio;
delete map.scene.moment;
map.scene.trail = [];
map.paint();
const [left, top] = map.toScreen([x + 0.1, y + 0.4]), side = 0.3 * map.scale[0];
const { data } = map.canvas.getContext("2d").getImageData(size * left, size * top, size * side, size * side);
const found = new Set();
for (let i = 0; i < data.length; i += 4) found.add(data.slice(i, i + 3).join());
return [...found].map((one) => one.split(",").map(Number));"""
"""The colours of a part of a cell where there are no lines of the grid, without the agent and its plan."""

TEXTS = """(() => {
  const map = studio.maps[0], pen = map.canvas.getContext("2d"), found = [];
  pen.fillText = (...parts) => { found.push(parts); CanvasRenderingContext2D.prototype.fillText.apply(pen, parts); };
  map.paint();
  delete pen.fillText;
  return found;
})()"""


def test_the_ant_is_drawn_and_moves(browser):
    pytest.importorskip("mujoco", reason="the ant needs its extra")
    with running(worlds={"ant": directory("ant-ghms", "ant")}) as port:
        there = Page(browser, f"http://127.0.0.1:{port}/?token={TOKEN}")
        there.load("#world=ant&reward=disc(4%2C4%2C0.5)&depth=1&samples=10")
        there.wait(
            "studio.body?.parts?.length > 8 && !studio.body.isMoving && studio.settings.samples === 10"
        )
        before = there.ask(ANT)
        assert before["colours"] > 50, "lit spheres and capsules have many shades"
        there.click("#step")
        there.wait("studio.agents[0].moments.at(-1).t === 1 && !studio.body.isMoving")
        after = there.ask(ANT)
        assert after["mixed"] != before["mixed"]
        moved = [
            abs(a - b)
            for old, new in zip(before["legs"], after["legs"], strict=True)
            for a, b in zip(old, new, strict=True)
        ]
        assert max(moved) > 0.01
        canvas, turn = there.find("#body"), there.ask("studio.body.turn")
        ActionChains(browser).drag_and_drop_by_offset(canvas, 60, 0).perform()
        assert there.ask("studio.body.turn") == pytest.approx(turn - 0.48, abs=0.05)
        assert there.ask(ANT)["mixed"] != after["mixed"]


def test_values_of_the_closed_loop_are_a_heat_map(page):  # noqa: F811
    """Nearly every cell has the colour of its V; lines, the reward and the agent cover parts of some."""
    page.click('[data-depth="0"]')
    page.wait("studio.settings.depth === 0 && studio.maps[0].scene.values?.numbers?.length === 104")
    script = """
        const done = arguments[0];
        import("/static/palette.js").then(({ heat }) => {
          const map = studio.maps[0], { places, numbers } = map.scene.values, size = map.factor * devicePixelRatio;
          map.paint();
          const low = Math.min(...numbers), high = Math.max(...numbers), pen = map.canvas.getContext("2d");
          const found = [...numbers].map((v, i) => {
            const [x, y] = map.toScreen([places[2 * i] + 0.4, places[2 * i + 1] - 0.4]);
            const seen = pen.getImageData(size * x, size * y, 1, 1).data;
            const due = heat((v - low) / (high - low)).match(/\\d+/g);
            return due.every((part, k) => Math.abs(part - seen[k]) <= 2);
          });
          done({ share: found.filter(Boolean).length / found.length, low, high });
        });"""
    found = page.browser.execute_async_script(script)
    assert found["share"] > 0.75 and found["high"] > 2 * found["low"] > 0
    texts = [text for text, *_ in page.ask(TEXTS)]
    assert any(text.startswith("V ") for text in texts)


def test_negative_rewards_are_hatched(page):  # noqa: F811
    page.click("#clear")
    page.find("#formula").send_keys("x - 6")
    page.wait("studio.settings.formula === 'x - 6' && studio.maps[0].scene.rewards?.formula === 'x - 6'")
    (above,) = page.browser.execute_script(INSIDE, 11, 11)
    below = page.browser.execute_script(INSIDE, 1, 11)
    assert above[1] > above[0], "green"
    assert len(below) > 3, "lines and what is between them"


def test_ticks_and_names_of_axes_are_drawn(page):  # noqa: F811
    """Each tick is where its number is, inside the canvas."""
    texts = page.ask(TEXTS)
    words = [text for text, *_ in texts]
    assert "x →" in words and "↑ y" in words
    width, height = page.ask("[studio.maps[0].width, studio.maps[0].height]")
    assert all(0 <= x <= width and 0 <= y <= height for _, x, y in texts)
    below = [(float(text), x) for text, x, y in texts if text.isdigit() and y > height - 10]
    beside = [(float(text), y) for text, x, y in texts if text.isdigit() and x < 10]
    assert len(below) >= 4 and len(beside) >= 4
    for number, x in below:
        assert page.ask(f"studio.maps[0].toScreen([{number}, 0])[0]") == pytest.approx(x, abs=0.5)
    for number, y in beside:
        assert page.ask(f"studio.maps[0].toScreen([0, {number}])[1]") == pytest.approx(y - 4, abs=0.5)


def test_one_looks_closer_and_comes_back(page):  # noqa: F811
    """The wheel zooms at the pointer, the tool Pan moves the plane, Fit shows all of it."""
    canvas, shown = page.find("#map-0"), "[...studio.maps[0].view.centre, studio.maps[0].view.zoom]"
    all_of_it, half = page.ask(shown), [canvas.size[side] / 2 for side in ("width", "height")]
    offset = 90, -60
    under = f"studio.maps[0].toPlane([{half[0] + offset[0]}, {half[1] + offset[1]}])"
    before = page.ask(under)
    ActionChains(page.browser).scroll_from_origin(
        ScrollOrigin.from_element(canvas, *offset), 0, -400
    ).perform()
    page.wait("studio.maps[0].view.zoom > 1.5")
    assert page.ask(under) == pytest.approx(before, abs=0.1)
    count, centre = page.ask("studio.shapes.length"), page.ask("studio.maps[0].view.centre")
    page.click('[data-tool="pan"]')
    ActionChains(page.browser).drag_and_drop_by_offset(canvas, 70, 30).perform()
    scale = page.ask("studio.maps[0].scale[0]")
    moved = page.ask("studio.maps[0].view.centre")
    assert moved == pytest.approx([centre[0] - 70 / scale, centre[1] + 30 / scale], abs=0.1)
    assert page.ask("studio.shapes.length") == count
    page.click("#fit")
    assert page.ask(shown) == all_of_it
