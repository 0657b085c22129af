"""One job on a device and on JAX's CPU, stage by stage."""
import numpy as np

from .stages import Stages

# Largest difference, relative to the largest magnitude of the stage's result.
# f32: both round, in another order.  bf16: against JAX's CPU in f32, which
# JAX's CPU in bf16 must meet as well.
BOUNDS = {"f32": 1e-4, "bf16": 1e-1}


def differ(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if not np.all(np.isfinite(a)):
        return float("nan")
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


def parts(run):
    yield "text", run.text
    for i, latents in enumerate(run.latents):
        yield f"step {i + 1}", latents
    yield "decoder", run.image


def worst(found, name, off):
    """Keeps the largest of all steps as one; NaN stays."""
    name = "steps" if name.startswith("step ") else name
    found[name] = float(np.max([found.get(name, 0.0), off]))


def twice(models, device, job, progress):
    """(the first run, which compiles; the second)."""
    stages = Stages(models, device)
    first = stages(job, keep=True, progress=progress)
    return first, stages(job, keep=True, progress=progress)


def compare(models, exact, dtype, device, cpu, job, progress=None):
    """Prints the table; returns (the device's run, figures), whose `good` says
    whether all is within bounds.  exact: the same models in f32, None where
    models are f32."""
    first, ours = twice(models, device, job, progress)
    first_cpu, theirs = twice(models, cpu, job, progress)
    truth = Stages(exact, cpu)(job, keep=True) if exact else theirs
    bound, good, off, off_cpu = BOUNDS[dtype], True, {}, {}
    head = f"{'stage':12}{'xpu off by':>12}"
    head += f"{'CPU off by':>12}" if exact else ""
    print(f"\n{head}{'bound':>10}")
    for (name, a), (_, b), (_, c) in zip(*map(parts, (ours, theirs, truth))):
        here, there = differ(a, c), differ(b, c)
        line = f"{name:12}{here:12.1e}" + (f"{there:12.1e}" if exact else "")
        fine = here <= bound and there <= bound
        good = good and fine
        worst(off, name, here)
        worst(off_cpu, name, there)
        print(f"{line}{bound:10.0e}{'' if fine else '  TOO LARGE'}")
    print(f"\n{'seconds':16}{'JAX CPU':>10}{'xpu':>10}{'ratio':>8}")
    seconds = {k: (theirs.seconds[k], v) for k, v in ours.seconds.items()}
    for name, pair in (("image", (theirs, ours)),
                       ("first image", (first_cpu, first))):
        seconds[name] = tuple(sum(r.seconds.values()) for r in pair)
    for name, (a, b) in seconds.items():
        print(f"{name:16}{a:10.3f}{b:10.3f}{a / b:8.2f}")
    return ours, dict(good=good, dtype=dtype, steps=job.steps, off=off,
                      off_cpu=off_cpu if exact else {}, seconds=seconds)
