"""Draws docs/models.png and prints docs/models.md's table from raw results.

usage: plot.py [RESULTS.json [OUT.png]]
"""
import json
import os
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from run import ratios, summary  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
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


def table(rows):
    yield ("| model | off by | JAX CPU, ms | ours, ms | time | CPU time | "
           "compile | first call | memory | ours, MiB |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        ms = [f"{1e3 * np.median(r[w]['run'] or [np.nan]):,.1f}"
              for w in ("cpu", "xpu")]
        cells = [f"{q:.2f}" if q else "-" for q in ratios(r).values()]
        yield (f"| {r['name']} | {r['off']:.0e} | {' | '.join(ms + cells)} | "
               f"{r['xpu']['memory'] / 2**20:,.0f} |")
    mean = [f"{m:.2f}" for _, m, _ in summary(rows)]
    yield f"| geometric mean | | | | {' | '.join(mean)} | |"


def main():
    source, out = (sys.argv[1:] + [None, None])[:2]
    with open(source or f"{ROOT}/bench/results/models-host.json") as f:
        rows = json.load(f)
    found = rows[-1]
    figure, axes = plt.subplots(1, 2, figsize=(13, 7))
    bars(axes[0], rows)
    curves(axes[1], rows)
    figure.suptitle(f"{found['device']}, {found['cores']} cores of "
                    f"{found['machine']}, JAX {found['jax']}, {found['date']}, "
                    f"commit {found['commit']}")
    figure.tight_layout()
    figure.savefig(out or f"{ROOT}/docs/models.png", dpi=90)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
