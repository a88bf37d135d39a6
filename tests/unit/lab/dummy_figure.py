"""Table and figure of the dummy experiment."""

from rich.table import Table

from ggpi.lab.style import figure


def table(metrics):
    table = Table("square")
    for square in metrics["squares"]:
        table.add_row(str(square))
    return table


def plot(metrics):
    canvas, axes = figure()
    axes[0, 0].plot(metrics["squares"])
    return canvas
