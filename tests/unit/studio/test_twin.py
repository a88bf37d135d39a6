"""The page of the docs, entirely in the browser: its kernels compute what Python does, and it plays."""

import functools
import http.server
import importlib.util
import itertools
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ggpi
from ggpi.envs.point_mass import PointMass
from ggpi.rewards import read_formula
from ggpi.studio.grid import grid_world

from .test_page import AXE, Page, violations

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[3] / "docs"
FORMULA = "disc(9, 7, 1.6) - 0.3*box(1, 1, 3, 4) + 0.02*x^2 - abs(sin(y))/7 + (x > 5)*min(y, 2)"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The page as the docs build it, on a server of plain files."""
    found = importlib.util.spec_from_file_location("build_twin", DOCS / "build_twin.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    folder = module.build(tmp_path_factory.mktemp("site") / "play")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def page(browser, site):
    found = Page(browser, site)
    found.load()
    yield found
    said = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not said, said


def run(page, body, *arguments):
    """The value of JavaScript that may import modules of the page."""
    script = (
        "const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);"
        f"(async () => {{ {body} }})().then(done, (error) => done({{ error: String(error.stack) }}))"
    )
    found = page.browser.execute_async_script(script, *arguments)
    assert not (isinstance(found, dict) and "error" in found), found
    return found


@pytest.mark.parametrize(("gamma", "alpha"), [(0.9, 1 / 9), (0.97, 0.3), (0.5, 1.0)])
def test_four_rooms_is_exact(page, gamma, alpha):
    """Q of every plan in every state, and the greedy actions; the reward is a formula with most of the grammar."""
    world = grid_world()
    mdp = ggpi.envs.four_rooms()
    rho = np.asarray(jax.vmap(read_formula(FORMULA, ("x", "y")))(world.places.astype(np.float32)), float)
    body = """
        const { evaluate, improve } = await import("./exact.js"), { readFormula } = await import("./formula.js");
        const [gamma, alpha, depth, text] = given, { landing, places } = studio.world;
        const rho = places.map(readFormula(text, ["x", "y"]));
        const plans = evaluate(landing, gamma, alpha, depth, rho), { v, ways } = improve(plans);
        return { rho, plans, v: [...v], ways };"""
    for depth in (1, 2, 3):
        found = run(page, body, gamma, alpha, depth, FORMULA)
        np.testing.assert_allclose(found["rho"], rho, atol=1e-5)
        gsps = ggpi.compositions(num_policies=4, depth=depth, alpha=alpha)
        q = np.asarray(
            ggpi.evaluate(gsps, world.models(gamma, alpha), ggpi.rewards.arrival(np.array(found["rho"])))
        )
        own = {tuple(plan["policies"]): np.array(plan["q"]) for plan in found["plans"]}
        assert own.keys() == {gsp.policies for gsp in gsps}
        for i, gsp in enumerate(gsps):
            np.testing.assert_allclose(own[gsp.policies], q[i], atol=1e-9)
        best = q.max(axis=0)
        np.testing.assert_allclose(found["v"], best.max(axis=1), atol=1e-9)
        for x in range(mdp.num_states):
            assert best[x].argmax() in found["ways"][x]


def test_samples_of_the_networks_are_those_of_python(page):
    """The same noise leads to the same state, of every model, also outside the data."""
    ghms, rng = ggpi.pretrained("point-mass-ghms"), np.random.default_rng(0)
    states = rng.uniform(-1.5, 1.5, (40, 4)) * [1, 1, 0.1, 0.1]
    actions, noise = rng.uniform(-1, 1, (40, 2)), rng.normal(size=(40, 4))
    body = """
        const { Model, readSafetensors } = await import("./network.js");
        const arrays = readSafetensors(await (await fetch("./point-mass.safetensors")).arrayBuffer());
        const [states, actions, noise] = given;
        const pushed = (model) => states.map((state, i) => [...model.push(state, actions[i], noise[i])]);
        return [0, 1, 2, 3].map((k) => ["models.0", "models.1"].map((part) => pushed(new Model(arrays, part, k))));"""
    found = np.array(run(page, body, states.tolist(), actions.tolist(), noise.tolist()))
    for k, (j, alpha) in itertools.product(range(4), enumerate((None, 0.1))):
        expected = pushed(ghms.segment(k, alpha), states, actions, noise)
        np.testing.assert_allclose(found[k, j], expected, atol=1e-4)


def pushed(model, *parts):
    """Samples of a model in Python."""
    return np.asarray(model.push(*(jnp.asarray(part, jnp.float32) for part in parts)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_values_of_plans_are_those_of_python(page, depth):
    """All plans of a depth with given noise, and the weights of their segments."""
    ghms, state, samples = ggpi.pretrained("point-mass-ghms"), np.array([-0.2, 0.1, 0.03, -0.02]), 5
    count = 4 * 2 + samples * (16 if depth == 1 else 16 + sum(4**m * 6 for m in range(2, depth + 1)))
    noise = np.random.default_rng(depth).normal(size=count)
    body = """
        const { LinearPolicy, Model, evaluateSampled, readSafetensors } = await import("./network.js");
        const arrays = readSafetensors(await (await fetch("./point-mass.safetensors")).arrayBuffer());
        const [state, noise, settings] = given, of = (part) => [0, 1, 2, 3].map((k) => new Model(arrays, part, k));
        const policies = [0, 1, 2, 3].map((k) => new LinearPolicy(arrays, k));
        const models = { gamma: of("models.0"), beta: of("models.1") }, rho = (x) => Math.exp(-x[0] * x[0]) + x[1];
        let at = 0;
        const found = evaluateSampled({ policies, models }, state, settings, rho, () => noise[at++]);
        return { at, plans: found.plans.map(({ policies, totals }) => [policies, [...totals]]) };"""
    settings = {"gamma": 0.95, "alpha": 0.1, "depth": depth, "samples": samples}
    found = run(page, body, state.tolist(), noise.tolist(), settings)
    assert found["at"] == count
    for policies, totals in expected_totals(ghms, state, depth, samples, iter(noise)).items():
        own = next(own for plan, own in found["plans"] if tuple(plan) == policies)
        np.testing.assert_allclose(own, totals, rtol=0, atol=1e-4 * np.abs(totals).max())


def expected_totals(ghms, state, depth, samples, noise):
    """The same in Python."""

    def draw(size):
        return np.array(list(itertools.islice(noise, size)), np.float32)

    def act(k, x, eps):
        policy = ghms.policies[k]
        return np.clip(np.asarray(policy.mode(x)) + np.asarray(policy.noise) * eps, -1, 1)

    first = [act(k, state, draw(2)) for k in range(4)]
    ends, found = {(): np.repeat(state[None], samples, axis=0)}, {}
    for m in range(1, depth + 1):
        level = {}
        for chain in [c for c in ends if len(c) == m - 1]:
            for k in range(4):
                drawn = [(first[k] if m == 1 else act(k, x, draw(2)), draw(4)) for x in ends[chain]]
                actions, eps = (np.stack(part) for part in zip(*drawn, strict=True))
                level[*chain, k] = pushed(
                    ghms.segment(k, None if m == depth else 0.1), ends[chain], actions, eps
                )
        ends |= level
    gamma, beta = ghms.gamma, ghms.gamma * 0.9
    share = (gamma - beta) / (1 - beta)
    weights = [(1 - gamma) / (1 - beta) * share**m for m in range(depth - 1)] + [share ** (depth - 1)]
    assert sum(weights) == pytest.approx(1)
    for chain in (c for c in ends if len(c) == depth):
        rewards = [
            np.exp(-(ends[chain[: m + 1]][:, 0] ** 2)) + ends[chain[: m + 1]][:, 1] for m in range(depth)
        ]
        found[chain] = sum(w * r for w, r in zip(weights, rewards, strict=True)) / (1 - gamma)
    return found


def test_the_mass_moves_as_in_python(page):
    rng = np.random.default_rng(1)
    states = rng.uniform(-1, 1, (50, 4)) * [1, 1, 0.08, 0.08]
    actions = rng.uniform(-1.5, 1.5, (50, 2))
    body = """
        const { PointMass } = await import("./worlds.js");
        const about = (await (await fetch("./worlds.json")).json())["point-mass"];
        const world = new PointMass(about, await (await fetch("./point-mass.safetensors")).arrayBuffer());
        return given[0].map((state, i) => world.step(state, given[1][i]));"""
    found = run(page, body, states.tolist(), actions.tolist())
    np.testing.assert_allclose(found, PointMass().step(states, actions), atol=1e-12)


def test_formulas_are_read_as_in_python(page):
    """The same values, and the same texts are mistakes."""
    texts = [
        "1",
        "-x^2",
        "2*-x",
        "x - -y",
        "--x",
        "x < y",
        "disc(0, 0, -1)",
        "line(0, 0, 1, 1, .5)",
        "exp(-x**2)",
        "pi*y",
    ]
    texts += [
        "",
        "x +",
        "disc(1, 2)",
        "disc(x, 2, 3)",
        "alert(1)",
        "constructor",
        "x y",
        "1e10",
        "(x",
        "x^2^",
        "toString()",
    ]
    body = """
        const { readFormula } = await import("./formula.js");
        const value = (text) => readFormula(text, ["x", "y"])([0.3, -0.7]);
        return given[0].map((text) => { try { return value(text); } catch (error) { return error.message; } });"""
    for text, value in zip(texts, run(page, body, texts), strict=True):
        try:
            expected = float(read_formula(text, ("x", "y"))(np.array([0.3, -0.7])))
        except ValueError:
            assert isinstance(value, str), text
        else:
            assert value == pytest.approx(expected, abs=1e-5), text


def test_it_plays(page):
    """A reward is painted, the agent reaches it, and two depths stand side by side."""
    assert page.ask("studio.agents[0].moments[0].count") == 16
    assert page.ask("studio.maps[0].scene.values.ways.length") == 104
    page.browser.execute_script("speed.value = '0'; speed.onchange()")
    page.click("#play")
    page.wait("studio.agents[0].moments.at(-1).reached !== null")
    page.click("#clear")
    page.wait("studio.settings.formula === '0'")
    page.drag((2, 2), (3, 2))
    page.wait("studio.agents[0].moments.at(-1).plans[0].value > 0")
    page.browser.execute_script("second.value = '1'; second.onchange()")
    page.wait("studio.agents[1]?.moments.length > 0")
    assert "ggpi.improve(q)" in page.find("#python").get_attribute("textContent")


def test_the_point_mass_plays(page):
    page.load("#world=point-mass&reward=disc(0.3%2C+0.3%2C+0.3)&depth=2&samples=50")
    page.wait("studio.settings.samples === 50 && studio.agents[0].moments.at(-1).draws === 1000")
    page.browser.execute_script("speed.value = '0'; speed.onchange()")
    page.click("#play")
    page.wait("studio.agents[0].moments.at(-1).t > 3")
    page.browser.execute_script(
        "document.getElementById('formula').value = 'exp('; document.getElementById('formula').oninput()"
    )
    page.wait("!document.getElementById('error').hidden")


def test_the_code_that_it_shows_runs(page):
    for anchor in ("", "#world=point-mass&reward=disc(0.3%2C+0.3%2C+0.3)&depth=1&samples=20"):
        page.load(anchor)
        page.wait("studio.settings?.python")
        exec(compile(page.ask("studio.settings.python"), "shown", "exec"), {})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everyone_can_use_it(page, theme):
    """No violation of the rules of axe-core, in any tab."""
    page.browser.execute_script(f"localStorage.setItem('theme', '{theme}')")
    page.load()
    page.browser.execute_script(AXE.read_text("utf-8"))
    for tab in ("plans", "code", "export"):
        page.click(f"#tab-{tab}")
        assert violations(page) == [], tab


def test_it_fits_a_phone(page):
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.load()
        assert page.ask("document.scrollingElement.scrollWidth <= 360")
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
