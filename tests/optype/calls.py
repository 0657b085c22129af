"""The rows that call computations, and those of dimensions and devices."""
import numpy as np

import values
from structured import adds, ranked
from values import any_values, index_values, sparse_values


# ---- tuples, calls and control ----

def tuple_of(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("tuple", [(t, s), (t, s)], y, x)
    return lambda x, y: [y, x]


def get_tuple_element(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    pair = c.do("tuple", [(t, s), (t, s)], x, y)
    c.give("get-tuple-element", (t, s), pair, more="index=1")
    return lambda x, y: y


def opt_barrier(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    pair = c.do("tuple", [(t, s), (t, s)], x, y)
    c.give("opt-barrier", [(t, s), (t, s)], pair)
    return lambda x, y: [x, y]


def called(c, t, s):
    return c.region([f"ROOT r = {c.shaped(t, s)} reshape(p1)"], (t, s), (t, s))


def call(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("call", (t, s), x, y, more=f"to_apply={called(c, t, s)}")
    return lambda x, y: y


def fusion(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("fusion", (t, s), x, y, more=f"kind=kLoop, calls={called(c, t, s)}")
    return lambda x, y: y


def while_of(c, t, s):
    """Three times: the two change places."""
    state = [("s32", ()), (t, s), (t, s)]
    text = c.shape_text(state)
    take = [f"i = s32[] get-tuple-element(p), index=0",
            f"x = {c.shaped(t, s)} get-tuple-element(p), index=1",
            f"y = {c.shaped(t, s)} get-tuple-element(p), index=2"]
    cond = c.region([f"p = {text} parameter(0)", take[0],
                     "n = s32[] constant(3)",
                     "ROOT r = pred[] compare(i, n), direction=LT"])
    body = c.region([f"p = {text} parameter(0)", *take,
                     "one = s32[] constant(1)", "j = s32[] add(i, one)",
                     f"ROOT r = {text} tuple(j, y, x)"])
    i = c.param(index_values, "s32", ())
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    start = c.do("tuple", state, i, x, y)
    c.give("while", state, start, more=f"condition={cond}, body={body}")

    def meaning(i, x, y):
        while i < 3:
            i, x, y = i + 1, y, x
        return [i, x, y]
    return meaning


def conditional(c, t, s):
    """The last branch is taken for an index out of range."""
    i, p = c.param(index_values, "s32", ()), c.param(any_values, "pred", ())
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    f = c.region([f"ROOT r = {c.shaped(t, s)} reshape(p0)"], (t, s))
    c.give("conditional", (t, s), i, x, y, x,
           more=f"branch_computations={{{f}, {f}, {f}}}")
    c.give("conditional", (t, s), p, x, y,
           more=f"true_computation={f}, false_computation={f}")
    return lambda i, p, x, y: [y if i == 1 else x, x if p else y]


def custom_call(c, t, s):
    """One that any platform takes: it gives its operand."""
    x = c.param(any_values, t, s)
    c.give("custom-call", (t, s), x, more='custom_call_target="Sharding", '
           "sharding={replicated}")
    return lambda x: x


# ---- dimensions and devices ----

def get_dimension_size(c, t, s):
    s = ranked(s, 1)
    x = c.param(any_values, t, s)
    for d in range(len(s)):
        c.give("get-dimension-size", ("s32", ()), x, more=f"dimensions={{{d}}}")
    return lambda x: list(s)


def set_dimension_size(c, t, s):
    """To all that there is."""
    s = ranked(s, 1)
    x = c.param(any_values, t, s)
    c.lines.append(f"n = s32[] constant({s[-1]})")
    c.give("set-dimension-size", (t, s), x, "n",
           more=f"dimensions={{{len(s) - 1}}}")
    return lambda x: x


def own_number(c, t, s):
    c.give(c.op, ("u32", ()))
    return lambda: np.uint32(0)


def collective(c, t, s):
    """Among one device."""
    s = ranked(s, 1)
    x = c.param(sparse_values, t, s)
    more = {"collective-permute": "source_target_pairs={{0,0}}"}.get(
        c.op, "replica_groups={{0}}")
    if c.op in ("all-gather", "all-to-all", "reduce-scatter"):
        more += ", dimensions={0}"
    if c.op in ("all-reduce", "reduce-scatter"):
        more += ", to_apply=" + c.binary_region(adds(t), t)
    c.give(c.op, (t, s), x, more=more)
    return lambda x: x
