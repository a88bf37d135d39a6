"""Colours that colour-blind readers can tell apart: measured, for normal vision, protanopia and deuteranopia.

What they see is simulated in linear RGB with the matrices of Machado, Oliveira and Fernandes (2009), of severity 1;
differences are CIEDE2000, in which 1 is just visible and 15 is far apart.
"""

import itertools
import re

import numpy as np
import pytest

from ggpi.studio.server import STATIC

SEES = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ.sum(axis=1)
FAR = 15.0


def linear(colour):
    """Of "#rrggbb", linear RGB."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear RGB."""
    x = XYZ @ rgb / WHITE
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def apart(one, other):
    """CIEDE2000 of two colours in CIELAB."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25.0**7))
    c1, c2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, stretch * a1)) % 360, np.degrees(np.arctan2(b2, stretch * a2)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    light, chroma, hue = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2 if c1 * c2 else h1 + h2)
    cos = [np.cos(np.radians(k * hue - shift)) for k, shift in ((1, 30), (2, 0), (3, -6), (4, 63))]
    t = 1 - 0.17 * cos[0] + 0.24 * cos[1] + 0.32 * cos[2] - 0.20 * cos[3]
    dl = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2) / (1 + 0.015 * chroma * t)
    bend = 60 * np.exp(-((((hue % 360) - 275) / 25) ** 2))
    twist = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(bend))
    return np.sqrt(dl**2 + dc**2 + dh**2 + twist * dc * dh)


def nearest(colours, vision):
    """The smallest difference of two of some colours."""
    seen = [lab(np.clip(np.array(SEES[vision]) @ linear(colour), 0, 1)) for colour in colours]
    return min(apart(one, other) for one, other in itertools.combinations(seen, 2))


def colours(name):
    text = (STATIC / "palette.js").read_text("utf-8")
    (found,) = re.findall(rf"\b{name} = (\[.*?\]|\"#\w+\")", text)
    return re.findall(r"#[0-9a-f]{6}", found)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 2.5, 0), (61, -5, 29), 22.8977),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
    ],
)
def test_differences_are_ciede2000(one, other, expected):
    """Of the test data that Sharma, Wu and Dalal published with the formula."""
    assert apart(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("vision", SEES)
def test_policies_look_different_to_everyone(vision):
    assert len(colours("POLICIES")) == 8
    assert nearest(colours("POLICIES"), vision) >= FAR


@pytest.mark.parametrize("vision", SEES)
def test_signs_look_different_to_everyone(vision):
    assert nearest([*colours("POSITIVE"), *colours("NEGATIVE")], vision) >= FAR


@pytest.mark.parametrize(("card", "least"), [("#ffffff", 1.6), ("#1b1f25", 2.4)], ids=["light", "dark"])
def test_colours_are_seen_in_both_themes(card, least):
    """WCAG's ratio of luminances; dots and bars have their names beside them."""
    back = XYZ[1] @ linear(card)
    for colour in colours("POLICIES"):
        high, low = sorted((XYZ[1] @ linear(colour), back))[::-1]
        assert (high + 0.05) / (low + 0.05) >= least


def test_a_scheme_that_is_safe_for_six_is_not_for_eight():
    """Paul Tol's "bright" scheme and two more: rose and grey, or green and brown, look alike."""
    old = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#994400"]
    assert nearest(old, "protanopia") < 8 and nearest(old, "deuteranopia") < 8
