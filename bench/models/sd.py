"""Stable Diffusion v1.4 in plain JAX: text encoder, UNet with guidance, DDIM
steps in a loop, decoder, in one program from token ids to pixels."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from net import (Scope, attention, causal, conv, dense, group_norm, layer_norm,
                 weights)
from program import Program, floats, ints

WIDTHS, DECODER = (320, 640, 1280, 1280), (128, 256, 512, 512)
EACH = 2                    # units of a width on the way down, one more up
LAYERS, D, V = 12, 768, 49408


def text(s, ids):
    x = s("tokens", V, D, init=0.02)[ids] + s("places", 77, D, init=0.01)
    for i in range(LAYERS):
        b = s(f"layer{i}")
        x = x + attention(b("attention"), layer_norm(b("ln1"), x), D // 64,
                          mask=causal(77))
        h = dense(b("up"), layer_norm(b("ln2"), x), 4 * D)
        x = x + dense(b("down"), h * jax.nn.sigmoid(1.702 * h), D)
    return layer_norm(s("ln"), x)


def resnet(s, x, width, time=None, eps=1e-5):
    h = conv(s("conv1"), jax.nn.silu(group_norm(s("norm1"), x, eps=eps)), width)
    if time is not None:
        h = h + dense(s("time"), jax.nn.silu(time), width)[:, None, None]
    h = conv(s("conv2"), jax.nn.silu(group_norm(s("norm2"), h, eps=eps)), width)
    return (conv(s("shortcut"), x, width, 1) if x.shape != h.shape else x) + h


def transformer(s, x, context):
    n, h, w, c = x.shape
    y = conv(s("in"), group_norm(s("norm"), x, eps=1e-6), c, 1)
    y = y.reshape(n, h * w, c)
    for name, kv in (("self", None), ("cross", context)):
        b = s(name)
        y = y + attend_to(b, layer_norm(b("ln"), y), kv)
    u, g = jnp.split(dense(s("gate"), layer_norm(s("ln3"), y), 8 * c), 2, -1)
    y = y + dense(s("down"), u * jax.nn.gelu(g), c)
    return x + conv(s("out"), y.reshape(x.shape), c, 1)


def attend_to(s, x, kv):
    """v1.4's attention: only what comes out has a bias."""
    y = attention(s, x, 8, kv=kv, use_bias=False)
    return y + s("bias", x.shape[-1], init=0)


def double(x):
    n, h, w, c = x.shape
    return jnp.broadcast_to(x[:, :, None, :, None],
                            (n, h, 2, w, 2, c)).reshape(n, 2 * h, 2 * w, c)


def unet(s, x, t, context):
    half, wide, last = WIDTHS[0] // 2, 4 * WIDTHS[0], len(WIDTHS) - 1
    angle = t * jnp.exp(-np.log(10000) * jnp.arange(half) / half)
    t = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)])[None].astype(x.dtype)
    t = dense(s("time2"), jax.nn.silu(dense(s("time1"), t, wide)), wide)
    x = conv(s("in"), x, WIDTHS[0])
    kept = [x]
    for i, width in enumerate(WIDTHS):
        for j in range(EACH):
            b = s(f"down{i}.{j}")
            x = resnet(b, x, width, t)
            x = transformer(b("attn"), x, context) if i < last else x
            kept.append(x)
        if i < last:
            x = conv(s(f"down{i}"), x, width, 3, 2, ((1, 1), (1, 1)))
            kept.append(x)
    x = resnet(s("mid0"), x, WIDTHS[-1], t)
    x = resnet(s("mid2"), transformer(s("mid1"), x, context), WIDTHS[-1], t)
    for i, width in enumerate(WIDTHS[::-1]):
        for j in range(EACH + 1):
            b = s(f"up{i}.{j}")
            x = resnet(b, jnp.concatenate([x, kept.pop()], -1), width, t)
            x = transformer(b("attn"), x, context) if i else x
        if i < last:
            x = conv(s(f"up{i}"), double(x), width)
    return conv(s("out"), jax.nn.silu(group_norm(s("norm"), x)), 4)


def decode(s, z):
    x = conv(s("post"), z / 0.18215, 4, 1)
    wide, last = DECODER[-1], len(DECODER) - 1
    x = resnet(s("mid0"), conv(s("in"), x, wide), wide, eps=1e-6)
    y = group_norm(s("norm1"), x, eps=1e-6).reshape(x.shape[0], -1, wide)
    x = x + attention(s("attn"), y, 1).reshape(x.shape)
    x = resnet(s("mid1"), x, wide, eps=1e-6)
    for i, width in enumerate(DECODER[::-1]):
        for j in range(EACH + 1):
            x = resnet(s(f"up{i}.{j}"), x, width, eps=1e-6)
        if i < last:
            x = conv(s(f"up{i}"), double(x), width)
    x = jax.nn.silu(group_norm(s("norm2"), x, eps=1e-6))
    return conv(s("out"), x, 3)


def pipeline(s, ids, noise, steps):
    dtype = s.dtype
    context = text(s("text"), ids).astype(dtype)
    kept = np.cumprod(1 - np.linspace(0.00085**0.5, 0.012**0.5, 1000)**2)
    times = np.arange(steps)[::-1] * (1000 // steps) + 1
    now = jnp.asarray(kept[times], jnp.float32)
    then = jnp.append(now[1:], np.float32(kept[0]))

    def step(i, x):
        a, b = now[i], then[i]
        both = jnp.concatenate([x, x]).astype(dtype)
        e = unet(s("unet"), both, jnp.asarray(times)[i], context)
        none, prompt = jnp.split(e.astype(jnp.float32), 2)
        e = none + 7.5 * (prompt - none)
        return (jnp.sqrt(b) * (x - jnp.sqrt(1 - a) * e) / jnp.sqrt(a)
                + jnp.sqrt(1 - b) * e)
    if isinstance(next(iter(s.found.values()), ()), tuple):
        z = step(0, noise)          # its weights are still to be told
    else:
        z = lax.fori_loop(0, steps, step, noise)
    return decode(s("vae"), z.astype(dtype)).astype(jnp.float32)


def infer(side=128, steps=4, dtype=jnp.float32):
    small = side // 2 ** (len(DECODER) - 1)
    inputs = ints(0, V, 2, 77), floats(1, 1, small, small, 4)
    network = lambda s, *x: pipeline(s, *x, steps)
    return Program(
        lambda p, _, *x: ((), network(Scope(p, dtype=dtype), *x)),
        weights(network, *inputs, dtype=dtype), (), inputs)
