"""What ``sfarm_fig5`` reports of its jobs: areas, paired differences over splits, and the picture."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import paired

CHOOSERS = {
    "auto": ("informed", "order", "told", "random", "oracle"),
    "sfarm": ("informed", "order", "told", "random", "oracle"),
    "miwae": ("latent", "random"),
    "vae": ("latent", "random"),
}
STYLES = {"informed": "-", "latent": "-", "order": "--", "told": (0, (8, 2)), "random": ":", "oracle": "-."}
COLOURS = {"auto": "#1b6ca8", "sfarm": "#d1843a", "miwae": "#7a5195", "vae": "#5a9e6f"}


def summarise(lines: list[dict[str, Any]], sets: list[str], models: list[str]) -> dict[str, Any]:
    """Areas, mean curves and paired differences for each set."""
    results: dict[str, Any] = {}
    for name in sets:
        own: dict[str, dict[int, dict[str, Any]]] = {}  # "model chooser" -> split -> numbers
        for line in lines:
            if line["job"]["set"] == name:
                for chooser, one in line["curves"].items():
                    own.setdefault(f"{line['job']['model']} {chooser}", {})[line["job"]["split"]] = one
        policies = {
            policy: {
                "splits": len(by_split),
                **{
                    metric: {
                        "curve": np.mean([one[metric] for one in by_split.values()], 0).tolist(),
                        "spread": np.std([one[metric] for one in by_split.values()], 0).tolist(),
                        "area": float(np.mean([one[f"{metric}_area"] for one in by_split.values()])),
                    }
                    for metric in ("rmse", "nll")
                },
            }
            for policy, by_split in own.items()
        }
        own_way = {model: f"{model} {CHOOSERS[model][0]}" for model in models}
        pairs = [(own_way[model], f"{model} {other}") for model in models for other in CHOOSERS[model][1:]]
        pairs += [(own_way[a], own_way[b]) for a, b in combinations(models, 2)]
        differences = {}
        for first, second in pairs:
            common = sorted(set(own.get(first, {})) & set(own.get(second, {})))
            if first != second and common:
                differences[f"{first} - {second}"] = {
                    metric: paired(*([own[one][s][f"{metric}_area"] for s in common] for one in (first, second)))
                    for metric in ("rmse", "nll")
                }
        results[name] = {"policies": policies, "differences": differences}
    return results


def tabulate(results: dict[str, Any]) -> str:
    """Areas, and differences with their intervals."""
    text = []
    for name, one in results.items():
        text.append(f"{name}: area under the curve (rmse, nll)")
        for policy, value in one["policies"].items():
            areas = f"{value['rmse']['area']:8.4f} {value['nll']['area']:9.4f}"
            text.append(f"  {policy:18}{areas}   ({value['splits']} splits)")
        for pair, value in one["differences"].items():
            parts = [
                f"{metric} {v['mean']:+.4f}{_interval(v)} won {v['won']}/{v['splits']}" for metric, v in value.items()
            ]
            text.append(f"  {pair:34} {'   '.join(parts)}")
    return "\n".join(text)


def _interval(difference: dict[str, Any]) -> str:
    """The interval in brackets, where there is one."""
    return "" if difference["low"] is None else f" [{difference['low']:+.4f}, {difference['high']:+.4f}]"


def _ends(policies: dict[str, Any], metric: str) -> tuple[float, float]:
    """What an axis shows: all curves but the VAE's, which may be hundreds of nats away (the legend has its areas)."""
    shown = np.concatenate([one[metric]["curve"] for name, one in policies.items() if not name.startswith("vae")])
    room = 0.06 * float(np.ptp(shown))
    return float(shown.min()) - room, float(shown.max()) + 4 * room


def draw(results: dict[str, Any], path: Path) -> None:
    """Curves of the error, a panel for each set; bands are 95 % of the mean over splits, for informed choice alone."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(results), figsize=(4.4 * len(results), 9.6), layout="constrained", squeeze=False)
    for column, (name, one) in zip(axes.T, results.items()):
        for axis, metric in zip(column, ("rmse", "nll")):
            for policy, value in one["policies"].items():
                model, chooser = policy.split()
                curve = np.array(value[metric]["curve"])
                half = 1.96 * np.array(value[metric]["spread"]) / np.sqrt(value["splits"])
                label = f"{policy} ({value[metric]['area']:.3f}; {value['splits']})"
                step = np.arange(len(curve))
                axis.plot(step, curve, linestyle=STYLES[chooser], color=COLOURS[model], label=label)
                if chooser in ("informed", "latent"):
                    axis.fill_between(step, curve - half, curve + half, color=COLOURS[model], alpha=0.15, linewidth=0)
            axis.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.12),
                ncols=2,
                frameon=False,
                fontsize=7,
                title="area; splits",
                title_fontsize=7,
                handlelength=3.5,
            )
            axis.set_ylim(*_ends(one["policies"], metric))
            axis.spines[["top", "right"]].set_visible(False)
        column[0].set_title(name.capitalize())
        column[1].set_xlabel("features known")
    axes[0][0].set_ylabel("root mean squared error of the target")
    axes[1][0].set_ylabel("- log p(target), nats")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
