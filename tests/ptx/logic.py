"""Random programs of truth values, assembled by ptxas: does its machine code compute what they say?

usage: logic.py [--first SEED] [--count N] [--parted] [--ptxas PATH] [--nvdisasm PATH]

Each program takes six truth values, the signs of six numbers, through ANDs, ORs, NOTs and XORs.  Of two
that are ANDed there is often the OR, too, which ptxas takes for the AND at times; --parted writes such an
OR as src/target/target_ptx_logic.c does.  The machine code is computed for all 64 arguments at once; a
program that it has other instructions for is not counted.  nvdisasm is PyPI's nvidia-cuda-nvdisasm; no GPU
is needed.  Prints the seeds that are wrong and how many are right; exits 1 when one is wrong.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import ptx

INPUTS, TOGETHER = 6, 50
ALL = (1 << (1 << INPUTS)) - 1  # of a truth value: a bit for each of the 64 arguments
INPUT = [sum(1 << c for c in range(1 << INPUTS) if c >> i & 1) for i in range(INPUTS)]


class Unknown(Exception):
    """An instruction that `computed` does not know."""


# ---- programs: lists of (what, operands), and which of them are results ----

def drawn(seed):
    r = random.Random(seed)
    nodes = [("in", i) for i in range(INPUTS)]

    def add(*node):
        nodes.append(node)
        return len(nodes) - 1
    for _ in range(6 + seed % 14):
        what = r.choice(["and", "or", "and", "or", "not", "xor"])
        first = max(0, len(nodes) - 8) if r.random() < 0.6 else 0
        p, q = r.randrange(first, len(nodes)), r.randrange(first, len(nodes))
        if what == "not":
            add(what, p)
        elif p != q:
            add(what, p, q)
            if what != "xor" and r.random() < 0.35:
                p = add("not", p) if r.random() < 0.4 else p
                q = add("not", q) if r.random() < 0.3 else q
                add("or" if what == "and" else "and", p, q)
    results = r.sample(range(INPUTS, len(nodes)), min(2 + seed % 4, len(nodes) - INPUTS))
    return nodes, results


def text(name, nodes, results, parted):
    def pair(node):
        found = []
        for i in node[1:]:
            while nodes[i][0] == "not":
                i = nodes[i][1]
            found.append(i)
        return frozenset(found)
    ands = {pair(n) for n in nodes if n[0] == "and"}
    lines = [f".visible .entry {name}(.param .u64 to, .param .u64 from)", "{",
             f".reg .pred %p<{len(nodes) + 2}>; .reg .b32 %r<{INPUTS + len(results)}>; .reg .b64 %d<2>;",
             "ld.param.u64 %d0, [to]; ld.param.u64 %d1, [from];"]
    one, both = len(nodes), len(nodes) + 1
    for i, (what, *of) in enumerate(nodes):
        if what == "in":
            lines.append(f"ld.global.u32 %r{i}, [%d1+{4 * i}]; setp.lt.s32 %p{i}, %r{i}, 0;")
        elif what == "or" and parted and pair(nodes[i]) in ands:
            lines += [f"xor.pred %p{one}, %p{of[0]}, %p{of[1]}; and.pred %p{both}, %p{of[0]}, %p{of[1]};",
                      f"xor.pred %p{i}, %p{one}, %p{both};"]
        else:
            lines.append(f"{what}.pred %p{i}, " + ", ".join(f"%p{o}" for o in of) + ";")
    for k, i in enumerate(results):
        r = INPUTS + k
        lines.append(f"selp.u32 %r{r}, 1, 0, %p{i}; st.global.u32 [%d0+{4 * k}], %r{r};")
    return "\n".join([*lines, "ret;", "}", ""])


JOINED = {"and": lambda p, q: p & q, "or": lambda p, q: p | q, "xor": lambda p, q: p ^ q}


def wanted(nodes, results):
    v = []
    for what, *of in nodes:
        v.append(INPUT[of[0]] if what == "in" else ALL & ~v[of[0]] if what == "not"
                 else JOINED[what](v[of[0]], v[of[1]]))
    return [v[i] for i in results]


# ---- machine code ----

def instructions(nvdisasm, path):
    """Of each program: lists of (operation, operands)."""
    listing = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r"\n\.text\.", listing)[1:]:
        lines = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;", part.replace(".reuse", ""), re.M)
        found[part[:part.index(":")]] = [(op, [x.strip() for x in rest.split(",")])
                                         for op, _, rest in (line.partition(" ") for line in lines)]
    return found


def looked_up(table, p, q, r):
    """Bit 4p + 2q + r of the table."""
    v = 0
    for i in range(8):
        if table >> i & 1:
            v |= (p if i & 4 else ~p) & (q if i & 2 else ~q) & (r if i & 1 else ~r)
    return v & ALL


def element(address):
    return int((re.search(r"\.64\+0x([0-9a-f]+)\]", address) or [0, "0"])[1], 16) // 4


def computed(code):
    """What it stores, by element."""
    truth, number, stored = {"PT": ALL}, {"RZ": 0}, {}

    def value(name):
        return ALL & ~value(name[1:]) if name[0] == "!" else truth[name]

    def is_negative(x, y, how):
        """Of an input, which is -1 or 1, against 0."""
        x, y = number.get(x), number.get(y)
        if isinstance(x, tuple) and y == 0:
            return INPUT[x[1]] if how in ("LT", "LE") else ALL & ~INPUT[x[1]]
        if isinstance(y, tuple) and x == 0:
            return INPUT[y[1]] if how in ("GT", "GE") else ALL & ~INPUT[y[1]]
        raise Unknown(how)
    for op, of in code:
        what, *how = op.split(".")
        if op == "LDG.E":
            number[of[0]] = ("in", element(of[1]))
        elif what == "ISETP" and len(how) == 2:
            v, joined, third = is_negative(of[2], of[3], how[0]), JOINED[how[1].lower()], value(of[4])
            truth[of[0]], truth[of[1]] = joined(v, third), joined(ALL & ~v, third)
        elif what == "PLOP3":
            operands = [value(o) for o in of[2:5]]
            truth[of[0]], truth[of[1]] = (looked_up(int(t, 16), *operands) for t in of[5:7])
        elif what == "SEL" and of[1:3] == ["RZ", "0x1"]:
            number[of[0]] = ALL & ~value(of[3])
        elif op in ("MOV", "IMAD.MOV.U32") and of[-1] in ("RZ", "0x1"):
            number[of[0]] = ALL if of[-1] == "0x1" else 0
        elif op == "STG.E" and isinstance(number.get(of[1]), int):
            stored[element(of[0])] = number[of[1]]
        elif what not in ("LDC", "ULDC", "EXIT", "BRA", "NOP"):
            raise Unknown(op)
        truth["PT"] = ALL
    return stored


# ---- all of them ----

def is_right(code, nodes, results):
    """None: it has other instructions."""
    try:
        return computed(code) == dict(enumerate(wanted(nodes, results)))
    except (Unknown, KeyError):
        return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--first", type=int, default=0)
    ap.add_argument("--count", type=int, default=3000)
    ap.add_argument("--parted", action="store_true")
    ap.add_argument("--ptxas", default=ptx.find_ptxas())
    ap.add_argument("--nvdisasm", default=shutil.which("nvdisasm"))
    a = ap.parse_args()
    for name in "ptxas", "nvdisasm":
        if not getattr(a, name):
            sys.exit(f"logic: there is no {name}; --{name} says where it is")
    right, wrong, other = 0, [], 0
    for first in range(a.first, a.first + a.count, TOGETHER):
        programs = {f"p{s}": drawn(s) for s in range(first, min(first + TOGETHER, a.first + a.count))}
        with tempfile.TemporaryDirectory() as tmp:
            source, made = os.path.join(tmp, "p.ptx"), os.path.join(tmp, "p.cubin")
            with open(source, "w") as f:
                f.write(".version 8.0\n.target sm_90a\n.address_size 64\n"
                        + "".join(text(n, *p, a.parted) for n, p in programs.items()))
            subprocess.run([a.ptxas, "-arch=sm_90a", "-o", made, source], check=True)
            for name, code in instructions(a.nvdisasm, made).items():
                ok = is_right(code, *programs[name])
                right, other = right + (ok is True), other + (ok is None)
                wrong += [name[1:]] if ok is False else []
    print(f"{right} of {right + len(wrong)} are right, {other} have other instructions", *wrong)
    sys.exit(bool(wrong) or not right)


if __name__ == "__main__":
    main()
