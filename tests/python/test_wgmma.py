"""Products by wgmma, and with SUNDOG_WGMMA=0 by mma.sync: what they become is taken by
ptxas and run by tests/ptx/simulate.py.  Sums of small integers are exact, whatever their
order, in tf32 too."""
import glob
import os
import re
import subprocess

import ml_dtypes
import numpy as np
import pytest

from cuda_code import TARGET, TOOL, assembled, simulate

TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "u8": np.uint8,
         "f32": np.float32, "s32": np.int32}
LOCAL = 227 << 10


def compiled(tmp, hlo, wgmma="1"):
    """The text, groups, items and local memory of the one kernel, and its blocks' line."""
    source = tmp / "program.hlo"
    source.write_text(hlo)
    subprocess.run([TOOL, "compile", TARGET, f"--out={tmp}", source], check=True,
                   capture_output=True,
                   env={**os.environ, "SUNDOG_WGMMA": wgmma, "SUNDOG_DISABLE_PASSES": "operands"})
    [path] = glob.glob(f"{tmp}/*.ptx")
    plan = open(glob.glob(f"{tmp}/*plan.txt")[0]).read()
    return open(path).read(), plan, path


def random(kind, *shape):
    low = 0 if kind == "u8" else -4
    return np.random.RandomState(len(shape)).randint(low, 5, shape).astype(TYPES[kind])


def entry(args, body):
    """HLO of parameters p0, p1, .. of these arrays."""
    name = {np.dtype(t): n for n, t in TYPES.items()}
    return "HloModule m\nENTRY main {\n" + "".join(
        f"p{i} = {name[a.dtype]}{list(a.shape)} parameter({i})\n" for i, a in enumerate(args)
    ).replace(", ", ",") + body + "\n}\n"


def product(kind, out, turned, m=4104, n=264, k=200, more=""):
    """Of x [m, k], or turned [k, m], and y [k, n] or [n, k]: by default of so few columns that
    nothing is copied to be in whole steps."""
    x, y = random(kind, m, k), random(kind, k, n)
    want = x.astype(np.float64) @ y.astype(np.float64)
    args = [np.ascontiguousarray(x.T if turned[0] == "t" else x),
            np.ascontiguousarray(y.T if turned[1] == "t" else y)]
    body = (f"ROOT r = {out}[{m},{n}] dot(p0, p1), "
            f"lhs_contracting_dims={{{int(turned[0] == 'n')}}}, "
            f"rhs_contracting_dims={{{int(turned[1] == 't')}}}{more}")
    return args, body, want.astype(TYPES[out])


def with_epilogue():
    x, y, b = random("bf16", 4104, 200), random("bf16", 200, 264), random("f32", 264)
    want = np.maximum(x.astype(np.float32) @ y.astype(np.float32) + b, 0)
    return [x, y, b], """
        d = f32[4104,264] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        w = f32[4104,264] broadcast(p2), dimensions={1}
        s = f32[4104,264] add(d, w)
        z = f32[] constant(0)
        n = f32[4104,264] broadcast(z), dimensions={}
        ROOT r = f32[4104,264] maximum(s, n)""", want


def of_batch():
    x, y = random("bf16", 9, 384, 72), random("bf16", 9, 72, 320)
    want = np.einsum("bmk,bkn->bmn", x.astype(np.float32), y.astype(np.float32))
    return [x, y], """ROOT r = f32[9,384,320] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0},
        lhs_contracting_dims={2}, rhs_contracting_dims={1}""", want


def convolution(kind="bf16", n=8, side=28, c=40, f=192, more="", weights="01io", stride=1):
    x, y = random(kind, n, side, side, c), random(kind, 3, 3, c, f)
    wide = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(wide[:, i:i + side, j:j + side] @ y[i, j].astype(np.float32)
               for i in range(3) for j in range(3))[:, ::stride, ::stride]
    y = y if weights == "01io" else np.ascontiguousarray(y.transpose(3, 0, 1, 2))
    return [x, y], f"""ROOT r = f32[{n},{side // stride},{side // stride},{f}] convolution(p0, p1),
        window={{size=3x3 pad=1_1x1_1 stride={stride}x{stride}}}, dim_labels=b01f_{weights}->b01f{more}""", want


BY_THEMSELVES = ("plain nn", "few columns", "plain tt", "plain s8", "trimmed", "held", "held odd", "strided")  # copies
SLIDE = ("few features", "plain convolution", "held convolution", "held rows")  # x, along the window's rows
TRIMMED, HELD = ", operand_precision={tf32,tf32}", ", operand_precision={default,tf32}"
EXACT = ", operand_precision={highest,highest}"
PROGRAMS = {
    "bf16 nn": lambda: product("bf16", "bf16", "nn"),
    "bf16 tt": lambda: product("bf16", "f32", "tt"),
    "f16 nt": lambda: product("f16", "f16", "nt"),
    "f16 tn": lambda: product("f16", "f32", "tn"),
    "s8 nn": lambda: product("s8", "s32", "nn", 9080, 120),
    "s8 tt": lambda: product("s8", "s32", "tt", 9080, 120),
    "u8 nt": lambda: product("u8", "s32", "nt", 9080, 120),
    "u8 tn": lambda: product("u8", "s32", "tn", 9080, 120),
    "s8 odd": lambda: product("s8", "s32", "tn", 1159, 1001, 77),
    "s8 wide": lambda: product("s8", "s32", "nn", 2304, 2048, 256),
    "odd": lambda: product("bf16", "f32", "nn", 1159, 1001, 77),
    "short": lambda: product("bf16", "f32", "nn", 1160, 1000, 24),
    "wide": lambda: product("bf16", "bf16", "nn", 8200, 256, 136),
    "f32 nn": lambda: product("f32", "f32", "nn"),
    "f32 nt": lambda: product("f32", "f32", "nt", more=", operand_precision={high,default}"),
    "f32 tn": lambda: product("f32", "f32", "tn", 2304, 2048, 64),
    "f32 tt": lambda: product("f32", "f32", "tt"),
    "f32 odd": lambda: product("f32", "f32", "nn", 1159, 1001, 77),
    "f32 convolution": lambda: convolution("f32", c=32),
    "plain nn": lambda: product("bf16", "bf16", "nn", 2304, 2048, 320),
    "few columns": lambda: product("bf16", "bf16", "nn", 136000, 128, 320),
    "few features": lambda: convolution("bf16", 5, 130, 64, 128),
    "plain short": lambda: product("bf16", "bf16", "nn", 2304, 2048, 192),
    "plain tt": lambda: product("f16", "f32", "tt", 1280, 1024, 448),
    "plain s8": lambda: product("s8", "s32", "nt", 2304, 2048, 640),
    "plain convolution": lambda: convolution("bf16", 32, 56, 64, 64),
    "trimmed": lambda: product("f32", "f32", "nt", 1160, 1000, 256, TRIMMED),
    "held": lambda: product("f32", "f32", "nt", 2304, 2048, 192, HELD),
    "held odd": lambda: product("f32", "f32", "nt", 1159, 1001, 160, HELD),
    "held convolution": lambda: convolution("f32", 32, 56, 64, 64, HELD, "o01i"),
    "held rows": lambda: convolution("f32", 4, 140, 32, 64, HELD, "o01i"),
    "strided": lambda: convolution("bf16", 32, 56, 64, 128, stride=2),
    "epilogue": with_epilogue, "batch": of_batch, "convolution": convolution}
ONE_TURN = ("short", "s8 odd")


def judged(text, plan, args, want):
    """Elements that some groups wrote, all of which must be right."""
    count = int(re.search(r"tiles=(\d+)", plan).group(1))
    out = np.full(want.shape, 99).astype(want.dtype)
    whole = [a.copy() for a in args]
    zeros = [np.zeros(16, np.uint8)] if "zeros s" in plan else []
    simulate.run(text, [*whole, out, *zeros], sorted({0, count // 3, count - 1}), LOCAL)
    assert all(np.array_equal(a, b) for a, b in zip(whole, args))
    wrote = out != np.array(99).astype(want.dtype)
    assert np.array_equal(out[wrote], want[wrote])
    return int(wrote.sum())


@pytest.mark.parametrize("name", PROGRAMS)
def test_products(name, tmp_path):
    args, body, want = PROGRAMS[name]()
    text, plan, path = compiled(tmp_path, entry(args, body))
    assert ".target sm_90a" in text and "64 x 256 x" in plan
    assert ("3 pairs by themselves" if name == "plain short" else "x slides along" if name in SLIDE else
            "4 pairs by themselves" if name in BY_THEMSELVES else "3 pairs,") in plan
    assert ("16 x 1 sub-groups" in plan) == name.startswith("few")  # a group of 512
    assert ('.pragma "nounroll";' in text) == (name not in ONE_TURN)  # else ptxas takes seconds
    said = assembled(path, "-v", chip="sm_90a")
    assert "serialized" not in said and " 0 bytes spill stores" in said
    assert judged(text, plan, args, want) > 128 * 64


@pytest.mark.parametrize("name", ["bf16 nn", "bf16 tt", "s8 nn", "f32 nn", "f32 tt", "f32 odd", "f32 convolution"])
def test_products_of_one_warp(name, tmp_path):
    args, body, want = PROGRAMS[name]()
    text, plan, path = compiled(tmp_path, entry(args, body), wgmma="0")
    assert "mma.sync" in text and "wgmma" not in text
    assert judged(text, plan, args, want) > 32 * 32


@pytest.mark.parametrize("name", ["rows", "plain", "cut", "chains", "early"])
def test_items(name, tmp_path):
    """Operands that are read as they lie, of items that multiply f32 by themselves, too; cut:
    the last chain of a row of the window has one position, the others two."""
    args, body, want = {"rows": lambda: convolution("f32", 32, 56, 16, 64, EXACT),
                        "plain": lambda: convolution("bf16", 32, 56, 64, 64),
                        "cut": lambda: convolution("f32", 32, 28, 128, 128, EXACT),
                        "chains": lambda: product("f32", "f32", "nn", 512, 256, 1024, EXACT),
                        "early": lambda: product("f32", "f32", "nt", 2048, 2048, 576, EXACT)}[name]()
    text, plan, _ = compiled(tmp_path, entry(args, body))
    assert "x plain along" in plan and "y plain along" in plan
    if name in ("rows", "cut", "early"):
        assert "8 abreast, read early" in plan
        # the sums and what is multiplied are registers that no loop moves
        assert len(re.findall(r"fma\.rn\.f32\s+sum\d+, factor", text)) == text.count("fma.rn.f32") > 0
    assert judged(text, plan, args, want) > 1024


def test_what_is_left_out_is_found(tmp_path):
    args, body, want = product("bf16", "bf16", "nn")
    text, plan, _ = compiled(tmp_path, entry(args, body))
    for gone, said in (("fence.proxy.async.shared::cta;", "no fence"),
                       ("bar.sync \t0;", "barrier"),
                       ("wgmma.wait_group.sync.aligned 0;", "nobody waits")):
        assert gone in text
        with pytest.raises((ValueError, AssertionError), match=said):
            judged(text.replace(gone, ""), plan, args, want)


def test_only_where_it_is_asked_for(tmp_path):
    args, body, _ = product("bf16", "bf16", "nn")
    text, plan, _ = compiled(tmp_path, entry(args, body), wgmma="0")
    assert ".target sm_90\n" in text and "wgmma" not in text and "16 x 8 x 16" in plan
    args, body, _ = product("bf16", "bf16", "nn", 256, 256, 256)
    (tmp_path / "small").mkdir()
    assert "wgmma" not in compiled(tmp_path / "small", entry(args, body))[0]


def window_gradient(kind, images, side, c, f):
    """HLO of the gradient of a 3 x 3 window, as JAX writes it."""
    x, y = (f"{kind}[{images},{side},{side},{n}]" for n in (c, f))
    return f"""HloModule m
        ENTRY main {{ p0 = {x} parameter(0)
        p1 = {y} parameter(1)
        ROOT r = {kind}[3,3,{c},{f}] convolution(p0, p1), window={{size={side}x{side} pad=1_1x1_1}},
        dim_labels=f01b_i01o->01bf }}"""


def place(index, at):
    """The value of a sum such as `a0*512 + a1` where each axis has a number, or an array."""
    terms = (term.partition("*") for term in index.split(" + "))
    return sum(at[name] * int(by or 1) for name, _, by in terms)


@pytest.mark.parametrize("kind, images, side, c, f", [("bf16", 32, 15, 128, 256), ("bf16", 32, 7, 512, 512),
                                                      ("f32", 36, 13, 256, 256), ("f32", 36, 7, 512, 512)])
def test_gradients_of_windows_are_sums_of_copies(tmp_path, kind, images, side, c, f):
    source = tmp_path / "program.hlo"
    source.write_text(window_gradient(kind, images, side, c, f))
    subprocess.run([TOOL, "compile", TARGET, f"--out={tmp_path}", source], check=True,
                   capture_output=True, env={**os.environ, "SUNDOG_WGMMA": "1"})
    text = open(glob.glob(f"{tmp_path}/*.ptx")[0]).read()
    plan = open(glob.glob(f"{tmp_path}/*plan.txt")[0]).read()
    [kernel] = [k for k in re.split(r"^kernel ", plan, flags=re.M) if "blocks of" in k]
    assert "x plain" in kernel and "y plain" in kernel and "by themselves" in kernel
    slots = [int(n) for n in re.findall(r"^  s\d: \w+\[(\d+)\]", kernel, re.M)]
    axes = {a: (int(n), where) for a, n, where in re.findall(r"^  (a\d+): (\d+) (outer|inner)", kernel, re.M)}
    index = {i: re.search(rf"s{i}\[(a.*?)\]", kernel)[1] for i in range(3)}
    arrays = [random(kind, slots[0]), random(kind, slots[1])]
    out = np.full(slots[2], 99, TYPES[re.search(r"s2: (\w+)\[", kernel)[1]])
    count = int(re.search(r"(\d+) tiles", kernel)[1])
    [entry] = re.findall(rf"\.visible \.entry {kernel.split()[0]}\(.*?\n}}\n", text, re.S)
    simulate.run(text[:text.index(".visible .entry")] + entry, [*arrays, out], sorted({0, count // 2, count - 1}),
                 LOCAL)
    outer = [(a, n) for a, (n, where) in axes.items() if where == "outer"]
    inner = [(a, n) for a, (n, where) in axes.items() if where == "inner"]
    deep = dict(zip([a for a, _ in inner], np.indices([n for _, n in inner])))
    wrote = 0
    for at in np.random.RandomState(0).randint(0, 1 << 30, (20000, len(outer))):
        at = {a: int(i) % n for (a, n), i in zip(outer, at)}
        got = out[place(index[2], at)]
        if got != np.array(99).astype(out.dtype):
            x, y = (arrays[i][place(index[i], at | deep)].astype(np.float64) for i in (0, 1))
            assert got == (x * y).sum().astype(out.dtype)
            wrote += 1
    assert wrote > 20
