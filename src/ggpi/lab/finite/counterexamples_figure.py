"""Table and figure of `counterexamples`, from its numbers."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics


def table(metrics: Metrics) -> Table:
    """One row for each question of the paper."""
    one, two, three = (metrics[f"D.{i}"] for i in (1, 2, 3))
    shown = Table(title=f"Counterexamples, γ = {metrics['gamma']:g}", title_justify="left", show_lines=True)
    for heading in ("question", "numbers", "answer"):
        shown.add_column(heading)
    shown.add_row(
        "D.1: does a Markov policy have the Q of every policy?",
        f"Q(L,b) = {one['q']['L'][1]:g}, Q(R,a) = {one['q']['R'][0]:g}",
        f"no: the nearest is {one['nearest_distance']:.3f} away (γ/2)",
    )
    shown.add_row(
        "D.2: can we improve on any policy by greed?",
        f"Q(a) = {two['q']['a']:g}, Q(b) = {two['q']['b']:g}",
        f"no: greedy plays {two['greedy_action']}, return {two['greedy_value']:g} < {two['value']:g}",
    )
    shown.add_row(
        "D.3: does a set of switching policies need its suffixes?",
        f"Q(x₀) = {_signed(three['q']['x0'])}; Q(x₁) = {_signed(three['q']['x1'])}",
        "yes: return {} without, {} with them; ν has {}".format(
            *(_signed([three[name]]) for name in ("open_value", "closed_value", "value"))
        ),
    )
    return shown


def _signed(values: Sequence[float]) -> str:
    """+1, −1 and a plain 0."""
    rounded = [round(value, 9) for value in values]
    return ", ".join(f"{value:+g}".replace("-", "−") if value else "0" for value in rounded)


def plot(metrics: Metrics) -> Figure:
    """The MDPs above, what goes wrong below."""
    canvas, axes = style.figure(2, 3, size=(4.2, 3.1))
    for ax in (*axes[0], axes[1, 2]):
        ax.set_axis_off()
        ax.set_xlim(0, 10)
        ax.set_ylim(-0.3, 7)
    draw_left_right(axes[0, 0], metrics["D.1"])
    draw_one_state(axes[0, 1], metrics["D.2"])
    draw_tree(axes[0, 2], metrics["D.3"]["leaves"])
    plot_distance(axes[1, 0], metrics["D.1"], metrics["gamma"])
    plot_greedy_returns(axes[1, 1], metrics["D.2 sweep"])
    write_tree_numbers(axes[1, 2], metrics["D.3"])
    return canvas


def draw_left_right(ax: Axes, result: Metrics) -> None:
    """Paper: Fig 10"""
    ax.set_title("D.1: bb from L, aab from R", fontsize=10)
    _arrow(ax, (2, 3), (5, 3), "b, 0")
    _arrow(ax, (5, 3), (8, 3), "b, 0")
    _loop(ax, (2, 3), "a, 0")
    _loop(ax, (5, 3), "a, +1")
    for place, name in (((2, 3), "L"), ((5, 3), "R"), ((8, 3), "end")):
        _node(ax, place, name)
    left, right = result["q"]["L"], result["q"]["R"]
    said = f"Q(L,a) = {left[0]:g}, Q(L,b) = {left[1]:g}\nQ(R,a) = 1+γ = {right[0]:g}, Q(R,b) = {right[1]:g}"
    ax.text(5, 0.7, said, ha="center", va="center", fontsize=9)


def draw_one_state(ax: Axes, result: Metrics) -> None:
    """Paper: Fig 11"""
    ax.set_title("D.2: abbb… or baaa…, ½ each", fontsize=10)
    _loop(ax, (4, 3), "a, +1")
    _loop(ax, (4, 3), "b, 0", down=True)
    _node(ax, (4, 3), "x")
    q, gamma = result["q"], result["gamma"]
    said = f"γ = {gamma:g}\nQ(a) = {q['a']:g}\nQ(b) = γ/(1−γ) = {q['b']:g}"
    ax.text(5.7, 3, said, va="center", fontsize=9)


def draw_tree(ax: Axes, leaves: dict[str, float]) -> None:
    """Paper: Fig 12"""
    ax.set_title("D.3: ν = L → L → R plays LLR (left = L, right = R)", fontsize=10)
    places = {"": (5.0, 6.2)}
    for level, spread in ((1, 2.5), (2, 1.25), (3, 0.6)):
        for name in [name for name in places if len(name) == level - 1]:
            for action, side in (("L", -1), ("R", 1)):
                places[name + action] = (places[name][0] + side * spread, 6.2 - 1.9 * level)
                _arrow(ax, places[name], places[name + action], "", radius=0.45)
    names = {"": "x₀", "R": "x₁"}
    colours = {"LLR": style.RED, "RLR": style.GREEN, "RLL": style.CYAN}
    for name, place in places.items():
        leaf = leaves.get(name, 0)
        text = _signed([leaf])
        colour = colours.get(name, "#E6E6E6" if len(name) == 3 else style.FLOOR)
        _node(ax, place, text if len(name) == 3 else names.get(name, ""), colour, size=0.42)


def plot_distance(ax: Axes, result: Metrics, gamma: float) -> None:
    """How far Markov policies are from the Q of D.1."""
    ax.plot(result["stay"], result["distance"], color=style.BLUE)
    ax.plot([result["nearest_stay"]], [result["nearest_distance"]], "o", color=style.RED)
    ax.annotate(
        f"least: γ/2 = {result['nearest_distance']:.3g}",
        (result["nearest_stay"], result["nearest_distance"]),
        xytext=(6, -12),
        textcoords="offset points",
        fontsize=9,
    )
    ax.set_ylim(0, 3 * gamma)
    ax.set_xlim(0, 1)
    ax.set_xlabel("π(a|R) of a Markov policy", fontsize=9)
    ax.set_ylabel("largest |Q − Q of the policy|", fontsize=9)
    ax.set_title("No Markov policy has this Q", fontsize=10)


def plot_greedy_returns(ax: Axes, sweep: list[Metrics]) -> None:
    """Return of D.2's policy and of the policy greedy in its Q, against γ."""
    gammas = [result["gamma"] for result in sweep]
    ax.axvline(0.5, color=style.GREY, linewidth=1, linestyle="--")
    ax.plot(gammas, [result["value"] for result in sweep], "o-", markersize=4, label="the policy")
    greedy = [result["greedy_value"] for result in sweep]
    ax.plot(gammas, greedy, "s", markersize=5, label="greedy in its Q")
    ax.set_xlabel("γ", fontsize=9)
    ax.set_ylabel("return", fontsize=9)
    ax.set_xlim(0, 1)
    ax.legend(frameon=False, fontsize=9, loc="upper left")
    ax.set_title("Greedy gets 0 once γ > ½: Q(b) = γ/(1−γ) > Q(a) = 1", fontsize=10)


def write_tree_numbers(ax: Axes, result: Metrics) -> None:
    """The values of D.3 in words."""
    ax.set_title("Without suffixes, greedy loses what ν had", fontsize=10)
    rows = [
        ("each over its power of γ", "L", "R"),
        ("Q of ν at x₀", *(_signed([value]) for value in result["q"]["x0"])),
        ("Q of ν at x₁", *(_signed([value]) for value in result["q"]["x1"])),
    ]
    for height, row in zip((6.3, 5.5, 4.7), rows, strict=True):
        for place, word in zip((0.3, 5.2, 6.8), row, strict=True):
            ax.text(place, height, word, fontsize=10, color=style.INK)
    returns = [
        ("ν itself", result["value"]),
        ("greedy on {ν}", result["open_value"]),
        ("greedy on {ν, L → R, R}", result["closed_value"]),
    ]
    ax.text(0.3, 3.3, "return from x₀, over γ²", fontsize=10, color=style.INK, weight="bold")
    for height, (name, value) in zip((2.5, 1.7, 0.9), returns, strict=True):
        ax.text(0.7, height, name, fontsize=10, color=style.INK)
        ax.text(6.8, height, _signed([value]), fontsize=10, color=style.INK)


def _node(ax: Axes, place: tuple[float, float], text: str, colour: str = style.FLOOR, size: float = 0.7):
    x, y = place
    angles = np.linspace(0, 2 * np.pi, 60)
    ax.fill(
        x + size * np.cos(angles), y + size * np.sin(angles), facecolor=colour, edgecolor=style.INK, zorder=3
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=9, zorder=4)


def _arrow(ax: Axes, start: Sequence[float], end: Sequence[float], label: str, radius: float = 0.75):
    tail, tip = np.asarray(start, float), np.asarray(end, float)
    step = (tip - tail) / np.linalg.norm(tip - tail) * radius
    arrow = {"arrowstyle": "->", "color": style.INK, "linewidth": 1}
    ax.annotate("", tuple(tip - step), tuple(tail + step), arrowprops=arrow)
    x, y = (tail + tip) / 2
    ax.text(x, y + 0.2, label, ha="center", va="bottom", fontsize=9)


def _loop(ax: Axes, place: tuple[float, float], label: str, down: bool = False):
    x, y = place
    sign = -1 if down else 1
    arrow = {
        "arrowstyle": "->",
        "color": style.INK,
        "linewidth": 1,
        "connectionstyle": "arc3,rad=-1.9" if not down else "arc3,rad=1.9",
    }
    ax.annotate("", (x + 0.4, y + sign * 0.65), (x - 0.4, y + sign * 0.65), arrowprops=arrow)
    ax.text(x, y + sign * 1.8, label, ha="center", va="center", fontsize=9)
