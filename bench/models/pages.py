"""Writes the tables and the plot of docs/models.md and docs/stable-diffusion.md
from raw results in bench/results, so that no figure is typed in.

usage: pages.py

A page holds a table between two lines, `<!-- NAME: ... -->` and
`<!-- end of NAME -->`; what is between them is written anew.
"""
import json
import os
import re
import sys

import numpy as np

from plot import draw, several
from run import is_right, ratios, summary

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def results(name):
    """Raw results of a name, none where nobody measured yet."""
    file = os.path.join(ROOT, "bench", "results", name)
    if not os.path.exists(file):
        return []
    with open(file) as f:
        return json.load(f)


def rewrite(page, name, lines):
    file = os.path.join(ROOT, "docs", page)
    with open(file) as f:
        text = f.read()
    pattern = rf"(<!-- {name}:.*-->\n).*(<!-- end of {name} -->\n)"
    found = re.search(pattern, text, re.S)
    if not found:
        sys.exit(f"{file}: no lines <!-- {name}: ... --> and "
                 f"<!-- end of {name} -->")
    inside = "".join(f"{line}\n" for line in lines)
    with open(file, "w") as f:
        f.write(text[:found.end(1)] + inside + text[found.start(2):])


def measured(rows):
    """Where and when, a paragraph of its own."""
    loads = [r["load"] for r in rows]
    yield ""
    yield (f"{several(rows, 'cores')} cores of {several(rows, 'machine')}, JAX "
           f"{several(rows, 'jax')}, {several(rows, 'date')}, commit "
           f"{several(rows, 'commit')}; load before the runs "
           f"{min(loads):.1f} to {max(loads):.1f}.")


def ms(r, which):
    return f"{1e3 * np.median(r[which]['run'] or [np.nan]):,.1f}"


def mib(r, which):
    return f"{r[which]['memory'] / 2**20:,.0f}"


def ratio(r, key):
    q = ratios(r)[key]
    return f"{q:.2f}" if q else "-"


def off_by(r):
    return f"{r['off']:.0e}" + ("" if is_right(r) else ", **wrong**")


def models(rows):
    yield ("| model | off by | JAX CPU, ms | ours, ms | time | CPU time | "
           "compile | first call | memory | ours, MiB | turns |")
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        cells = [r["name"], off_by(r), ms(r, "cpu"), ms(r, "xpu"),
                 *(ratio(r, k) for k in ratios(r)), mib(r, "xpu"),
                 str(len(r["xpu"]["run"]))]
        yield f"| {' | '.join(cells)} |"
    mean = [f"{m:.2f}" for _, m, _ in summary(rows)]
    yield f"| geometric mean | | | | {' | '.join(mean)} | | |"
    yield from measured(rows)


def true_shapes(rows):
    """Stable Diffusion v1.4 of bench/models: seconds, for docs of its own."""
    yield ("| | off by | JAX CPU, s | ours, s | ratio | compile | first call | "
           "memory, JAX CPU, MiB | ours |")
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        s = [f"{np.median(r[w]['run'] or [np.nan]):.2f}"
             for w in ("cpu", "xpu")]
        cells = [r["name"], off_by(r), *s, ratio(r, "time"),
                 ratio(r, "compile"), ratio(r, "first"), mib(r, "cpu"),
                 mib(r, "xpu")]
        yield f"| {' | '.join(cells)} |"
    yield from measured(rows)


def demo(rows):
    yield ("| | JAX CPU, s | xpu, s | ratio | first image, JAX CPU | xpu | "
           "largest difference: text, steps, decoder |")
    yield "|---|---|---|---|---|---|---|"
    for r in rows:
        (a, b), first = (r["seconds"][k] for k in ("image", "first image"))
        ours, theirs = (", ".join(f"{x:.0e}" for x in r[k].values())
                        for k in ("off", "off_cpu"))
        more = f" (JAX CPU in {r['dtype']}: {theirs})" if theirs else ""
        yield (f"| `{r['device']}`, {r['dtype']} | {a:.2f} | {b:.2f} | "
               f"{a / b:.2f} | {first[0]:.1f} | {first[1]:.1f} | "
               f"{ours}{more} |")
    yield from measured(rows)


def main():
    rows = results("models-host.json")
    if not rows:
        sys.exit("pages: no bench/results/models-host.json: make bench-models")
    draw(rows, os.path.join(ROOT, "docs", "models.png"))
    less = results("models-host-avx2.json")
    for of, name in ((rows, "{}"), (less, "{} without AVX-512")):
        rewrite("models.md", name.format("models"), models(of))
        sd = [r for r in of if r["name"].startswith("sd ")]
        if sd:
            rewrite("stable-diffusion.md", name.format("true shapes"),
                    true_shapes(sd))
    if results("demo-sd.json"):
        rewrite("stable-diffusion.md", "demo", demo(results("demo-sd.json")))


if __name__ == "__main__":
    main()
