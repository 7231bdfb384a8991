"""SUNMASK's Table 2 as it is shown: the published rows, ours printed and drawn (``experiments.sunmask.table2``)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

PAPER = {
    "Bach GT": (4.91, 1.63),
    "BachMock": (8.94, 4.64),
    "SMc-T-BEST20-200": (7.16, 0.97),
    "AugGen": (8.02, 2.92),
    "Coconet": (17.00, 6.58),
    "SD": (23.25, 21.45),
    "SD-T": (20.09, 23.88),
    "SD-AT": (18.90, 24.15),
    "SMc": (22.47, 20.80),
    "SMc-A": (27.82, 18.82),
    "SMc-T": (13.43, 19.27),
    "SMc-AT": (16.50, 17.96),
    "SMc-ATN": (43.85, 18.41),
    "SMt": (42.87, None),
    "SMt-A": (42.87, None),
    "SMt-T": (46.21, 17.30),
    "SMt-AT": (46.21, 17.30),
}


def told_claims(found: Mapping[str, Mapping[str, Any]], mark: str = "") -> None:
    """Print claims of both protocols."""
    for protocol, each in found.items():
        for claim, told in each.items():
            width = f"[{told['low']:+.2f}, {told['high']:+.2f}]"
            print(f"{protocol:10} {mark}{claim:62} {told['difference']:+.2f} {width} {told['verdict']}")


def told_losses(found: Mapping[str, Mapping[str, float]], mark: str = "") -> None:
    """Print differences of validation losses."""
    for pair, told in found.items():
        width = f"[{told['low']:+.4f}, {told['high']:+.4f}]"
        print(f"{mark:16} {pair:60} {told['difference']:+.4f} {width} nats a cell")


def tabulate(rows: dict[str, Any]) -> str:
    """Ours, then the paper's."""
    lines = [f"{'':26}{'key-aware':>22}{'best 1/10':>9}{'paper':>22}{'best 1/10':>9}"]
    for name, row in rows.items():
        parts = [row["key-aware"], row["paper"]]
        cells = [
            f"{one['median']:>12.2f} ± {one['deviation'] or float('nan'):<7.2f}{one['best_tenth']:>9.2f}"
            for one in parts
        ]
        lines.append(f"{name:26}{''.join(cells)}")
    lines.append("the paper's Table 2, under its protocol:")
    lines += [f"  {name:22}{value:>34.2f} ± {spread or float('nan'):.2f}" for name, (value, spread) in PAPER.items()]
    return "\n".join(lines)


def draw(rows: dict[str, Any], path: Path) -> None:
    """One bar a row: the medians of its features, end to end, under the key-aware protocol."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted(rows, key=lambda name: rows[name]["key-aware"]["median"])
    features = list(rows[names[0]]["key-aware"]["features"])
    figure, axis = plt.subplots(figsize=(9, 0.36 * len(names) + 1.6), layout="constrained")
    left = np.zeros(len(names))
    colours = plt.get_cmap("tab10")
    for i, feature in enumerate(features):
        values = np.array([rows[name]["key-aware"]["features"][feature]["median"] for name in names])
        values = np.where(np.isfinite(values), values, 0.0)
        axis.barh(names, values, left=left, color=colours(i), label=feature.replace("_", " "), height=0.7)
        left += values
    for y, name in enumerate(names):
        row = rows[name]["key-aware"]
        axis.plot(row["median"], y, "k|", markersize=11, markeredgewidth=2)
        axis.plot(row["best_tenth"], y, "k.", markersize=5)
    axis.invert_yaxis()
    axis.set_xlabel("grade, key-aware (lower is better): medians of nine features\n| median of their sum, • best tenth")
    axis.set_title("Unselected samples of (4, 128), and real chorales through the same path", fontsize=11)
    axis.legend(fontsize=7, loc="upper right", frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
