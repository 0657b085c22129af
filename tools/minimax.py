#!/usr/bin/env python3
"""Polynomials of the device library: Remez exchange in mpmath, coefficients
rounded one by one from the lowest, the others fitted again each time.

  fit(f, w, powers, a, b, bits)  minimises |sum c_i x^p_i - f(x)| * w(x)

Needs mpmath; not part of the build.  Prints C initialisers and the error that
is left as a power of two.
"""
import sys

from mpmath import mp, mpf

mp.prec = 200


def chebyshev(a, b, n):
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (n - 1))
            for i in range(n)]


def remez(f, w, powers, a, b, rounds=12):
    """Coefficients of the best approximation, and its error."""
    n = len(powers)
    grid = chebyshev(a, b, 40 * (n + 2))
    vals = [(x, f(x), w(x)) for x in grid]
    pts = [vals[round(i * (len(vals) - 1) / n)] for i in range(n + 1)]
    for _ in range(rounds):
        m = mp.matrix(n + 1, n + 1)
        r = mp.matrix(n + 1, 1)
        for i, (x, y, u) in enumerate(pts):
            for j, p in enumerate(powers):
                m[i, j] = x ** p * u
            m[i, n] = (-1) ** i
            r[i] = y * u
        s = mp.lu_solve(m, r)
        c = [s[j] for j in range(n)]
        err = [(sum(cj * x ** p for cj, p in zip(c, powers)) - y) * u
               for x, y, u in vals]
        # one extremum of each run of equal sign
        ext, i = [], 0
        while i < len(err):
            j, best = i, i
            while j < len(err) and (err[j] >= 0) == (err[i] >= 0):
                if abs(err[j]) > abs(err[best]):
                    best = j
                j += 1
            ext.append(best)
            i = j
        while len(ext) > n + 1:
            if abs(err[ext[0]]) < abs(err[ext[-1]]):
                ext.pop(0)
            else:
                ext.pop()
        worst = max(abs(e) for e in err)
        if len(ext) < n + 1:
            break
        pts = [vals[i] for i in ext]
        if worst <= abs(s[n]) * mpf('1.001'):
            break
    return c, worst


def rounded(c, bits):
    if c == 0:
        return c
    m, e = mp.frexp(c)
    return mp.ldexp(mp.nint(m * mpf(2) ** bits), e - bits)


def fit(f, w, powers, a, b, bits, fixed=(), refit=3):
    """fixed: coefficients given from the start, in the order of powers.
    The first few are rounded one by one and the rest fitted again; the high
    ones matter little and are rounded as they are.  Returns the best of the
    variants tried, with its error."""
    a, b = mpf(a), mpf(b)
    best = None
    grid = [(x, f(x), w(x)) for x in chebyshev(a, b, 1000)]
    have = list(fixed)
    for _ in range(refit + 1):
        k = len(have)
        if k == len(powers):
            break

        def rest(x):
            return f(x) - sum(h * x ** p for h, p in zip(have, powers))

        c, _err = remez(rest, w, powers[k:], a, b)
        full = have + [rounded(v, bits) for v in c]
        err = max(abs((sum(h * x ** p for h, p in zip(full, powers)) - y) * u)
                  for x, y, u in grid)
        if best is None or err < best[1]:
            best = full, err
        have.append(full[k])
    return best


def show(name, have, err, bits):
    suffix = 'f' if bits == 24 else ''
    print(f'/* {name}: 2^{mp.nstr(mp.log(err, 2), 4)} */')
    for h in have:
        text = float(h).hex().replace('0000000p', 'p') if bits == 24 else float(h).hex()
        print(f'    {text}{suffix},')


def main():
    import importlib.util
    spec = importlib.util.spec_from_file_location('job', sys.argv[1])
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)


if __name__ == '__main__':
    main()
