"""One comparison for every platform: dtype and shape equal, NaN positions
equal, integers and booleans exact, floats within the tolerances of JAX's own
tests, raised by what a program says it sums (`tol`).  Gives the worst error
as a multiple of the tolerance that is not raised."""
import ml_dtypes
import numpy as np

# JAX's defaults (conformance facts): rtol = atol by element type.
TOLERANCE = {
    np.dtype(ml_dtypes.bfloat16): 1e-2, np.dtype(np.float16): 1e-3,
    np.dtype(np.float32): 1e-6, np.dtype(np.complex64): 1e-6,
    np.dtype(np.float64): 1e-15, np.dtype(np.complex128): 1e-15,
}


def check(got, want, tol=1.0, what=""):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, f"{what}: {got.dtype}, want {want.dtype}"
    assert got.shape == want.shape, f"{what}: {got.shape}, want {want.shape}"
    if got.dtype not in TOLERANCE:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return 0.0
    base = TOLERANCE[got.dtype]
    t = base * tol
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want),
                                  err_msg=f"{what}: NaN positions")
    np.testing.assert_allclose(got, want, rtol=t, atol=t, err_msg=what)
    finite = np.isfinite(want)
    got, want = got[finite], want[finite]
    return float(np.max(abs(got - want) / (base * (1 + abs(want))), initial=0))
