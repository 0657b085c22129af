"""The properties that conform.py asks of factorizations hold of right answers,
and of none that is a little wrong."""
import os
import sys
from types import SimpleNamespace as Space

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conform"))
import properties  # noqa: E402

A = np.random.RandomState(1).randn(2, 5, 5)
S = A + A.swapaxes(1, 2)
P = A @ A.swapaxes(1, 2) + np.eye(5)


def lu_of(a):
    """By rows, with partial pivoting."""
    a, order, pivots = a.copy(), np.arange(len(a)), []
    for k in range(len(a)):
        p = k + abs(a[k:, k]).argmax()
        pivots.append(p)
        a[[k, p]], order[[k, p]] = a[[p, k]], order[[p, k]]
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a, np.array(pivots), order


def eig_of(a):
    w, v = np.linalg.eig(a)
    return w, v


RIGHT = {
    "qr": ({}, A, np.linalg.qr(A)),
    "svd": ({}, A, np.linalg.svd(A)[1::-1] + np.linalg.svd(A)[2:]),
    "eigh": ({"lower": True}, S, np.linalg.eigh(S)[::-1]),
    "eig": ({"compute_left_eigenvectors": False,
             "compute_right_eigenvectors": True}, A, eig_of(A)),
    "lu": ({}, A, [np.stack(x) for x in zip(*map(lu_of, A))]),
    "cholesky": ({}, P, [np.linalg.cholesky(P)]),
    "fft": ({"fft_type": Space(name="FFT"), "fft_lengths": (5,)},
            A + 0j, [np.fft.fft(A)]),
}


def check(group, got):
    params, a, _ = RIGHT[group]
    return properties.check(Space(group_name=group, params=params), [a], got,
                            got)


@pytest.mark.parametrize("group", RIGHT)
def test_right_answer_has_the_property(group):
    assert check(group, list(RIGHT[group][2])) < 2


@pytest.mark.parametrize("group,result", [
    (g, i) for g in RIGHT for i in range(len(RIGHT[g][2]))])
def test_wrong_answer_has_not(group, result):
    """One element off by a hundred units in the last place, or by one."""
    got = [np.array(x) for x in RIGHT[group][2]]
    at = (1, 2, 1) if got[result].ndim == 3 else (1, 2)
    got[result][at] += 1 if got[result].dtype.kind == "i" else 1e-13
    with pytest.raises((AssertionError, IndexError)):
        check(group, got)


def test_order_of_values_is_asked_for():
    u, s, v = np.linalg.svd(A)
    with pytest.raises(AssertionError, match="order"):
        check("svd", [s[:, ::-1], u[:, :, ::-1], v[:, ::-1]])
    v, w = RIGHT["eigh"][2]
    with pytest.raises(AssertionError, match="order"):
        check("eigh", [v[:, :, ::-1], w[:, ::-1]])
