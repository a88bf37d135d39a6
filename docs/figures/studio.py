"""Pictures of the studio in headless Chromium, to be looked at: every state of the page, from phones to large screens.

python docs/figures/studio.py OUT                  saves OUT/*.png
python docs/figures/studio.py OUT --only why ant   some of them
python docs/figures/studio.py OUT --keep           and keeps smaller ones beside this script, for the docs
"""

from __future__ import annotations

import argparse
import functools
import http.server
import importlib.util
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from selenium.webdriver.remote.webdriver import WebDriver

HERE = Path(__file__).parent
PHONE = (360, 740)
PATIENCE = 600.0
HAS_PLAN = "studio.agents[0]?.moments?.length > 0"
IS_CALM = "!document.getElementById('status').textContent"
PLAY = "speed.value = '2'; speed.onchange(); document.getElementById('play').click();"


@dataclass(frozen=True)
class Scene:
    """A state of the page.

    Args:
        link: what follows the # of its address.
        steps: (JavaScript, what then holds), one after the other.
        size: of the window; PHONE is emulated.
        theme: light or dark.
        is_twin: the page of the docs, without a server.
    """

    link: str = "world=four-rooms"
    steps: tuple[tuple[str, str], ...] = ()
    size: tuple[int, int] = (1440, 900)
    theme: str = "light"
    is_twin: bool = False


def click(name: str) -> str:
    return f"document.querySelector('{name}').click();"


MET = "studio.agents.every(({ moments }) => moments.at(-1).reached !== null || moments.at(-1).t > 40)"
TWO = "world=four-rooms&reward=disc(9%2C+7%2C+1.6)&depth=2&second=1"
ANT = "world=ant&reward=disc(4%2C4%2C0.5)&depth=2&samples=100"
SCENES = {
    "desktop": Scene(),
    "dark": Scene(theme="dark"),
    "phone": Scene(size=PHONE),
    "phone-dark": Scene(size=PHONE, theme="dark"),
    "large": Scene(size=(3840, 2160)),
    "two": Scene(TWO, ((PLAY, MET), (click("#play"), IS_CALM))),
    "why": Scene(steps=((click("#why"), "document.querySelectorAll('#explained tr').length > 4"),)),
    "code": Scene(steps=((click("#tab-code"), "true"),)),
    "closed-loop": Scene("world=four-rooms&depth=0", (("", "studio.maps[0].scene.values?.numbers?.length"),)),
    "closed-loop-dark": Scene(
        "world=four-rooms&depth=0", (("", "studio.maps[0].scene.values?.numbers?.length"),), theme="dark"
    ),
    "empty": Scene(steps=((click("#clear"), "studio.settings.formula === '0'"),)),
    "error": Scene(
        steps=(
            (
                "document.all.formula.value = 'exp('; document.all.formula.oninput();",
                "!document.getElementById('error').hidden",
            ),
        )
    ),
    "signed": Scene(
        "world=four-rooms&reward=x+-+0.5*y+-+3",
        (("", "studio.maps[0].scene.rewards?.formula.startsWith('x -')"),),
    ),
    "twin": Scene(is_twin=True),
    "twin-phone": Scene(size=PHONE, is_twin=True),
    "models": Scene(
        "world=point-mass",
        (
            (click("#tab-models"), "true"),
            (click("#diagnose"), "document.querySelectorAll('#diagnosed canvas').length === 8"),
        ),
    ),
    "ant": Scene(
        ANT, ((click("#play"), "studio.agents[0].moments.at(-1).t >= 12"), (click("#play"), IS_CALM))
    ),
    "maze": Scene("world=maze"),
    "ogbench": Scene("world=pointmaze-giant"),  # where its models are in the cache
}
KEPT = {"two": "studio-four-rooms", "ant": "studio-ant", "closed-loop-dark": "studio-closed-loop"}


def loaded(path: Path) -> ModuleType:
    """A script as a module."""
    found = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    assert found is not None and found.loader is not None
    module = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@contextmanager
def twin() -> Iterator[str]:
    """The address of the docs' page, on a server of plain files."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with tempfile.TemporaryDirectory() as folder:
        out = loaded(HERE.parent / "build_twin.py").build(Path(folder) / "play")
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=str(out))
        )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()
        server.server_close()


def wait(chromium: WebDriver, condition: str) -> None:
    end = time.monotonic() + PATIENCE
    while not chromium.execute_script(f"return Boolean({condition})"):
        if time.monotonic() > end:
            said = chromium.execute_script("return document.body.innerText.slice(0, 400)")
            raise TimeoutError(f"never {condition}; the page says {said}")
        time.sleep(0.1)


def take(chromium: WebDriver, address: str, scene: Scene, path: Path) -> None:
    """Brings the page into a state, and saves its picture; all of a phone's page, however long it is."""
    (width, height), is_phone = scene.size, scene.size == PHONE
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
    if is_phone:
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    else:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        chromium.set_window_size(width, height)
    chromium.get(address)
    chromium.execute_script(f"localStorage.setItem('theme', '{scene.theme}')")
    chromium.get("about:blank")
    chromium.get(f"{address}#{scene.link}")
    wait(chromium, HAS_PLAN)
    wait(chromium, IS_CALM)
    for script, condition in scene.steps:
        chromium.execute_script(script)
        wait(chromium, condition)
    time.sleep(1.0)
    if is_phone:
        metrics["height"] = chromium.execute_script("return document.scrollingElement.scrollHeight")
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        time.sleep(0.5)
    chromium.save_screenshot(str(path))


def keep(source: Path, target: Path) -> None:
    """Writes a smaller copy, in which large areas have their exact colours."""
    picture = Image.open(source).convert("RGB")
    picture.thumbnail((1300, 1300), Image.Resampling.LANCZOS)
    picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(target, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=SCENES, default=list(SCENES))
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tools, failed = loaded(HERE.parents[1] / "benchmarks" / "studio.py"), 0
    with tools.browser() as chromium, tools.studio() as (address, _), twin() as docs:
        assert chromium is not None, "apt-get install chromium chromium-driver"
        for name in options.only:
            try:
                take(
                    chromium,
                    docs if SCENES[name].is_twin else address,
                    SCENES[name],
                    options.out / f"{name}.png",
                )
                print(name, flush=True)
            except TimeoutError as error:
                failed += 1
                print(f"{name}: {error}", flush=True)
    if options.keep:
        for name in KEPT.keys() & set(options.only):
            keep(options.out / f"{name}.png", HERE / f"{KEPT[name]}.png")
    return failed


if __name__ == "__main__":
    sys.exit(main())
