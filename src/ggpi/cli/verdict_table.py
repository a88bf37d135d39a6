"""The verdict on models as the last thing that `ggpi diagnose` and `ggpi fit` print."""

from typing import Any

from rich.table import Table

LOOKS = {"good": "green", "usable": "yellow", "bad": "red"}


def verdict_table(numbers: dict[str, dict[str, Any]], caption: str | None = None) -> Table:
    """A line for each policy and horizon: good, usable or bad, and why."""
    shown = Table(title="Verdict", title_justify="left", caption=caption, box=None, pad_edge=False)
    shown.caption_justify = "left"
    for column in ("policy", "β", "verdict", "why"):
        shown.add_column(column, no_wrap=column != "why")
    for policy, rows in numbers.items():
        for horizon, about in rows.items():
            word, why = about["verdict"], "; ".join(about["why"])
            shown.add_row(policy, horizon, f"[{LOOKS[word]}]{word}[/]", why)
    return shown
