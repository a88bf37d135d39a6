"""Tables and figure of `chain`, from its numbers."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text

from ggpi.lab import style
from ggpi.lab.cells import Metrics

SHADE = "black on bright_cyan"


def table(metrics: Metrics) -> list[Table]:
    """The paper's table of policies, and the counted steps."""
    title = f"Chain with k = {metrics['k']}, γ = {metrics['gamma']:g}, α = {metrics['alpha']:g}"
    policies = Table(title=f"{title}, R = {metrics['end_reward']:.3g}", title_justify="left")
    policies.add_column("policy")
    for i in range(metrics["k"] + 1):
        policies.add_column(f"x{i}", justify="center")
    for row in metrics["rows"]:
        name = Text(row["name"], SHADE if all(row["optimal"]) else "")
        cells = zip(row["actions"], row["optimal"], strict=True)
        policies.add_row(name, *(Text(arrow, SHADE if good else "") for arrow, good in cells))
    policies.caption = "shaded: optimal"

    steps = Table(title="Improvement steps until first optimal", title_justify="left")
    headings = "k", "R above", "policy iteration", "GGPI", "GGPI, α = 1", "GGPI, small R"
    for heading in headings:
        steps.add_column(heading, justify="right")
    for row in metrics["sweep"]:
        counts = (row[name] for name in ("policy_iteration", "ggpi", "ggpi_alpha_one", "ggpi_small_reward"))
        steps.add_row(str(row["k"]), f"{row['bound']:.2f}", *map(str, counts))
    return [policies, steps]


def plot(metrics: Metrics) -> Figure:
    """The chain, the table of policies, and the steps against k."""
    canvas, axes = style.figure(3, 1, size=(7.5, 2.5), height_ratios=[1, 1.5, 1.9])
    draw_chain(axes[0, 0], metrics["k"], metrics["end_reward"])
    draw_policies(axes[1, 0], metrics)
    plot_steps(axes[2, 0], metrics["sweep"], metrics["gamma"], metrics["alpha"])
    return canvas


def draw_chain(ax: Axes, k: int, end_reward: float) -> None:
    """States in a row, above the columns of the table."""
    ax.set_axis_off()
    ax.set_xlim(-3, k + 2)
    ax.set_ylim(-0.6, 1.5)
    arrow = {"arrowstyle": "->", "color": style.INK, "linewidth": 1}
    for i in range(k + 1):
        ax.annotate("", (i + 0.68, 0), (i + 0.3, 0), arrowprops=arrow)
        ax.annotate("", (i, 1), (i, 0.35), arrowprops=arrow)
        ax.text(i, 1.05, "+1", ha="center", va="bottom", fontsize=9)
        ax.plot(i, 0, "o", markersize=24, markerfacecolor=style.FLOOR, markeredgecolor=style.INK)
        ax.text(i, 0, f"$x_{{{i}}}$", ha="center", va="center", fontsize=10)
    ax.text(k + 0.75, 0, f"R = {end_reward:.3g}", va="center", fontsize=9)
    ax.text(-2.9, 1.15, "up ends for 1", fontsize=9, color=style.INK)
    ax.text(-2.9, 0, "right moves on", fontsize=9, va="center", color=style.INK)
    ax.set_title("Two steps of GGPI solve the chain: it still knows the way that π₁ forgot", fontsize=10)


def draw_policies(ax: Axes, metrics: Metrics) -> None:
    """The paper's table; optimal cells are shaded."""
    k, rows = metrics["k"], metrics["rows"]
    ax.set_axis_off()
    ax.set_xlim(-3, k + 2)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    for i, row in enumerate(rows):
        colour = style.MARKED if all(row["optimal"]) else style.FLOOR
        ax.fill_between([-3, -0.5], i - 0.45, i + 0.45, color=colour, linewidth=0)
        ax.text(-2.9, i, row["name"].replace("𝒢", r"$\mathcal{G}$"), va="center", fontsize=10)
        for j, (arrow, good) in enumerate(zip(row["actions"], row["optimal"], strict=True)):
            if good:
                ax.fill_between([j - 0.5, j + 0.5], i - 0.45, i + 0.45, color=style.MARKED, linewidth=0)
            ax.text(j, i, arrow, ha="center", va="center", fontsize=11)
    ax.text(k + 0.6, len(rows) - 1, "all optimal", va="center", fontsize=9, color=style.INK)


def plot_steps(ax: Axes, sweep: list[Metrics], gamma: float, alpha: float) -> None:
    """Improvement steps against k."""
    lines = {
        "policy_iteration": ("policy iteration: k + 1", style.RED, "s-"),
        "ggpi_alpha_one": ("depth-2 GGPI, but α = 1: the same", style.INK, "x"),
        "ggpi_small_reward": ("depth-2 GGPI, but R below the bound: more than two", style.PURPLE, "^--"),
        "ggpi": ("depth-2 GGPI: two", style.BLUE, "o-"),
    }
    ks = [row["k"] for row in sweep]
    for name, (label, colour, form) in lines.items():
        ax.plot(ks, [row[name] for row in sweep], form, color=colour, label=label, markersize=5)
    ax.set_ylim(0, None)
    ax.set_xticks(ks)
    ax.set_xlabel("k", fontsize=9)
    ax.set_ylabel("improvement steps\nuntil optimal", fontsize=9)
    ax.set_title(f"γ = {gamma:g}, α = {alpha:g}", fontsize=9, color=style.INK)
    ax.legend(frameon=False, fontsize=9)
