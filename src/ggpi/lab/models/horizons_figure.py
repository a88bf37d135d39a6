"""Table and figure of `horizons`, from its numbers."""

from matplotlib.figure import Figure
from rich.table import Table

from ggpi.lab import style
from ggpi.lab.cells import Metrics
from ggpi.lab.models.horizons import METHODS

COLOURS = {"one": style.BLUE, "consistent": style.GREEN, "apart": style.RED}


def table(metrics: Metrics) -> list[Table]:
    """EMD by effective horizon, and paired differences."""
    return [_scores(metrics), _differences(metrics)]


def _scores(metrics: Metrics) -> Table:
    several = metrics["num_seeds"] > 1
    of_seeds = (
        f"mean over {metrics['num_seeds']} seeds ± half a 95% bootstrap interval" if several else "one seed"
    )
    shown = Table(
        title=f"{metrics['world']}: EMD by effective horizon after {metrics['steps']:,} updates; lower is better",
        caption=(
            f"{of_seeds}; {metrics['num_starts']} starts × {metrics['num_samples']} samples; consistency on "
            f"{metrics['consistency']:.0%} of the rows; core s: seconds of one core per seed, without scoring; "
            "numbers: trained numbers of all models together; true futures: a second set of them"
        ),
        title_justify="left",
    )
    shown.add_column("method")
    for column in (*map(str, metrics["horizons"]), "core s", "numbers"):
        shown.add_column(column, justify="right")
    for name, words in METHODS.items():
        found = metrics["methods"][name]
        cells = (f"{x['mean']:.3f}" + several * f" ± {(x['high'] - x['low']) / 2:.3f}" for x in found["emd"])
        shown.add_row(words, *cells, f"{found['core_seconds']:.0f}", f"{found['parameters']:,}")
    shown.add_row("true futures", *(f"{value:.3f}" for value in metrics["truth"]["emd"]), "", "")
    return shown


def _differences(metrics: Metrics) -> Table:
    shown = Table(
        title="Differences of EMD by effective horizon; below 0 the first method is better",
        caption="95% bootstrap intervals, paired, over seeds and starts",
        title_justify="left",
    )
    shown.add_column("methods")
    for horizon in metrics["horizons"]:
        shown.add_column(str(horizon), justify="right")
    for found in metrics["compared"]:
        cells = (f"{each['mean']:.3f} [{each['low']:.3f}, {each['high']:.3f}]" for each in found["emd"])
        shown.add_row(f"{METHODS[found['row']]} − {METHODS[found['other']]}", *cells)
    return shown


def plot(metrics: Metrics) -> Figure:
    """EMD and MSE(V) against the effective horizon."""
    canvas, axes = style.figure(1, 2, size=(4, 3))
    horizons = metrics["horizons"]
    for ax, name, words in zip(axes[0], ("emd", "value_mse"), ("EMD", "MSE(V)"), strict=True):
        for method, label in METHODS.items():
            found = metrics["methods"][method][name]
            mean, low, high = ([each[part] for each in found] for part in ("mean", "low", "high"))
            ax.fill_between(horizons, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
            ax.plot(horizons, mean, marker=".", color=COLOURS[method], linewidth=1.3, label=label)
        ax.set_xscale("log")
        ax.set_xticks(horizons, [str(horizon) for horizon in horizons])
        ax.minorticks_off()
        ax.set_xlabel("effective horizon 1/(1−γ)", fontsize=9)
        ax.set_ylabel(words, fontsize=9)
    axes[0, 0].plot(
        horizons, metrics["truth"]["emd"], ":", color=style.GREY, linewidth=1, label="true futures"
    )
    axes[0, 1].set_yscale("symlog", linthresh=1.0)
    axes[0, 1].set_ylim(bottom=0)
    axes[0, 0].legend(fontsize=7, frameon=False)
    axes[0, 0].set_title(metrics["world"], fontsize=9, color=style.INK)
    return canvas
