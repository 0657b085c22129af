"""A picture from a prompt: Stable Diffusion in JAX, with the Flax classes of
diffusers and transformers as they are.

    stable_diffusion.py "a lighthouse at dawn" --weights FOLDER
    stable_diffusion.py --size small --compare          # no files needed

FOLDER is a checkpoint in diffusers' layout (unet/, vae/, text_encoder/,
tokenizer/, scheduler/), weights as safetensors or msgpack.  Without one,
weights come from a seed in the shapes that --size says, and words become token
ids by a toy tokenizer: the picture is then a texture, but the work is the same.
The program names no kind of device: SUNDOG_DEVICE=host, cl or auto (the
default, an OpenCL GPU where there is one) or --platform cpu choose it.
"""
import argparse
import json
import os
import resource
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")  # both libraries say that Flax is deprecated

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def at_least(least):
    """An option's value: a whole number, and how small it may be."""
    def number(word):
        if int(word) < least:
            raise argparse.ArgumentTypeError(f"{word}: at least {least}")
        return int(word)
    number.__name__ = "whole number"    # what argparse says of other words
    return number


def arguments(words):
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawTextHelpFormatter)
    add = ap.add_argument
    add("prompt", nargs="?", default="a photo of a cat in the sun")
    add("--weights", metavar="FOLDER", help="a checkpoint in diffusers' layout")
    add("--size", choices=("tiny", "small", "full"), default="full",
        help="shapes of seeded weights; full: v1.4's")
    add("--steps", type=at_least(1), default=20)
    add("--guidance", type=float, default=7.5)
    add("--seed", type=at_least(0), default=0)
    add("--height", type=at_least(1),
        help="pixels; default: what the UNet is for")
    add("--width", type=at_least(1))
    add("--dtype", choices=("f32", "bf16"), default="f32")
    add("--scheduler", choices=("dpm", "ddim", "pndm"), default="dpm")
    add("--batch", type=at_least(1), default=1,
        help="pictures, shared out over the devices when there are several")
    add("--repeat", type=at_least(1), default=1,
        help="runs to take the mean time of")
    add("--warmup", type=at_least(0), default=0, help="runs before those")
    add("--whole", action="store_true",
        help="diffusers' own pipeline, in one program, without stages")
    add("--compare", action="store_true",
        help="each stage against JAX's CPU; fails beyond the bound")
    add("--json", metavar="FILE", help="write what --compare found there")
    add("--platform", choices=("xpu", "cpu"), default="xpu")
    add("--out", default="img.png", help="with more pictures: img-1.png, ...")
    add("--save", metavar="FOLDER", help="write the weights there, and end")
    add("--save-as", choices=("safetensors", "msgpack"), default="safetensors")
    a = ap.parse_args(words)
    if a.whole and a.compare:
        ap.error("--whole has no stages that --compare could show")
    if a.json and not a.compare:
        ap.error("--json goes with --compare")
    return a


def check_out(path):
    """Whether a picture can be written there, before the work of making it."""
    from PIL import Image
    ext, folder = os.path.splitext(path)[1], os.path.dirname(path) or "."
    if ext.lower() not in Image.registered_extensions():
        sys.exit(f"--out {path}: no picture's file name, such as img.png")
    if not os.path.isdir(folder):
        sys.exit(f"--out {path}: no folder {folder}")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        sys.exit(f"--out {path}: cannot be written")


def check_job(a, m, job, devices):
    """What only the models and the devices can tell."""
    if job.height % m.multiple or job.width % m.multiple:
        sys.exit(f"--height {job.height}, --width {job.width}: multiples of "
                 f"{m.multiple} for this UNet")
    if a.steps > m.scheduler.config.num_train_timesteps:
        sys.exit(f"--steps {a.steps}: at most "
                 f"{m.scheduler.config.num_train_timesteps}, as trained")
    n = min(len(devices), a.batch)
    if a.whole and a.batch % n:
        sys.exit(f"--whole --batch {a.batch}: not a multiple of {n} devices")


def load(a, dtype):
    from sd import models
    if a.weights:
        return models.from_folder(a.weights, dtype, a.scheduler)
    return models.from_seed(a.size, dtype, a.scheduler, a.seed)


def bar(total):
    """A progress bar on a terminal, else nothing."""
    if not sys.stderr.isatty():
        return None
    from tqdm import tqdm
    return tqdm(total=total, unit="step", leave=False).update


def peak_memory(device):
    stats = device.memory_stats() or {}
    own = stats.get("peak_bytes_in_use", 0) / 2**20
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (f"{own:,.0f} MiB on {device!r}, " if own else "") + \
        f"{rss:,.0f} MiB in the process"


def save_images(images, out):
    import numpy as np
    from PIL import Image
    base, ext = os.path.splitext(out)
    for i, image in enumerate(images):
        path = out if len(images) == 1 else f"{base}-{i + 1}{ext}"
        pixels = (np.asarray(image) * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(path)
        print(f"wrote {path}, {pixels.shape[1]}x{pixels.shape[0]}")


def share(job, n):
    """The job's prompts in n groups, one a device."""
    import dataclasses
    size = -(-len(job.prompts) // n)
    for i in range(0, len(job.prompts), size):
        yield dataclasses.replace(job, prompts=job.prompts[i:i + size],
                                  seeds=job.seeds[i:i + size])


def staged(m, job, devices):
    """A function that makes all images, each device its share."""
    import numpy as np
    from sd.stages import Stages
    jobs = list(share(job, len(devices)))
    stages = [Stages(m, d) for d, _ in zip(devices, jobs)]
    pool = ThreadPoolExecutor(len(jobs))

    def call(progress=None):
        runs = list(pool.map(lambda s, j: s(j, progress=progress),
                             stages, jobs))
        seconds = {k: max(r.seconds[k] for r in runs) for k in runs[0].seconds}
        return np.concatenate([r.image for r in runs]), seconds
    return call


def generate(a, m, job, devices):
    """Warm-up, repeats, and the printed latency."""
    if a.whole:
        from sd.stages import whole
        make = whole(m, job, devices[:a.batch])
        call = lambda progress=None: (make(), {})
    else:
        call = staged(m, job, devices)
    taken, first = [], None
    for k in range(a.warmup + a.repeat):
        start = time.perf_counter()
        images, seconds = call(bar(a.steps))
        taken.append(time.perf_counter() - start)
        if k == 0:
            print(f"first run, compiling counted: {taken[0]:.2f} s")
    taken = taken[a.warmup:]
    parts = ", ".join(f"{k} {v:.3f} s" for k, v in seconds.items())
    if parts:
        print(f"last run: {parts}")
    mean = sum(taken) / len(taken)
    print(f"latency: {mean / len(images):.3f} s an image, {a.steps} steps, "
          f"mean of {len(taken)} after {a.warmup} to warm up; "
          f"{a.steps * len(images) / mean:.2f} steps a second")
    return images


def main(words=None):
    a = arguments(words)
    if not a.save:
        check_out(a.out)
    import jax
    from sd.stages import Job
    devices, cpu = jax.devices(a.platform), jax.devices("cpu")[0]
    with jax.default_device(cpu):
        m = load(a, "f32" if a.save else a.dtype)
    for note in m.notes:
        print(f"note: {note}")
    if a.save:
        from sd.weights import to_folder
        to_folder(m, a.save, a.save_as)
        return print(f"wrote {a.save}")
    job = Job(prompts=[a.prompt] * a.batch, steps=a.steps, guidance=a.guidance,
              seeds=[a.seed + i for i in range(a.batch)],
              height=a.height or m.image, width=a.width or m.image)
    check_job(a, m, job, devices)
    print(f"{devices}, {a.dtype}, {a.steps} steps of {a.scheduler}, "
          f"{job.width}x{job.height}: {a.prompt!r}")
    good = True
    if a.compare:
        from sd.compare import compare
        with jax.default_device(cpu):
            exact = load(a, "f32") if a.dtype != "f32" else None
        run, figures = compare(m, exact, a.dtype, devices[0], cpu, job)
        images, good = run.image, figures["good"]
        if a.json:
            with open(a.json, "w") as f:
                json.dump(figures, f)
    else:
        images = generate(a, m, job, devices)
    print(f"peak memory: {peak_memory(devices[0])}")
    save_images(images, a.out)
    if not good:
        sys.exit("stable_diffusion: a stage differs from JAX CPU by more than "
                 "its bound")


if __name__ == "__main__":
    main()
