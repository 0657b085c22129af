"""Draws raw results.

usage: plot.py RESULTS.json OUT.png
"""
import json
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from run import ratios  # noqa: E402

KINDS = (("time", "running"), ("compile", "compiling"), ("first", "first call"),
         ("memory", "peak memory"))


def bars(ax, rows):
    y = np.arange(len(rows))
    for i, (kind, name) in enumerate(KINDS):
        at = [ratios(r)[kind] or np.nan for r in rows]
        ax.barh(y + 0.2 * i - 0.3, at, 0.18, label=name)
    ax.axvline(1, color="black", linewidth=1)
    ax.set_yticks(y, [r["name"] for r in rows])
    ax.set_xscale("log")
    ax.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    ax.invert_yaxis()
    ax.set_xlabel("JAX's CPU over ours: above 1 ours is better")
    ax.legend(fontsize=8)


def curves(ax, rows):
    for r in rows:
        if r["xpu"]["curve"]:
            drawn, = ax.plot(r["xpu"]["curve"], label=r["name"])
            ax.plot(r["cpu"]["curve"], ":", color=drawn.get_color(),
                    linewidth=3, alpha=0.5)
    ax.set_xlabel("training step; dotted: JAX's CPU")
    ax.set_ylabel("loss")
    ax.legend(fontsize=8)


def several(rows, key):
    """What the rows have there, each once."""
    return ", ".join(dict.fromkeys(str(r[key]) for r in rows))


def draw(rows, out):
    figure, axes = plt.subplots(1, 2, figsize=(13, 7))
    bars(axes[0], rows)
    curves(axes[1], rows)
    figure.suptitle(
        f"{several(rows, 'device')}, {several(rows, 'cores')} cores of "
        f"{several(rows, 'machine')}, JAX {several(rows, 'jax')}, "
        f"{several(rows, 'date')}, commit {several(rows, 'commit')}")
    figure.tight_layout()
    figure.savefig(out, dpi=90)


def main():
    with open(sys.argv[1]) as f:
        draw(json.load(f), sys.argv[2])


if __name__ == "__main__":
    main()
