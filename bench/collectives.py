"""Collectives and a data-parallel step over all devices of one process, beside XLA's.

usage: collectives.py [--sizes 1024,1048576,1073741824] [--width 4096] [--rounds N] [--beside cuda]
                      [--parts collectives,step] [--processes N]

Ours is what SUNDOG_DEVICE names; JAX's own back end runs in processes of its own; --beside '' leaves it out.
Of several processes each has a card.
Of an all-reduce and an all-to-all the size is what each device has, of an all-gather
what each gets.  GB/s are NCCL's bus bandwidth: bytes that a device must send, over
time, times two in an all-reduce.  A turn is one of 100 in a loop within a program.
The step is 8 layers of bfloat16: a batch for each device (weak), one shared out (strong).
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import time

TURNS = 100


def best(run, n, rounds):
    """Seconds a run of n in a row."""
    import jax
    jax.block_until_ready(run())
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(n):
            out = run()
        jax.block_until_ready(out)
        took.append((time.perf_counter() - start) / n)
        del out
    return min(took)


def collectives(mesh, n):
    """Name, function of one array, what each device has of each byte, what it sends."""
    import jax
    from jax import lax
    P = jax.P

    def over(f):
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))

    def turns(a):
        return lax.fori_loop(0, TURNS, lambda i, x: lax.pcast(
            lax.psum(x, "x") * 0.5, "x", to="varying"), a)
    part = (n - 1) / n
    yield "psum", over(lambda a: lax.pcast(lax.psum(a, "x"), "x", to="varying")), 1, 2 * part
    yield "psum, a turn", over(turns), 1, 2 * part
    yield "all_gather", over(lambda a: lax.all_gather(a, "x", tiled=True)), 1 / n, part
    yield "all_to_all", over(lambda a: lax.all_to_all(a, "x", 0, 0, tiled=True)), 1, part


def measure_collectives(sizes, rounds):
    import jax
    import numpy as np
    mesh = jax.make_mesh((len(jax.devices()),), ("x",))
    n, rows = mesh.size, jax.NamedSharding(mesh, jax.P("x"))
    for name, f, share, sent in collectives(mesh, n):
        for size in sizes:
            if "turn" in name and size > 1 << 24:
                continue
            count = int(size * share) // 4 * n
            x = jax.jit(lambda: jax.numpy.ones((count,)), out_shardings=rows)()
            per = TURNS if "turn" in name else 1
            row = 5 if size > 1 << 26 or per > 1 else 50
            one = best(lambda: f(x), row, rounds) / per
            wait = best(lambda: f(x), 1, 2 * rounds) / per
            same = all(np.array_equal(np.asarray(a.data)[:1000], np.asarray(b.data)[:1000])
                       for a, b in zip(f(x).addressable_shards, f(x).addressable_shards))
            yield f"{name} {size}", {"us": 1e6 * one, "waited": 1e6 * wait,
                                     "GB/s": 1e-9 * sent * size / one, "same": same}
            del x


def step(p, x):
    import jax
    import jax.numpy as jnp

    def loss(p):
        y = x
        for w in p:
            y = jnp.tanh(y @ w)
        return (y.astype(jnp.float32) ** 2).mean()
    value, g = jax.value_and_grad(loss)(p)
    return jax.tree.map(lambda w, d: w - 0.01 * d, p, g), value


def measure_step(width, rounds):
    import jax
    import jax.numpy as jnp
    batch = 2 * width
    for name, n, rows in (("one device", 1, batch), ("weak", len(jax.devices()), batch * len(jax.devices())),
                          ("strong", len(jax.devices()), batch)):
        mesh = jax.sharding.Mesh(jax.devices()[:n], ("x",))
        whole, cut = (jax.NamedSharding(mesh, s) for s in (jax.P(), jax.P("x")))
        make = jax.jit(lambda: [jnp.full((width, width), 0.01 * (i + 1), jnp.bfloat16) for i in range(8)],
                       out_shardings=whole)
        x = jax.jit(lambda: jnp.full((rows, width), 0.5, jnp.bfloat16), out_shardings=cut)()
        f = jax.jit(step, donate_argnums=0)
        state = [make()]

        def run():
            state[0], value = f(state[0], x)
            return state[0], value
        yield f"step, {name}", {"us": 1e6 * best(run, 10, rounds)}
        del state, x


def child(a):
    import jax
    if a.processes > 1:
        jax.distributed.initialize(f"127.0.0.1:{a.port}", a.processes, a.process)
    if a.rows == "collectives":
        got = measure_collectives([int(s) for s in a.sizes.split(",")], a.rounds)
    else:
        got = measure_step(a.width, a.rounds)
    print(json.dumps(["devices", [str(d) for d in jax.devices()]]))
    for name, values in got:
        print(json.dumps([name, values]), flush=True)


def back_end(a, platform):
    env = {**os.environ, "JAX_PLATFORMS": platform, "NCCL_NVLS_ENABLE": "0",
           "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    rows = {}
    for part in a.parts.split(","):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        command = [sys.executable, __file__, *sys.argv[1:], "--rows", part, "--port", str(port)]
        all_of_them = [
            subprocess.Popen([*command, "--process", str(i)], stdout=subprocess.PIPE, text=True,
                             env=env if a.processes == 1 else {**env, "CUDA_VISIBLE_DEVICES": str(i)})
            for i in range(a.processes)]
        said = [p.communicate()[0] for p in all_of_them]
        for line in said[0].splitlines():
            if line.startswith("["):
                name, values = json.loads(line)
                rows[name] = values
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sizes", default="1024,1048576,1073741824")
    p.add_argument("--width", type=int, default=4096)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--beside", default="cuda")
    p.add_argument("--parts", default="collectives,step")
    p.add_argument("--processes", type=int, default=1)
    p.add_argument("--rows")  # these three: of one process
    p.add_argument("--process", type=int, default=0)
    p.add_argument("--port")
    a = p.parse_args()
    if a.rows:
        child(a)
        return
    ours, theirs = back_end(a, "xpu,cpu"), back_end(a, a.beside) if a.beside else {}
    names = ours.pop("devices", []), theirs.pop("devices", [])
    print("ours on", *names[0], "beside", *names[1])
    print(f"{'':28} {'us':>10} {'waited':>10} {'GB/s':>8}   {'XLA us':>10} {'waited':>10} {'GB/s':>8}")
    for name in {**ours, **theirs}:
        cells = []
        for side in ours, theirs:
            v = side.get(name, {})
            cells.append(" ".join(f"{v[k]:>{w}.1f}" if k in v else " " * w
                                  for k, w in (("us", 10), ("waited", 10), ("GB/s", 8))))
            if not v.get("same", True):
                cells[-1] += " other bits in another run"
        print(f"{name:28} " + "   ".join(cells))
    for side, devices in zip((ours, theirs), names):
        took = [side.get(f"step, {k}", {}).get("us") for k in ("one device", "weak", "strong")]
        if all(took):
            print(f"weak {100 * took[0] / took[1]:.1f} %, strong {100 * took[0] / len(devices) / took[2]:.1f} %")


if __name__ == "__main__":
    main()
