"""One computation in HLO text, what its parameters hold, and the same said in
NumPy: for each row of the op table, each type that it takes, each of ten
shapes.

A row's function (rows.py says which) writes the instructions and returns the
plain meaning, a function of the parameters' arrays."""
import os
import re

import numpy as np

import values

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "src", "hlo", "hlo_ops.def")

SHAPES = {"scalar": (), "empty": (3, 0), "one": (1,), "odd": (7,),
          "power": (32,), "large": (1031,), "rank3": (2, 3, 4),
          "rank8": (1, 2, 1, 3, 1, 2, 1, 2), "permuted": (5, 4),
          "ones": (1, 5, 1)}

KINDS = {"PRED": ("pred",), "INT": ("sint", "uint"),
         "LOGIC": ("pred", "sint", "uint"), "SIGNED": ("sint", "float", "cplx"),
         "FLOAT": ("float",), "CPLX": ("cplx",),
         "NUM": ("sint", "uint", "float", "cplx"),
         "ANY": ("pred", "sint", "uint", "float", "cplx")}

# How two results are compared: exactly (a NaN is a NaN); but for the sign of a
# zero; within so many units in the last place of the element, of a complex
# one's larger part; or of the largest element there is, where terms cancel.
EXACT, ZEROS = ("exact", 0), ("zeros", 0)


def near(ulps):
    return ("near", ulps)


def summed(ulps):
    return ("summed", ulps)


def plainly(rule):
    """Held against NumPy alone and where it gives numbers: what functions of
    complex infinities give, and past the largest number, is anyone's."""
    return rule + ("plainly",)


class Row:
    """A line of the op table."""

    def __init__(self, name, cls, types):
        self.name, self.cls = name, cls
        kinds = [k for one in types.split("|") for k in KINDS[one.strip()]]
        self.types = values.of_kinds(*kinds)


def table():
    text = open(TABLE).read()
    rows = re.findall(r'^OP\(\w+,\s*"([\w-]+)",\s*(\w+),\s*([\w |]+),', text,
                      re.M)
    return [Row(*r) for r in rows]


class Program:
    def __init__(self, op, t, shape):
        self.op, self.type, self.shape = op, t, shape
        self.name = re.sub(r"\W", "_", f"{op}_{t}_{shape}")
        self.lines, self.regions, self.params, self.results = [], [], [], []
        self.unsayable = None   # why JAX's client cannot be given it

    # ---- writing ----

    def shaped(self, t, dims):
        order = range(len(dims)) if self.shape == "permuted" else \
            range(len(dims) - 1, -1, -1)
        return (f"{t}[{','.join(map(str, dims))}]"
                f"{{{','.join(map(str, order))}}}" if dims else f"{t}[]")

    def shape_text(self, shape):
        """Of (type, dims), or of a list of those: a tuple."""
        if isinstance(shape, list):
            return "(" + ", ".join(map(self.shape_text, shape)) + ")"
        return self.shaped(*shape)

    def param(self, how, t, dims):
        """A parameter; how: a function of values.py that fills it, or a
        function of (rng) that gives the whole array."""
        name = f"p{len(self.params)}"
        self.lines.append(f"{name} = {self.shaped(t, dims)} "
                          f"parameter({len(self.params)})")
        self.params.append((how, t, tuple(dims)))
        return name

    def do(self, op, shape, *args, more=""):
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self.shape_text(shape)} "
                          f"{op}({', '.join(args)})"
                          + (", " + more if more else ""))
        return name

    def give(self, op, shape, *args, more="", rule=EXACT):
        """An instruction whose value, or tuple of values, is a result."""
        v = self.do(op, shape, *args, more=more)
        for i, s in enumerate(shape if isinstance(shape, list) else [shape]):
            name = v if not isinstance(shape, list) else self.do(
                "get-tuple-element", s, v, more=f"index={i}")
            self.results.append((name, s, rule))
        return v

    def region(self, body, *params):
        """A computation: body's lines by parameters p0.. of (type, dims)."""
        name = f"{self.name}_r{len(self.regions)}"
        head = [f"p{i} = {self.shaped(*s)} parameter({i})"
                for i, s in enumerate(params)]
        self.regions.append(name + " {\n  " + "\n  ".join(head + body)
                            + "\n}\n")
        return name

    def binary_region(self, op, t):
        return self.region([f"ROOT r = {t}[] {op}(p0, p1)"], (t, ()), (t, ()))

    # ---- reading ----

    def text(self):
        """The regions and the computation, whose result is always a tuple."""
        names = [n for n, _, _ in self.results]
        root = (f"ROOT r = {self.shape_text([s for _, s, _ in self.results])} "
                f"tuple({', '.join(names)})")
        return "".join(self.regions) + f"{self.name} {{\n  " + "\n  ".join(
            self.lines + [root]) + "\n}\n"

    def arguments(self):
        seed = [ord(c) for c in self.name]
        rng = np.random.default_rng(seed)
        return [values.fill(how, t, dims, rng) if how.__module__ == "values"
                else how(rng) for how, t, dims in self.params]

    def expected(self, args):
        """The plain meaning's results."""
        with np.errstate(all="ignore"):
            got = self.plain(*args)
        got = got if isinstance(got, (list, tuple)) else [got]
        assert len(got) == len(self.results), self.name
        return [np.asarray(x, values.numpy_type(s[0])) for x, (_, s, _) in
                zip(got, self.results)]


def module(programs):
    """All programs in one: their parameters one after the other, likewise
    their results."""
    text, entry, results, n = [], [], [], 0
    for p in programs:
        text.append(p.text())
        args = []
        for _, t, dims in p.params:
            entry.append(f"a{n} = {p.shaped(t, dims)} parameter({n})")
            args.append(f"a{n}")
            n += 1
        shapes = [s for _, s, _ in p.results]
        call = f"c{len(entry)}"
        entry.append(f"{call} = {p.shape_text(shapes)} call("
                     f"{', '.join(args)}), to_apply={p.name}")
        for i, s in enumerate(shapes):
            name = f"r{len(results)}"
            entry.append(f"{name} = {p.shape_text(s)} get-tuple-element("
                         f"{call}), index={i}")
            results.append((name, p.shape_text(s)))
    root = (f"ROOT out = ({', '.join(s for _, s in results)}) tuple("
            f"{', '.join(r for r, _ in results)})")
    return ("HloModule optype\n" + "".join(text) + "ENTRY main {\n  "
            + "\n  ".join(entry + [root]) + "\n}\n")
