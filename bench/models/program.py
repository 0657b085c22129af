"""What a family's file returns for a row of the table."""
import dataclasses
from typing import Any, Callable

import numpy as np


@dataclasses.dataclass
class Program:
    """fn(constants, state, *inputs) -> (state, out): state is donated and goes
    round; a training step's out is its loss."""
    fn: Callable
    constants: Any
    state: Any
    inputs: tuple
    trains: bool = False


def ints(seed, high, *shape):
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def floats(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def pictures(seed, n, side, classes):
    """Pictures with their class in them, so that a loss falls."""
    y = ints(seed, classes, n)
    x = floats(seed + 1, n, side, side, 3)
    return x + floats(9, classes, 1, 1, 3)[y], y
