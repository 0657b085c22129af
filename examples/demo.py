"""Devices, eager x**2, and 100 training steps of an MLP on them, held against
JAX's own CPU: losses within 1e-4 relative at every step, times side by side."""
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "tests", "python"))
import programs  # noqa: E402


def steps_per_second(device):
    """Median seconds of a step of a larger MLP, after a warm-up."""
    data = programs.mlp_data(sizes=(256, 1024, 1024, 10), n=256)
    params, x, y = jax.device_put(data, device)
    step = jax.jit(programs.mlp_step, donate_argnums=0)
    times = []
    for _ in range(25):
        start = time.perf_counter()
        params, loss = jax.block_until_ready(step(params, x, y))
        times.append(time.perf_counter() - start)
    return float(np.median(times[5:]))


def first_call(device):
    """Seconds from Python function to first result: trace, compile, run."""
    data = jax.device_put(programs.mlp_data(), device)
    jax.clear_caches()
    start = time.perf_counter()
    jax.block_until_ready(jax.jit(programs.mlp_step)(*data))
    return time.perf_counter() - start


def main():
    devices, cpu = jax.devices("xpu"), jax.devices("cpu")[0]
    print(devices)
    for device in devices:
        x = jax.device_put(np.arange(8, dtype=np.float32), device)
        print(f"x**2 on {device!r}: {np.asarray(x**2)}")
    want = programs.mlp_train(cpu)
    for device in devices:
        got = programs.mlp_train(device)
        worst = float(np.max(np.abs(got - want) / np.abs(want)))
        print(f"{device!r}: 100 steps, loss {got[0]:.6f} -> {got[-1]:.6f}, "
              f"worst relative difference from JAX CPU {worst:.1e}")
        if not worst <= 1e-4:
            sys.exit("demo: the losses differ from JAX CPU's by more than 1e-4")
    print(f"{'':24}{'JAX CPU':>12}{'xpu':>12}{'ratio':>8}")
    for what, fn in (("training step, ms", steps_per_second),
                     ("first call, ms", first_call)):
        a, b = fn(cpu) * 1e3, fn(devices[0]) * 1e3
        print(f"{what:24}{a:12.2f}{b:12.2f}{a / b:8.2f}")


if __name__ == "__main__":
    main()
