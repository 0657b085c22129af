"""Attention as one kernel of `cuda`: graphs that become it, taken by ptxas and run by
tests/ptx/simulate.py, against numpy in f64; and graphs that stay what they are."""
import glob
import os
import re
import subprocess

import ml_dtypes
import numpy as np
import pytest

from cuda_code import TARGET, TOOL, TOP, assembled, oracle, simulate

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "pred": np.bool_}
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
        entry = "".join(f"p{i} = {shape_of(a)} parameter({i})\n" for i, a in enumerate(self.args))
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
    subprocess.run([TOOL, "compile", TARGET, f"--out={tmp}", source], check=True,
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
    "causal, of several blocks": lambda: Graph(
        t=256, s=256, h=1, score=causal("-inf").replace("128,128", "256,256"),
        mask=of_mask(np.tril(np.ones((256, 256), bool)), -np.inf)),
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


def taken(path):
    """By ptxas, with products that go by themselves and all of an item's numbers in registers."""
    said = assembled(path, "-v", chip="sm_90a")
    assert "serialized" not in said and " 0 bytes spill stores" in said


@pytest.mark.parametrize("name", GRAPHS)
def test_attention(name, tmp_path):
    g = GRAPHS[name]()
    text, plan, [path] = compiled(tmp_path, g.text)
    assert ".target sm_90a" in text and "  attend 128 rows by" in plan and plan.count("\nkernel ") == 1
    taken(path)
    out = np.full(g.want.shape, 99).astype(TYPES[g.out])
    count = int(re.search(r"tiles=(\d+)", plan).group(1))
    simulate.run(text, [*(a.copy() for a in g.args), out], range(count), LOCAL)
    # weights and results are rounded to the operands' type
    np.testing.assert_allclose(out.astype(np.float64), g.want, rtol=0,
                               atol=0.02 if g.args[0].dtype != np.float16 else 0.003)


class Gradient:
    """What of a gradient one call makes, "q" or "k and v", of q [b, t, h, d], k and v [b, s, h, d]
    and [b, s, h, e]; type: of dx, the products' gradients.  see: pred[b, s], which keys there are;
    causal: rows see keys up to their own; else a score is `fill`.  shared: one head of k and v,
    whose gradients come by head of q, [h, b, s, ..] in f32."""

    def __init__(self, of, kind="bf16", t=128, s=128, d=64, e=None, type=None, causal=False, see=None, fill=-np.inf,
                 shared=False):
        b, h, e, self.of, type = 2 if see is not None else 1, 2, e or d, of, type or kind
        q, k, v, o = (random(kind, b, n, h, w) for n, w in ((t, d), (s, d), (s, e), (t, e)))
        k, o = np.ascontiguousarray(k[:, ::-1]), np.ascontiguousarray(o[:, :, ::-1])
        seen = np.tril(np.ones((t, s), bool)) if causal else np.ones((t, s), bool)
        seen = seen & (np.ones((b, s), bool) if see is None else see)[:, None, None, :]
        more = [] if see is None else [see]
        if shared:
            k, v = (np.repeat(a[:, :, :1], h, 2) for a in (k, v))
        self.want, rows = self.values(q, k, v, o, seen, fill)
        if shared and of != "q":
            self.want = [w.transpose(2, 0, 1, 3) for w in self.want]
        if shared:
            k, v = (np.ascontiguousarray(a[:, :, 0]) for a in (k, v))
        out = np.float32 if shared and of != "q" else q.dtype
        self.outs = [np.full(w.shape, 99).astype(out) for w in self.want]
        self.args = [q, k, v, o, *rows, *more]
        self.kind = kind
        select = f"below = pred[] {'compare(row, key), direction=GE' if causal else 'constant(true)'}\n"
        select += "sees = pred[] and(below, there)" if more else "sees = pred[] copy(below)"
        element = lambda n: f"there = pred[] parameter({n})" if more else ""
        shapes = [shape_of(a) for a in self.args]
        result = ", ".join(shape_of(a) for a in self.outs)
        head = "" if shared else "B"
        to = "AqBd" if of == "q" else "BAkd,BAke" if shared else "AkBd,AkBe"
        names = ",".join(["AqBd", f"Ak{head}d", f"Ak{head}e", "AqBe", "ABq", "ABq", "ABq"] + ["Ak"] * len(more))
        self.text = f"""HloModule m
score {{ product = f32[] parameter(0)  row = s32[] parameter(1)  key = s32[] parameter(2)
{element(3)}
{select}
by = f32[] constant(0.125)  x = f32[] multiply(product, by)  low = f32[] constant({fill})
ROOT s = f32[] select(sees, x, low) }}
slope {{ product = f32[] parameter(0)  row = s32[] parameter(1)  key = s32[] parameter(2)  ds = f32[] parameter(3)
{element(4)}
{select}
by = f32[] constant(0.125)  zero = f32[] constant(0)  x = f32[] select(sees, ds, zero)  y = f32[] multiply(x, by)
ROOT dx = {type}[] {"copy" if type == "f32" else "convert"}(y) }}
ENTRY main {{
{"".join(f"p{i} = {s} parameter({i})" + chr(10) for i, s in enumerate(shapes))}
ROOT r = {result if of == "q" else f"({result})"} custom-call({", ".join(f"p{i}" for i in range(len(shapes)))}),
  custom_call_target="sundog.attend-gradient", api_version=API_VERSION_TYPED_FFI, called_computations={{score, slope}},
  backend_config="{names}->{to}"
}}
"""

    def values(self, q, k, v, o, seen, fill):
        q, k, v, o = (a.astype(np.float64) for a in (q, k, v, o))
        x = np.where(seen, np.einsum("bthd,bshd->bhts", q, k) / 8, fill)
        with np.errstate(invalid="ignore", divide="ignore"):
            m = x.max(-1, keepdims=True)
            p = np.exp(x - m)
            r = 1 / p.sum(-1, keepdims=True)
            p = p * r
            g = np.einsum("bthe,bshe->bhts", o, v)
            c = (p * g).sum(-1, keepdims=True)
            dx = np.where(seen, p * (g - c), 0) / 8
        want = ([np.einsum("bhts,bshd->bthd", dx, k)] if self.of == "q" else
                [np.einsum("bhts,bthd->bshd", dx, q), np.einsum("bhts,bthe->bshe", p, o)])
        rows = [a[..., 0].astype(np.float32) for a in (m, r, c)]
        return want, rows


def shape_of(a):
    name = {np.dtype(t): n for n, t in TYPES.items()}
    return f"{name[a.dtype]}{list(a.shape)}".replace(" ", "")


GRADIENTS = {
    "plain": {},
    "of f32, in two parts": {"type": "f32"},
    "f16": {"kind": "f16", "d": 32},
    "heads of 128": {"d": 128, "type": "f32"},
    "heads of 40 and 96": {"d": 40, "e": 96},
    "rows and keys that fill no block": {"t": 200, "s": 77, "d": 32},
    "causal": {"t": 256, "s": 256, "causal": True, "type": "f32"},
    "causal, more keys than rows": {"t": 90, "s": 300, "d": 32, "causal": True, "fill": -1e30},
    "causal, near": {"causal": True, "fill": -1.0},
    "heads that share keys": {"t": 130, "d": 32, "causal": True, "shared": True},
    "rows that see nothing": {"causal": True, "see": SEEN},
    "rows that see all alike": {"causal": True, "see": SEEN, "fill": -1e9, "type": "f32"},
}


@pytest.mark.parametrize("of", ["q", "k and v"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name, of, tmp_path):
    g = Gradient(of, **GRADIENTS[name])
    text, plan, [path] = compiled(tmp_path, g.text)
    assert f"  attend, gradient{'' if of == 'q' else 's'} of {of}," in plan and plan.count("\nkernel ") == 1
    taken(path)
    outs = [a.copy() for a in g.outs]
    count = int(re.search(r"tiles=(\d+)", plan).group(1))
    simulate.run(text, [*(a.copy() for a in g.args), *outs], range(count), LOCAL)
    for out, want in zip(outs, g.want):
        np.testing.assert_allclose(out.astype(np.float64), want, rtol=0.005 if g.kind == "bf16" else 0.001,
                                   atol=0.01 if g.kind == "bf16" else 0.002)


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


WRAPS = {
    "s8": "row8 = s8[256,256] convert(row)\nkey8 = s8[256,256] convert(key)\n"
          "see = pred[256,256] compare(row8, key8), direction=GE",
    "s32": "far = s32[] constant(2147483600)\nfars = s32[256,256] broadcast(far), dimensions={}\n"
           "later = s32[256,256] add(row, fars)\nsee = pred[256,256] compare(later, key), direction=GE",
}


@pytest.mark.parametrize("kind", WRAPS)
def test_masks_that_wrap_around_leave_no_block_out(kind, tmp_path):
    lower = causal("-inf").replace("128,128", "256,256")
    wrapping = lower.replace(lower.split("\n")[0], WRAPS[kind])
    for name, score in (("lower", lower), ("wrapping", wrapping)):
        (tmp_path / name).mkdir()
        plan = compiled(tmp_path / name, Graph(t=256, s=256, h=1, score=score).text)[1]
        assert "  score" in plan and ("where k > q" in plan) == (name == "lower")


def test_functions_are_read_once(tmp_path):
    turns = "".join(f"n{i} = f32[] negate(y{i})\ny{i + 1} = f32[] select(sees, y{i}, n{i})\n" for i in range(40))
    text = Gradient("q", causal=True).text
    assert text.count("ROOT dx = bf16[] convert(y)") == 1
    text = text.replace("ROOT dx = bf16[] convert(y)", f"y0 = f32[] copy(y)\n{turns}ROOT dx = bf16[] convert(y40)")
    assert "where k > q" in compiled(tmp_path, text)[1]


def goldens():
    """(name, HLO of the graph, HLO with calls in its place) of tests/passes/attend."""
    for file in ("attention", "gradient", "matrices"):
        text = open(os.path.join(TOP, f"tests/passes/attend/{file}.hlo")).read()
        for case in re.split(r"^(?=// run: )", text, flags=re.M)[1:]:
            graph, calls = re.split(r"^// gives:.*$", case, flags=re.M)
            graph = graph[graph.index("HloModule"):]
            yield pytest.param(graph, calls.strip(), id=re.search(r"HloModule (\w+)", graph)[1])


@pytest.mark.parametrize("graph, calls", [*goldens()])
def test_calls_are_as_exact_as_graphs(graph, calls):
    """Calls round less than the graphs that they stand for, so the two are a few hundredths
    apart; beside the graph in f64 no result of theirs has a larger root mean square error."""
    exact = oracle.Program(re.sub(r"\b(?:bf16|f16|f32)\[", "f64[", graph), "hlo_text")
    both = [oracle.Program(text, "hlo_text") for text in (graph, calls)]
    square = np.zeros((2, len(exact.results)))
    for seed in range(4):
        draw = np.random.RandomState(seed)
        args = [draw.randint(-3, 37, shape).astype(t) if t.kind in "iub" else draw.uniform(-2, 2, shape).astype(t)
                for t, shape in both[0].params]
        want = exact(*(a.astype(t) for a, (t, _) in zip(args, exact.params)))
        for k, program in enumerate(both):
            square[k] += [((x.astype(np.float64) - w) ** 2).mean() for x, w in zip(program(*args), want)]
    assert (square > 0).all() and (square[1] <= 1.1 * square[0]).all()
