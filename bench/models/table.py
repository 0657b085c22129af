"""Which models are timed: one row registers one.

tol: largest difference from JAX's CPU, of the largest magnitude; of a training
step, of each loss of the curve, or of a ten-thousandth of the first loss where
a loss is less: it is the difference of numbers that are no smaller.  Where it is
a bf16 model's, JAX's CPU rounds after other operations.
"""
import dataclasses
from typing import Callable

import jax.numpy as jnp

import bert
import gpt2
import keras_cnn
import llama
import lstm
import resnet
import sd
import t5
import vit

BF16 = jnp.bfloat16


@dataclasses.dataclass
class Row:
    name: str
    make: Callable
    tol: float
    big: bool = False        # gigabytes: only with --big
    own: bool = False        # compiles by itself


ROWS = [
    Row("gpt2 train", gpt2.train, 1e-3),
    Row("gpt2 decode", gpt2.decode, 1e-4),
    Row("llama decode bf16", lambda: llama.decode(1), 3e-2),
    Row("llama decode bf16 x8", lambda: llama.decode(8), 3e-2),
    Row("bert", bert.infer, 1e-4),
    Row("resnet50", resnet.infer, 1e-4),
    Row("resnet50 train", resnet.train, 1e-3),
    Row("vit", vit.infer, 1e-4),
    Row("t5 train", t5.train, 1e-3),
    Row("lstm train", lstm.train, 1e-3),
    Row("keras cnn train", keras_cnn.train, 1e-3, own=True),
    Row("sd v1.4 128", lambda: sd.infer(128), 1e-4),
    Row("sd v1.4 256", lambda: sd.infer(256), 1e-4, big=True),
    Row("sd v1.4 256 bf16", lambda: sd.infer(256, dtype=BF16), 1e-1, big=True),
]
