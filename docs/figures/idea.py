"""`python docs/figures/idea.py` draws the pictures of docs/idea.md, all exact: nothing in them is sketched by hand."""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

import ggpi
from ggpi.lab import style
from ggpi.switching import composition_weights

HERE = Path(__file__).parent
GAMMA, ALPHA, SLIP = 0.9, 1 / 9, 0.1
HEIGHT, WIDTH = 15, 15
START, GOAL = (12, 2), (6, 9)
NAMES = ("left", "down", "right", "up")
SHADE = LinearSegmentedColormap.from_list("shade", ["#FFFFFF", style.MARKED, style.BLUE, style.GOAL])


def world():
    """An open grid, its four straight policies and their exact models."""
    walls = "#" * (WIDTH + 2)
    mdp = ggpi.envs.grid("\n".join([walls, *["#" + " " * WIDTH + "#"] * HEIGHT, walls]), slip=SLIP)
    policies = [ggpi.TabularPolicy.constant(mdp, a) for a in range(4)]
    return mdp, policies, ggpi.exact_ghms(mdp, policies, GAMMA, ALPHA)


def ends(mdp, ghms, *directions):
    """The law of the last state of a chain of models from START, with the actions of the policies."""
    chain = [NAMES.index(name) for name in directions]
    law = mdp.indicator(START)
    for k, policy in enumerate(chain):
        alpha = None if k == len(chain) - 1 else ALPHA
        law = law @ ghms.segment(policy, alpha).dense()[:, policy]
    return law


def shade(ax, mdp, law, title):
    """A distribution over cells; start and goal are marked."""
    image = np.zeros((HEIGHT + 2, WIDTH + 2))
    image[tuple(np.array(mdp.labels).T)] = law
    ax.imshow(
        np.sqrt(image[1:-1, 1:-1]), cmap=SHADE, vmin=0, vmax=0.5, extent=(0.5, WIDTH + 0.5, HEIGHT + 0.5, 0.5)
    )
    ax.plot(START[1], START[0], "o", color=style.RED, markersize=6)
    ax.add_patch(
        Rectangle((GOAL[1] - 0.5, GOAL[0] - 0.5), 1, 1, fill=False, edgecolor=style.GREEN, linewidth=2)
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(style.GREY)
    ax.set_title(title, fontsize=9, color=style.INK)


def models(mdp, ghms):
    """What one model knows, and what two models know together."""
    canvas, axes = style.figure(1, 4, size=(2.4, 2.6))
    panels = {
        "right, for a whole future: μ_γ": ghms.segment(2, None).dense()[mdp.index(START), 2],
        "right, for one segment: μ_β": ghms.segment(2, ALPHA).dense()[mdp.index(START), 2],
        "right → up": ends(mdp, ghms, "right", "up"),
        "up → right": ends(mdp, ghms, "up", "right"),
    }
    for ax, (title, law) in zip(axes[0], panels.items(), strict=True):
        shade(ax, mdp, law, title)
    return canvas


def depths(mdp, ghms):
    """All futures that a set can imagine: the union over its switching policies."""
    canvas, axes = style.figure(1, 3, size=(2.8, 3.0))
    for ax, depth in zip(axes[0], (1, 2, 3), strict=True):
        gsps = ggpi.compositions(4, depth, ALPHA)
        laws = [ends(mdp, ghms, *(NAMES[k] for k in gsp.policies)) for gsp in gsps]
        most = max(law[mdp.index(GOAL)] for law in laws)
        shade(
            ax,
            mdp,
            np.max(laws, axis=0),
            f"depth {depth}: {len(gsps)} plans\nbest chance to end at the goal: {most:.1%}",
        )
    return canvas


def weights():
    """Which share of the value comes from which segment."""
    canvas, axes = style.figure(1, 2, size=(3.6, 2.6), sharey=True)
    alphas = np.linspace(0.005, 1, 200)
    for ax, gamma in zip(axes[0], (0.9, 0.99), strict=True):
        shares = np.array([composition_weights(gamma, (alpha, alpha)) for alpha in alphas]).T
        colours = (style.BLUE, style.CYAN, style.GREY)
        ax.stackplot(alphas, shares, labels=("segment 1", "segment 2", "the rest"), colors=colours)
        ax.axvline((1 - gamma) / gamma, color=style.RED, linestyle="--", linewidth=1)
        ax.set(xscale="log", xlim=(0.005, 1), ylim=(0, 1), xlabel="α")
        ax.set_title(f"γ = {gamma}; dashed: (1−γ)/γ", fontsize=9, color=style.INK)
    axes[0, 0].set_ylabel("weight in the value")
    axes[0, 0].legend(fontsize=7, loc="lower left")
    return canvas


def main():
    import sys

    sys.path.insert(0, str(HERE.parent))
    from keep_figure import keep

    mdp, _, ghms = world()
    for name, canvas in (
        ("idea-models", models(mdp, ghms)),
        ("idea-depths", depths(mdp, ghms)),
        ("idea-weights", weights()),
    ):
        with tempfile.TemporaryDirectory() as aside:
            canvas.savefig(Path(aside) / "figure.png", dpi=130)
            print(name, keep(Path(aside) / "figure.png", HERE / f"{name}.png"), "bytes")


if __name__ == "__main__":
    main()
