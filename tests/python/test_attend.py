"""Attention as one kernel of `cuda`: graphs that become it, taken by ptxas and run by
tests/ptx/simulate.py, against numpy in f64; and graphs that stay what they are."""
import glob
import os
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
import ptx  # noqa: E402
import simulate  # noqa: E402

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "pred": np.bool_}
TOOL = os.path.join(TOP, "build/release/tools/sundog")
LOCAL = 227 << 10


def random(kind, *shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(TYPES[kind])


class Graph:
    """Attention over q [b, t, h, d], k and v [b, s, h, d] with scores [b, h, t, s], as JAX
    writes it.  score: HLO that makes `s` of `x`, which are f32; more: arrays that it reads."""

    def __init__(self, kind="bf16", b=2, t=128, s=128, h=2, d=64, score="", more=(), out=None, scale=0.25,
                 mask=lambda x: x, tail=""):
        self.args = [random(kind, b, n, h, d) for n in (t, s, s + 0)] + list(more)
        self.args[2] = np.ascontiguousarray(self.args[2][:, ::-1])
        self.out = out or kind
        S, R = f"[{b},{h},{t},{s}]", f"[{b},{h},{t}]"
        name = {np.dtype(t): n for n, t in TYPES.items()}
        entry = "".join(f"p{i} = {name[a.dtype]}{str(list(a.shape)).replace(' ', '')} parameter({i})\n"
                        for i, a in enumerate(self.args))
        self.text = f"""HloModule m
larger {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }}
sum {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY main {{
{entry}
dot = f32{S} dot(p0, p1), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}}, lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
scale = f32[] constant({scale})
scales = f32{S} broadcast(scale), dimensions={{}}
x = f32{S} multiply(dot, scales)
row = s32[{t},{s}] iota(), iota_dimension=0
key = s32[{t},{s}] iota(), iota_dimension=1
{(score or "s = f32@ copy(x)").replace("@", S)}
low = f32[] constant(-inf)
zero = f32[] constant(0)
most = f32{R} reduce(s, low), dimensions={{3}}, to_apply=larger
mosts = f32{S} broadcast(most), dimensions={{0,1,2}}
less = f32{S} subtract(s, mosts)
e = f32{S} exponential(less)
all = f32{R} reduce(e, zero), dimensions={{3}}, to_apply=sum
alls = f32{S} broadcast(all), dimensions={{0,1,2}}
p = f32{S} divide(e, alls)
w = {kind}{S} convert(p)
r = {self.out}[{b},{h},{d},{t}] dot(p2, w), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,1}}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{3}}
{tail or "ROOT o"} = {self.out}[{b},{t},{h},{d}] transpose(r), dimensions={{0,3,1,2}}
}}
"""
        q, k, v = (a.astype(np.float64) for a in self.args[:3])
        x = mask(np.einsum("bthd,bshd->bhts", q, k) * scale)
        with np.errstate(invalid="ignore"):
            e = np.exp(x - x.max(-1, keepdims=True))
            self.want = np.einsum("bhts,bshd->bthd", e / e.sum(-1, keepdims=True), v)


def compiled(tmp, hlo, **env):
    source = tmp / "program.hlo"
    source.write_text(hlo)
    subprocess.run([TOOL, "compile", "--target=cuda:sm_90", f"--out={tmp}", source], check=True,
                   capture_output=True, env={**os.environ, **env})
    return ("".join(open(p).read() for p in sorted(glob.glob(f"{tmp}/*.ptx"))),
            open(glob.glob(f"{tmp}/*plan.txt")[0]).read(), glob.glob(f"{tmp}/*.ptx"))


def causal(fill, after="", dims="2,3"):
    return f"""see = pred[128,128] compare(row, key), direction=GE
sees = pred@ broadcast(see), dimensions={{{dims}}}
f = f32[] constant({fill})
fs = f32@ broadcast(f), dimensions={{}}
s = f32@ select(sees, x, fs)"""


def of_mask(see, fill):
    return lambda x: np.where(see, x, fill)


LOWER = np.tril(np.ones((128, 128), bool))
SEEN = np.random.RandomState(1).rand(2, 128) < 0.5
SEEN[0, :3] = False  # its first rows see nothing
BIAS = random("f32", 2, 128, 128) * 3
BIASED = """bias = f32@ broadcast(p3), dimensions={1,2,3}
s = f32@ add(x, bias)"""
PADDED = """see = pred@ broadcast(p3), dimensions={0,3}
f = f32[] constant(FILL)
fs = f32@ broadcast(f), dimensions={}
s = f32@ select(see, x, fs)"""
BOTH = """lower = pred[128,128] compare(row, key), direction=GE
below = pred@ broadcast(lower), dimensions={2,3}
there = pred@ broadcast(p3), dimensions={0,3}
see = pred@ and(below, there)
f = f32[] constant(FILL)
fs = f32@ broadcast(f), dimensions={}
s = f32@ select(see, x, fs)"""
GRAPHS = {
    "plain": lambda: Graph(),
    "f16": lambda: Graph("f16", d=32),
    "f32 results": lambda: Graph(out="f32"),
    "a head of 40": lambda: Graph(d=40),
    "a head of 136": lambda: Graph(d=136, h=1),
    "rows and keys that fill no block": lambda: Graph(t=200, s=77, d=16),
    "causal": lambda: Graph(score=causal("-inf"), mask=of_mask(LOWER, -np.inf)),
    "causal, finite": lambda: Graph(score=causal("-1e30"), mask=of_mask(LOWER, -1e30)),
    "causal, near": lambda: Graph(score=causal("-1"), mask=of_mask(LOWER, -1.0)),
    "bias": lambda: Graph(score=BIASED, more=[BIAS], mask=lambda x: x + BIAS),
    "padded": lambda: Graph(score=PADDED.replace("FILL", "-inf"), more=[SEEN],
                            mask=of_mask(SEEN[:, None, None, :], -np.inf)),
    "rows that see nothing": lambda: Graph(score=BOTH.replace("FILL", "-inf"), more=[SEEN],
                                           mask=of_mask(SEEN[:, None, None, :] & LOWER, -np.inf)),
    "rows that see all alike": lambda: Graph(score=BOTH.replace("FILL", "-1e9"), more=[SEEN],
                                             mask=of_mask(SEEN[:, None, None, :] & LOWER, -1e9)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_attention(name, tmp_path):
    g = GRAPHS[name]()
    text, plan, [path] = compiled(tmp_path, g.text)
    assert ".target sm_90a" in text and "  attend 128 rows by" in plan and plan.count("\nkernel ") == 1
    done = subprocess.run([ptx.find_ptxas(), "-arch=sm_90a", "-v", "-o", os.devnull, path],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "serialized" not in done.stderr and " 0 bytes spill stores" in done.stderr
    out = np.full(g.want.shape, 99).astype(TYPES[g.out])
    count = int(re.search(r"tiles=(\d+)", plan).group(1))
    simulate.run(text, [*(a.copy() for a in g.args), out], range(count), LOCAL)
    # weights and results are rounded to the operands' type
    np.testing.assert_allclose(out.astype(np.float64), g.want, rtol=0,
                               atol=0.02 if g.args[0].dtype != np.float16 else 0.003)


def test_what_is_read_elsewhere_stays(tmp_path):
    g = Graph(tail="o").text.replace("\n}\n", "\nROOT both = (bf16[2,128,2,64], f32[2,2,128,128]) tuple(o, p)\n}\n")
    assert g.count("ROOT both") == 1
    assert "attend" not in compiled(tmp_path, g)[1]


def test_only_where_it_is_asked_for(tmp_path):
    for i, (text, env) in enumerate([(Graph().text, {"SUNDOG_WGMMA": "0"}),
                                     (Graph().text, {"SUNDOG_DISABLE_PASSES": "attend"}),
                                     (Graph(d=20).text, {}), (Graph(t=32).text, {}),
                                     (Graph("f32", out="f32").text, {})]):
        (tmp_path / str(i)).mkdir()
        assert "attend" not in compiled(tmp_path / str(i), text, **env)[1]
