"""Linear algebra from JAX, on both devices and by the evaluator: residuals
beside LAPACK's (linalg_residuals.py is the whole measurement), functions built
on them, gradients, batches, empty matrices."""
import os
import subprocess

import numpy as np
import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
TOOL = os.path.join(TOP, "build/release/tools/sundog")
DEVICES = ["host", "cl"]


@pytest.mark.parametrize("device,sizes,types", [
    ("host", "1,2,7,19", "f32,c128"),
    ("cl", "6", "f32")])  # each size is compiled, by Intel's runtime slowly
def test_residuals_are_lapacks(python, device, sizes, types):
    python("linalg_residuals.py", "--sizes", sizes, "--types", types,
           env={"SUNDOG_DEVICE": device})


def test_singular_vectors_are_lapacks(python):
    """LAPACK leaves up to 48 roundings of a badly conditioned matrix, and of its
    transpose as many: in other matrices."""
    python("linalg_residuals.py", "--sizes", "24,40", "--types", "f64",
           "--only", "svd", env={"SUNDOG_DEVICE": "host"})


def test_rounding_errors_of_one_sign_do_not_add_up(python):
    """Of 100 equal numbers, and of hundreds of rotations, without LAPACK; QR of
    larger matrices is loops of products."""
    for more in (["--sizes", "100"], ["--sizes", "199", "--only", "^qr$"]):
        python("linalg_residuals.py", "--types", "f32", *more,
               env={"SUNDOG_DEVICE": "host", "SUNDOG_LIBRARIES": "0"})


FUNCTIONS = """
import jax, jax.numpy as jnp, numpy as np
import jax.scipy.linalg as jsl
jax.config.update('jax_enable_x64', True)
ours, cpu = jax.devices('xpu')[0], jax.devices('cpu')[0]
rng = np.random.default_rng(3)
a = rng.standard_normal((4, 6, 6))
s = a @ a.swapaxes(-1, -2) + np.eye(6)
tall = rng.standard_normal((7, 3))
d, e = rng.standard_normal(8), rng.standard_normal(7)

def both(name, f, *args):
    got, want = (jax.tree.leaves(jax.device_get(jax.jit(f, device=x)(*args)))
                 for x in (ours, cpu))
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-8, atol=1e-8, err_msg=name)
    print('ok', name)

both('pinv', jnp.linalg.pinv, tall)
both('lstsq', lambda x, y: jnp.linalg.lstsq(x, y)[0], tall, tall[:, :1])
both('norm', lambda x: jnp.linalg.norm(x, 2), tall)
both('nuclear norm', lambda x: jnp.linalg.norm(x, 'nuc'), tall)
both('rank', jnp.linalg.matrix_rank, np.outer(tall[0], tall[1]))
both('cond', jnp.linalg.cond, tall)
both('eigvalsh', jnp.linalg.eigvalsh, s)
both('det', jnp.linalg.det, a)
both('slogdet', jnp.linalg.slogdet, a)
both('inv', jnp.linalg.inv, a)
both('solve', jnp.linalg.solve, a, a[:, :, :2])
both('sqrtm', jsl.sqrtm, s[0])
both('polar', lambda x: jsl.polar(x, method='svd'), tall)
both('expm', jsl.expm, a[0])
both('eigh_tridiagonal', lambda d, e: jsl.eigh_tridiagonal(
    d, e, eigvals_only=True), d, e)
both('lu_solve', lambda x, b: jsl.lu_solve(jsl.lu_factor(x), b), a[0], a[1])
both('cho_solve', lambda x, b: jsl.cho_solve(jsl.cho_factor(x), b), s[0], a[1])
both('tridiagonal_solve', jax.lax.linalg.tridiagonal_solve, d, d + 4, d,
     rng.standard_normal((8, 2)))
both('tridiagonal', lambda x: jax.lax.linalg.tridiagonal(x)[:3], s[0])
both('tridiagonal of one', jax.lax.linalg.tridiagonal, np.array([[2 + 3j]]))
both('qr_multiply', lambda x, y: jsl.qr_multiply(x, y)[0], a[0], a[1])
both('singular values', lambda x: jnp.linalg.svd(x, compute_uv=False), a)
for shape in ((5, 3, 3), (20, 16, 16), (6, 64, 64), (3, 70, 70)):
    x = rng.standard_normal(shape) + shape[-1] * np.eye(shape[-1])
    x[1] *= -1
    x[2, 0, 0] = np.nan
    for upper in (False, True):
        both(f'cholesky of {shape}', lambda x: jnp.linalg.cholesky(
            x, upper=upper), x)
        both('gradient of it', jax.grad(lambda x: jnp.linalg.cholesky(
            x, upper=upper).sum()), x[0])
both('gradient of eigh', jax.grad(lambda x: jnp.sum(jnp.abs(
    jnp.linalg.eigh(x)[1]) * jnp.arange(6.0))), s[0])
both('gradient of svd', jax.grad(lambda x: jnp.linalg.svd(
    x, compute_uv=False).sum() + jnp.abs(jnp.linalg.svd(
        x, full_matrices=False)[0]).sum()), tall)
both('gradient of cholesky', jax.grad(lambda x: jnp.linalg.cholesky(x).sum()),
     s[0])
both('gradient of det', jax.grad(jnp.linalg.det), a[0])
both('gradient of qr', jax.grad(lambda x: jnp.abs(jnp.linalg.qr(x)[1]).sum()),
     tall)
both('gradient of eigvals', jax.grad(lambda x: jnp.abs(
    jnp.linalg.eigvals(x)).sum()), a[0])
# Whoever takes the square root of a value that rounding put below 0 gets NaN.
for t in (np.float32, np.float64, np.complex128):
    v = np.array([[1, 1], [1, 2], [3, -5], [1e-3, 7]], t)
    m = v[:, :, None] * v[:, None, :]
    for w in (jax.jit(jnp.linalg.eigvalsh, device=ours)(m),
              jax.jit(jnp.linalg.eigvalsh, device=ours)(m[:1])):
        assert (np.asarray(w)[:2, 0] == 0).all(), w
both('batched', jax.vmap(jax.vmap(jnp.linalg.eigvalsh)), s.reshape(2, 2, 6, 6))
from jax.experimental.sparse.linalg import spsolve
full = np.where(rng.random((6, 6)) < 0.5, a[0], 0) + 4 * np.eye(6)
row, column = np.nonzero(full)
first = np.searchsorted(row, np.arange(7)).astype(np.int32)
x = jax.jit(spsolve, device=ours)(full[row, column], column.astype(np.int32),
                                  first, a[1, 0])
np.testing.assert_allclose(full @ np.asarray(x), a[1, 0], atol=1e-10)
for f in (jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eig, jnp.linalg.qr,
          jax.lax.linalg.lu, jnp.linalg.cholesky, jnp.linalg.inv):
    for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
        both(f'{f.__name__} of {shape}', f, np.zeros(shape))
for shape in ((0, 3), (3, 0), (2, 3, 0)):
    for whole in (False, True):
        both(f'svd of {shape}', lambda x: jnp.linalg.svd(
            x, full_matrices=whole), np.zeros(shape))
"""


@pytest.mark.parametrize("device", DEVICES)
def test_functions_as_on_jax_cpu(python, device):
    python(FUNCTIONS, env={"SUNDOG_DEVICE": device})


def test_evaluator_residuals():
    """The reference by the same measure, without a device."""
    import oracle
    jax = pytest.importorskip("jax")
    lax = jax.lax.linalg
    rng = np.random.default_rng(0)
    for t in (np.float32, np.complex64):
        a = rng.standard_normal((2, 6, 6)).astype(t)
        if t == np.complex64:
            a = a + 1j * rng.standard_normal((2, 6, 6)).astype(np.float32)
        u, s, v = oracle.evaluate(lambda x: lax.svd(x), a)
        np.testing.assert_allclose(u * s[:, None] @ v, a, atol=1e-5)
        w, _, vr = oracle.evaluate(lambda x: lax.eig(x), a)
        np.testing.assert_allclose(a @ vr, vr * w[:, None], atol=1e-5)
        f, z = oracle.evaluate(lambda x: lax.schur(x), a)
        np.testing.assert_allclose(z @ f @ z.conj().swapaxes(-1, -2), a,
                                   atol=1e-5)


LANES = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
jax.config.update('jax_enable_x64', True)
dev, rng = jax.devices('xpu')[0], np.random.default_rng(3)
sides = lambda a, s, x: [lax.linalg.triangular_solve(
    s, x, left_side=True, lower=l, transpose_a=t)
    for l in (False, True) for t in (False, True)] + [
    lax.linalg.triangular_solve(s, jnp.swapaxes(x, 1, 2), left_side=False)]
programs = dict(
    lu=lambda a, s, x: lax.linalg.lu(a),
    qr=lambda a, s, x: lax.linalg.qr(a, full_matrices=False),
    cholesky=lambda a, s, x: lax.linalg.cholesky(s, symmetrize_input=False),
    eigh=lambda a, s, x: lax.linalg.eigh(s, symmetrize_input=False),
    svd=lambda a, s, x: lax.linalg.svd(a, full_matrices=True),
    values=lambda a, s, x: lax.linalg.svd(a, compute_uv=False),
    solve=sides)
for dtype in (np.float32, np.float64):
    tiny = np.finfo(dtype).tiny
    for m, n in ((1, 1), (3, 5), (5, 3), (16, 16), (20, 23)):
        a = rng.standard_normal((19, m, n)).astype(dtype)
        a[3], a[4, :, -1], a[5, 0], a[6, :, 0] = 0, np.nan, 0, -0.0
        a[7] *= tiny * 100
        s = a @ a.swapaxes(1, 2) + np.eye(m, dtype=dtype) * (a[:, :1, :1] > 0)
        a[8] /= tiny * 100
        args = a, s, rng.standard_normal((19, m, n)).astype(dtype)
        for name, f in programs.items():
            f = jax.jit(f, device=dev)
            many = jax.tree.leaves(f(*args))
            one = [f(*(v[i:i + 1] for v in args)) for i in range(len(a))]
            for x, y in zip(many, map(np.concatenate, zip(*map(
                    jax.tree.leaves, one)))):
                x = np.asarray(x)
                assert np.array_equal(x, y, equal_nan=True), (name, m, n)
                assert np.array_equal(np.signbit(x[x == x]),
                                      np.signbit(y[y == y])), (name, m, n)
            print('ok', name, m, n)
"""


def test_a_matrix_has_the_same_bits_alone_and_among_many(python):
    out = python(LANES, env={"SUNDOG_DEVICE": "host", "SUNDOG_LIBRARIES": "0"})
    assert out.count("ok ") == 70


GROUP = """
import hashlib
import jax, jax.numpy as jnp, numpy as np
from jax import lax
jax.config.update('jax_enable_x64', True)
rng = np.random.default_rng(5)
solve = lambda s, b, left: [lax.linalg.triangular_solve(
    s, b, left_side=left, lower=low, transpose_a=turned)
    for low in (False, True) for turned in (False, True)]
programs = dict(
    lu=lambda a, s: lax.linalg.lu(a),
    qr=lambda a, s: lax.linalg.qr(a, full_matrices=False),
    eigh=lambda a, s: lax.linalg.eigh(s, symmetrize_input=False),
    svd=lambda a, s: lax.linalg.svd(a, full_matrices=True),
    values=lambda a, s: lax.linalg.svd(a, compute_uv=False),
    solve=lambda a, s: [solve(s, a, True), solve(s, a[:, :1], True), solve(s, a.T, False)])
for dtype in 'f4', 'f8', 'c8':
    more = [(90, 70)] if dtype == 'f4' else [] # than a group has items on cl
    for m, n in [(1, 1), (17, 16), (33, 47), (64, 40)] + more:
        a = rng.standard_normal((m, n)).astype(dtype)
        if dtype == 'c8':
            a = a + 1j * rng.standard_normal((m, n)).astype('f4')
        s = a @ a.conj().T + np.eye(m, dtype=dtype)
        for name, f in programs.items():
            if m > 64 and name in ('lu', 'qr', 'solve'): # by blocks on GPUs
                continue
            got = jax.device_get(jax.tree.leaves(jax.jit(f)(a, s)))
            assert all(np.isfinite(x).all() for x in got), name
            print(name, dtype, m, n, hashlib.sha256(b''.join(np.asarray(x).tobytes() for x in got)).hexdigest())
for name in 'svd', 'values':
    got = jax.device_get(jax.tree.leaves(jax.jit(programs[name])(rng.standard_normal((300, 8)), None)))
    print(name, 'tall', hashlib.sha256(b''.join(np.asarray(x).tobytes() for x in got)).hexdigest())
"""


def test_a_group_of_items_gives_the_bits_of_one(python):
    """A GPU's matrix is a group's, the host's one thread's."""
    host, group = (python(GROUP, env={"SUNDOG_DEVICE": device, "SUNDOG_LIBRARIES": "0"}) for device in DEVICES)
    assert host.count("\n") == 3 * 4 * 6 + 3 + 2
    assert host == group


LARGE = """
import jax, numpy as np
from jax import lax
jax.config.update('jax_enable_x64', True)
device = jax.devices('xpu')[0]
rng = np.random.default_rng(1)

def random(dtype, m, n):
    x = rng.standard_normal((2, m, n)).astype(dtype)
    return x[0] + 1j * x[1] if np.dtype(dtype).kind == 'c' else x[0]

def lu(a):
    lu, pivots, order = jax.device_get(jax.jit(lax.linalg.lu, device=device)(a))
    k = min(a.shape)
    low, up = np.tril(lu[:, :k], -1) + np.eye(a.shape[0], k), np.triu(lu[:k])
    assert sorted(order) == list(range(len(a)))
    moved = np.arange(len(a))
    for i, p in enumerate(pivots):
        moved[[i, p]] = moved[[p, i]]
    assert (moved == order).all()
    return a[order], low @ up

def near(name, got, want):
    eps = np.finfo(want.dtype).eps
    assert np.abs(got - want).max() < 300 * eps * np.abs(want).max(), name
    print('ok', name)

for dtype in ('float32', 'float64', 'complex64', 'complex128'):
    for m, n in ((300, 700), (700, 300), (513, 513), (64 * 6, 64 * 6)):
        near(('lu', dtype, m, n), *lu(random(dtype, m, n))[::-1])
    for form in range(16):
        left, lower, trans, unit = (bool(form >> i & 1) for i in range(4))
        a = (random(dtype, 290, 290) / 290 + 2 * np.eye(290)).astype(dtype)
        b = random(dtype, *((290, 411) if left else (411, 290)))
        x = jax.device_get(jax.jit(lambda a, b: lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=trans,
            unit_diagonal=unit), device=device)(a, b))
        t = np.tril(a) if lower else np.triu(a)
        if unit:
            np.fill_diagonal(t, 1)
        t = t.T if trans else t
        near(('solve', dtype, form), t @ x if left else x @ t, b)

a = random('float32', 400, 400)
a[:, 100], a[:, 250] = 0, a[:, 3]
near('singular', *lu(a)[::-1])
a[200, 37] = np.nan
assert np.isnan(jax.device_get(jax.jit(lax.linalg.lu)(a)[0])[-1, -1])
print('ok NaN')
"""


COLUMNS = """
import jax, jax.numpy as jnp, numpy as np, scipy.linalg

jax.config.update("jax_enable_x64", True)
random = np.random.default_rng(0)


def one(name, a):
    lu, pivots, order = map(np.asarray, jax.lax.linalg.lu(jnp.asarray(a)))
    want, rows = scipy.linalg.lu_factor(a) if a.shape[0] == a.shape[1] else (None, None)
    k = min(a.shape)
    lower = np.tril(lu, -1)[:, :k] + np.eye(a.shape[0], k)
    off = np.abs(a[order] - lower @ np.triu(lu)[:k]).max()
    assert off <= 40 * np.finfo(a.dtype).eps * np.abs(a).max(), (name, off)
    assert sorted(order) == list(range(a.shape[0])), name
    assert np.abs(lower).max() <= 2 ** .5 + 1e-6, name  # pivots are the largest
    if want is not None:
        assert np.array_equal(pivots, rows), name


def numbers(*shape):
    return random.standard_normal(shape)


one("f32", numbers(65, 65).astype("f4"))
one("tall", numbers(100, 70))
one("wide", numbers(70, 100).astype("f4"))
one("c64", (numbers(66, 66) + 1j * numbers(66, 66)).astype("c8"))
one("ones", np.ones((70, 70), "f4"))
one("turned round", np.eye(80)[::-1].copy())
a = numbers(80, 80)
a[:, 5] = 0
one("singular", a)
a = numbers(3, 67, 67)
many = jax.lax.linalg.lu(jnp.asarray(a))[0]
for x, y in zip(a, many):
    assert np.allclose(y, jax.lax.linalg.lu(jnp.asarray(x))[0])
print("ok")
"""


def test_large_lu_is_a_loop_over_panels(python):
    """On devices of many work items, which a function for one matrix would
    leave idle."""
    out = python(COLUMNS, env={"SUNDOG_DEVICE": "cl"})
    assert out.strip().endswith("ok")


def test_large_matrices(python):
    """By LAPACK on all threads, where it is."""
    out = python(LARGE, env={"SUNDOG_DEVICE": "host"})
    assert out.count("ok ") == 4 * (4 + 16) + 2


# Every call that the wheel lets jax.export save, as the first version sent it:
# what is saved runs with every later one, so lines are only added here.
KEPT = """
eigh              | lower = 1             | f32[2,3,3]             | f32[2,3,3] f32[2,3]
svd               | compute_uv = 0, full_matrices = 1 | f32[2,4,3] | f32[2,3]
svd               | compute_uv = 1, full_matrices = 0 | f32[2,4,3] | f32[2,3] f32[2,4,3] f32[2,3,3]
eig               | left = 0, right = 1   | f64[3,3]               | c128[3] c128[3,3]
schur             | vectors = 1           | c64[3,3]               | c64[3,3] c64[3,3]
hessenberg        |                       | f32[3,3]               | f32[3,3] f32[2]
tridiagonal       | lower = 1             | c64[3,3]               | c64[3,3] f32[3] f32[2] c64[2]
tridiagonal_solve | perturb = 0           | f32[3] f32[3] f32[3] f32[3,1] | f32[3,1]
geqp3             |                       | f32[4,3] s32[3]        | f32[4,3] s32[3] f32[3]
lu                |                       | f32[2,4,3]             | f32[2,4,3] s32[2,3] s32[2,4]
ormqr             | left = 1, transpose = 0 | f32[4,3] f32[3] f32[4,5] | f32[4,5]
spsolve           |                       | f32[7] s32[7] s32[4] f32[3] | f32[3]
"""


def test_calls_of_exported_programs_are_kept(tmp_path):
    from sundog import linalg
    rows = [[cell.strip() for cell in line.split("|")]
            for line in KEPT.strip().splitlines()]
    assert {name for name, *_ in rows} == set(linalg.NAMES)
    for name, attributes, operands, results in rows:
        config = ", ".join(f"{a.strip()} : i64"
                           for a in attributes.split(",") if a)
        parameters = [f"p{i} = {shape} parameter({i})"
                      for i, shape in enumerate(operands.split())]
        names = ", ".join(f"p{i}" for i in range(len(parameters)))
        shape = ", ".join(results.split())
        shape = f"({shape})" if " " in shape else shape
        path = tmp_path / f"{name}.hlo"
        path.write_text("ENTRY e {\n" + "\n".join(parameters) + f"""
            ROOT r = {shape} custom-call({names}),
            custom_call_target="sundog.{name}",
            api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}} }}
        """)
        r = subprocess.run([TOOL, "opt", path], text=True, capture_output=True)
        assert r.returncode == 0, (name, r.stderr)


SCHUR = """
import jax, numpy as np, scipy.linalg
jax.config.update('jax_enable_x64', True)
rng = np.random.default_rng(1)
for n in (1, 4, 15, 40):
    for t in (np.float64, np.complex128):
        a = rng.standard_normal((2, n, n)).astype(t)
        for x in (a, a[:1]):
            got = jax.lax.linalg.schur(x)
            for i in range(len(x)):
                want = scipy.linalg.schur(x[i])
                np.testing.assert_allclose(got[0][i], want[0], atol=1e-10)
                np.testing.assert_allclose(got[1][i], want[1], atol=1e-10)
"""


def test_schur_form_is_scipys(python):
    """Of the many there are, for each size, batched or not."""
    python(SCHUR, env={"SUNDOG_DEVICE": "host"})
