"""PTX of ours, run by numpy: no GPU is needed.

A group's items go on side by side, one instruction at a time: those that are
furthest behind.  What stands in kernels of products is known, wgmma as well; an
instruction that is not is an error.  Beside the values it is tried that

* no item reads or writes memory that another wrote since the last barrier (that none
  writes what another may still read is not tried),
* wgmma reads what was written before a fence of its proxy and a barrier, and
* what it reads stays until it is waited for: it is done when it begins, and once
  more when it ends,
* numbers of tf32 have been rounded to it; copies that go by themselves arrive when
  they are waited for, and to what wgmma still reads not even then.
"""
import re

import numpy as np

LOCAL = 1024            # where a group's memory begins
MASK32 = np.uint64(0xffffffff)
TYPES = {"b8": 1, "u8": 1, "b16": 2, "u16": 2, "b32": 4, "u32": 4, "s32": 4, "f32": 4,
         "b64": 8, "u64": 8, "s64": 8}
HALVES = ("bf16", "f16", "bf16x2", "f16x2")
WIDTH = {"s8": 1, "u8": 1, "bf16": 2, "f16": 2, "tf32": 4}  # of what is multiplied


class Kernel:
    """The one entry of a text."""

    def __init__(self, text):
        body = text[text.index(".visible .entry"):]
        self.name = re.match(r"\.visible \.entry (\S+)\(", body).group(1)
        self.items = int(re.search(r"\.reqntid (\d+)", body).group(1))
        self.code, self.label = [], {}
        text = re.sub(r"//[^\n]*", "", body[body.index("\n{") + 2:body.rindex("\n}")])
        inner = {}
        for line in re.split(r"[;\n]", text.replace("{.reg", "\n.reg").replace("\n\t\t{", " {")):
            line = line.strip()
            if line == "}" or not line or re.match(r"\.(reg|shared|param|loc|pragma)\b", line):
                continue
            if line.endswith(":"):
                self.label[line[:-1]] = len(self.code)
                continue
            guard = re.match(r"@(!?)(%p\d+)\s+", line)
            line = line[guard.end():] if guard else line
            name, _, rest = line.partition("\t") if "\t" in line else line.partition(" ")
            self.code.append((guard and guard.groups(), name.strip().split("."), operands(rest)))
        self.bars = np.array([name[0] == "bar" for _, name, _ in self.code] + [True])


def numbers(bits, kind):
    """Of such a type, from their bits in words."""
    if kind == "tf32":
        if (bits & 0x1fff).any():
            raise ValueError("a number that is not rounded to tf32")
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "bf16":
        return (bits << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    return bits.astype(np.uint8).view(np.int8 if kind == "s8" else np.uint8).astype(np.float64)


def added(old, v, kind):
    """The bits of a sum, f32 or s32, and of what it grows by."""
    old = old.astype(np.uint32)
    if kind == "f32":
        return (old.view(np.float32).astype(np.float64) + v).astype(np.float32).view(np.uint32)
    return (old.view(np.int32).astype(np.int64) + v.astype(np.int64)).astype(np.int32).view(np.uint32)


def operands(text):
    """Lists for {..}, tuples for [..]."""
    out = []
    for m in re.finditer(r"\{([^}]*)\}|\[([^\]]*)\]|([^\s,]+)", text):
        vector, address, plain = m.groups()
        out.append([v.strip() for v in vector.split(",")] if vector is not None else
                   tuple(address.split("+")) if address is not None else plain)
    return out


class Group:
    """A group that runs the kernel over arrays of bytes, one a parameter."""

    def __init__(self, kernel, memory, number, local):
        self.k, self.memory, self.n = kernel, memory, kernel.items
        self.local = np.zeros(LOCAL + local, np.uint8)
        self.writer = np.full(len(self.local), -1, np.int64)
        self.written = np.full(len(self.local), -1, np.int64)
        self.fresh = np.zeros(len(self.local), bool)     # no fence yet
        self.epoch = 0
        self.marks = {}                                  # of arrays: writer, written
        self.running, self.committed = [], 0
        self.open, self.copies = [], []                  # of a turn; turns
        item = np.arange(self.n, dtype=np.uint64)
        self.reg = {"%tid.x": item, "%ctaid.x": np.full(self.n, number, np.uint64)}
        self.at = np.zeros(self.n, np.int64)

    # ---- values ----

    def get(self, x):
        if x in self.reg:
            return self.reg[x]
        if x.startswith("0f"):
            v = int(x[2:], 16)
        elif re.match(r"-?(0x[0-9a-fA-F]+U?|\d+)$", x):
            v = int(x.rstrip("U"), 0)
        elif x.endswith("_$_local"):
            v = LOCAL
        else:
            raise ValueError(f"operand {x}")
        return np.full(self.n, v & (1 << 64) - 1, np.uint64)

    def set(self, x, v, mask):
        old = self.reg.setdefault(x, np.zeros(self.n, np.uint64))
        self.reg[x] = np.where(mask, v.astype(np.uint64), old)

    # ---- memory ----

    def address(self, x):
        v = self.get(x[0]).astype(np.int64)
        return v + int(x[1]) if len(x) > 1 else v

    def ordered(self, at, who, what):
        """at: bytes [items, n] of local memory."""
        other = (self.written[at] == self.epoch) & (self.writer[at] != who[:, None])
        if other.any():
            raise ValueError(f"{what}: no barrier since another item wrote it")

    def access(self, name, x, bytes_, mask):
        who = np.nonzero(mask)[0]
        at = self.address(x)[who][:, None] + np.arange(bytes_)
        if (at[:, 0] % bytes_).any():
            raise ValueError("an access that is not aligned")
        if name[1] == "shared":
            self.ordered(at, who, ".".join(name))
            return who, self.local, at
        which = at[0, 0] >> 40
        at = at - (which << 40)
        self.ordered_outside(which, at, who, name)
        return who, self.memory[which - 1], at

    def ordered_outside(self, which, at, who, name):
        if which not in self.marks:
            self.marks[which] = [np.full(len(self.memory[which - 1]), -1, np.int64) for _ in range(2)]
        writer, written = self.marks[which]
        if ((written[at] == self.epoch) & (writer[at] != who[:, None])).any():
            raise ValueError(f"{'.'.join(name)}: no barrier since another item wrote it")
        if name[0] == "st":
            writer[at], written[at] = who[:, None], self.epoch

    def load(self, name, ops, mask):
        each = TYPES[name[-1]]
        array = self.address(ops[1]) >> 40
        several = np.unique(array[mask])
        if len(several) > 1:
            for one in several:
                self.load(name, ops, mask & (array == one))
            return
        to = ops[0] if isinstance(ops[0], list) else [ops[0]]
        who, memory, at = self.access(name, ops[1], each * len(to), mask)
        for i, r in enumerate(to):
            v = np.zeros(self.n, np.uint64)
            for b in range(each):
                v[who] |= memory[at[:, i * each + b]].astype(np.uint64) << np.uint64(8 * b)
            self.set(r, v, mask)

    def store(self, name, ops, mask):
        each = TYPES[name[-1]]
        of = ops[1] if isinstance(ops[1], list) else [ops[1]]
        who, memory, at = self.access(name, ops[0], each * len(of), mask)
        for i, r in enumerate(of):
            v = self.get(r)[who].astype("<u8").view(np.uint8).reshape(-1, 8)
            for b in range(each):
                memory[at[:, i * each + b]] = v[:, b]
        if memory is self.local:
            self.writer[at] = who[:, None]
            self.written[at] = self.epoch
            self.fresh[at] = True

    # ---- copies by themselves ----

    def copy(self, ops, mask):
        """Begins: what is read is read now, since nobody writes it; where it goes is
        anything until it arrives.  A fourth operand that is 0: zeros."""
        array, bytes_ = self.address(ops[1]) >> 40, int(ops[2])
        reads = mask & (self.get(ops[3]) != 0) if len(ops) > 3 else mask
        v = np.zeros((self.n, bytes_), np.uint8)
        for one in np.unique(array[reads]):
            who, memory, at = self.access(["ld", "global"], ops[1], bytes_, reads & (array == one))
            v[who] = memory[at]
        who = np.nonzero(mask)[0]
        to = self.address(ops[0])[who]
        assert not (to % bytes_).any()
        to = to[:, None] + np.arange(bytes_)
        self.open.append((who, to, v[who]))
        self.ordered(to, who, "a copy")
        self.local[to] ^= 0x55
        self.writer[to], self.written[to] = who[:, None], self.epoch

    def arrive(self, left):
        while len(self.copies) > left:
            for who, at, v in self.copies.pop(0):
                self.ordered(at, who, "a copy")
                self.local[at] = v
                self.writer[at], self.written[at], self.fresh[at] = who[:, None], self.epoch, True

    # ---- wgmma ----

    def tile(self, d, rows, depth, each, deep):
        """Where the elements [rows, depth] are that descriptor d tells of."""
        d = int(d)
        start, lead, stride = (d & 0x3fff) << 4, (d >> 16 & 0x3fff) << 4, (d >> 32 & 0x3fff) << 4
        assert d >> 62 == 1, "not 128 bytes exchanged"
        r, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
        if deep:
            at = r % 8 * 128 + r // 8 * stride + k * each
        else:
            at = r % 64 * each + r // 64 * lead + k % 8 * 128 + k // 8 * stride
        at = at + start
        return at ^ (at >> 7 & 7) << 4

    def elements(self, at, kind):
        if (self.fresh[at] | (self.written[at] == self.epoch)).any():
            raise ValueError("wgmma reads what has no fence and barrier behind it")
        return numbers(sum(self.local[at + b].astype(np.uint32) << 8 * b for b in range(WIDTH[kind])), kind)

    def product(self, name, ops):
        """What it adds to the sums of each four warps."""
        m, n, depth = map(int, re.match(r"m(\d+)n(\d+)k(\d+)", name[4]).groups())
        kind, turned = name[6], ([0, 0] + [int(x) for x in ops[6:8]])[-2:]
        each = WIDTH[kind]
        out = []
        for first in range(0, self.n, 128):
            y = set(self.get(ops[2])[first:first + 128].tolist())
            x = set() if isinstance(ops[1], list) else set(self.get(ops[1])[first:first + 128].tolist())
            assert len(y) == 1 and len(x) < 2, "items of one product name several"
            x = (self.elements(self.tile(x.pop(), m, depth, each, not turned[0]), kind) if x else
                 self.held(ops[1], first, kind))
            y = self.elements(self.tile(y.pop(), n, depth, each, not turned[1]), kind)
            out.append(x @ y.T)
        return np.stack(out)

    def held(self, words, first, kind):
        """64 rows of x, of words of 4 bytes in the registers of four warps' items."""
        per = 4 // WIDTH[kind]
        x, item = np.zeros((64, 8 * per)), np.arange(128)
        for i, r in enumerate(words):
            v = self.get(r)[first:first + 128].astype(np.uint32)
            for j in range(per):
                x[item // 32 * 16 + item % 32 // 4 + i % 2 * 8, (item % 4 + i // 2 * 4) * per + j] = numbers(
                    v >> 16 * j & 0xffff if per == 2 else v, kind)
        return x

    def begin(self, name, ops, mask):
        assert mask.all() and "".join(ops[3:4]) in ("p", "first")
        first = self.product(name, ops)
        at = [o if isinstance(o, list) else self.get(o) for o in ops[1:3]]
        self.running.append((self.committed, name, ops, at, first))
        l = np.arange(self.n)
        for i, r in enumerate(ops[0]):
            row = l % 128 // 32 * 16 + l % 32 // 4 + i // 2 % 2 * 8
            v = first[l // 128, row, i // 4 * 8 + l % 4 * 2 + i % 2]
            old = self.get(r) if ops[3] == "p" else np.zeros(self.n, np.uint64)
            self.set(r, added(old, v, name[5]), True)

    def commit(self):
        self.committed += 1

    def wait(self, left):
        """For all groups of products but the last ones."""
        going = [x for x in self.running if x[0] >= self.committed - left]
        for _, name, ops, at, first in self.running[:len(self.running) - len(going)]:
            x = at[0] if isinstance(at[0], list) else "wx"
            if x == "wx":
                self.set("wx", at[0], True)
            self.set("wy", at[1], True)
            if not np.array_equal(self.product(name, [ops[0], x, "wy", *ops[3:]]), first, equal_nan=True):
                raise ValueError("what wgmma reads was written before it was waited for")
        self.running = going

    # ---- mma.sync ----

    def matrices(self, name, ops, mask):
        """Word l % 4 of row l // 4 of each of four matrices; item l of a warp names row
        l % 8 of matrix l // 8.  trans: of 16 bits, a column's two."""
        assert mask.all() and name[2:6] == ["aligned", "m8n8", "x4", "trans" if "trans" in name else "shared"]
        at, item = self.address(ops[1]), np.arange(self.n)
        self.ordered(at[:, None] + np.arange(16), item, "ldmatrix")
        for i, r in enumerate(ops[0]):
            row = item // 32 * 32 + 8 * i
            if "trans" in name:
                part = [at[row + item % 4 * 2 + j] + item % 32 // 4 * 2 for j in (0, 1)]
                byte = [p + b for p in part for b in (0, 1)]
            else:
                byte = [at[row + item % 32 // 4] + item % 4 * 4 + b for b in range(4)]
            self.set(r, sum(self.local[p].astype(np.uint64) << np.uint64(8 * b) for b, p in enumerate(byte)), mask)

    def square(self, name, ops, mask):
        """d = a * b + c of 16 x 8 sums a warp."""
        assert mask.all()
        m, n, depth = map(int, re.match(r"m(\d+)n(\d+)k(\d+)", name[3]).groups())
        kind = name[name.index("col") + 2]
        per = 4 // WIDTH[kind]
        x, y = np.zeros((self.n // 32, m, depth)), np.zeros((self.n // 32, n, depth))
        item = np.arange(self.n)
        for of, words, rows in (x, ops[1], 2), (y, ops[2], 1):
            for i, r in enumerate(words):
                for j in range(per):
                    v = self.get(r) >> np.uint64(8 * WIDTH[kind] * j) & np.uint64((1 << 8 * WIDTH[kind]) - 1)
                    of[item // 32, item % 32 // 4 + i % rows * 8, (item % 4 + i // rows * 4) * per + j] = numbers(
                        v.astype(np.uint32), kind)
        out = x @ y.transpose(0, 2, 1)
        for i, r in enumerate(ops[0]):
            v = out[item // 32, item % 32 // 4 + i // 2 * 8, item % 4 * 2 + i % 2]
            self.set(r, added(self.get(ops[3][i]), v, name[name.index("col") + 1]), mask)

    # ---- instructions ----

    def step(self):
        wait = self.k.bars[self.at]  # at a barrier, which may stand before what others do
        pc = self.at[~wait].min() if not wait.all() else self.at.min()
        mask = self.at == pc
        guard, name, ops = self.k.code[pc]
        if guard:
            mask = mask & ((self.get(guard[1]) != 0) != (guard[0] == "!"))
        self.at[self.at == pc] += 1
        key = name[0]
        if key == "bra":
            self.at[mask] = self.k.label[ops[0]]
        elif key == "ret":
            self.at[mask] = len(self.k.code)
        elif key in ("ld", "st") and name[1] != "param":
            name = [n for n in name if n != "volatile"]
            if mask.any():
                (self.load if key == "ld" else self.store)(name, ops, mask)
        elif key == "ld":
            number = int(ops[1][0].rsplit("_", 1)[1])
            self.set(ops[0], np.full(self.n, number + 1 << 40, np.uint64), mask)
        elif key == "bar" and name[1] == "red":
            assert mask.all() and name[2:] == ["or", "pred"]
            self.epoch += 1
            self.set(ops[0], np.full(self.n, (self.get(ops[2]) != 0).any()), mask)
        elif key == "shfl":
            warps = mask.reshape(-1, 32)
            assert (warps.all(1) == warps.any(1)).all() and name[1:] == ["sync", "idx", "b32"]
            item, of = np.arange(self.n), self.get(ops[2]).astype(np.int64)
            self.set(ops[0].split("|")[0], self.get(ops[1])[item // 32 * 32 + of % 32], mask)
        elif key in ("vote", "match"):
            assert mask.all() and name[1:3] in (["sync", "ballot"], ["any", "sync"])
            v = self.get(ops[1]).reshape(-1, 1, 32)
            bits = v != 0 if key == "vote" else v == v.reshape(-1, 32, 1)
            sets = (bits << np.arange(32)).sum(2)
            self.set(ops[0], np.repeat(sets, 32) if key == "vote" else sets.reshape(-1), mask)
        elif key == "bar" and name[1] == "warp":
            assert mask.all() and self.n == 32, "a warp's barrier where there are several"
            self.epoch += 1
        elif key == "bar":
            n = int(ops[1]) if len(ops) > 1 else self.n  # the first items have their own
            assert mask[:n].all() and mask.sum() == n, "a barrier that not all reach"
            assert n % 32 == 0, "a barrier for a part of a warp"
            self.epoch += 1
        elif key == "cp" and name[2] == "commit_group":
            assert mask.all()
            self.copies.append(self.open)
            self.open = []
        elif key == "cp" and name[2] == "wait_group":
            assert mask.all()
            self.arrive(int(ops[0]))
        elif key == "cp":
            assert name[1:] == ["async", "cg", "shared", "global"], name
            self.copy(ops, mask)
        elif key == "fence":
            assert name[1:3] == ["proxy", "async"]
            self.fresh &= ~mask[self.writer]  # of an item's own
        elif key == "wgmma":
            {"mma_async": lambda: self.begin(name, ops, mask), "fence": lambda: None,
             "commit_group": self.commit, "wait_group": lambda: self.wait(int(ops[0]))}[name[1]]()
        elif key == "ldmatrix":
            self.matrices(name, ops, mask)
        elif key == "mma":
            self.square(name, ops, mask)
        elif isinstance(ops[0], list):
            assert key == "mov"
            bits = 8 * TYPES[name[1]] // len(ops[0])
            for i, r in enumerate(ops[0]):
                v = self.get(ops[1]) >> np.uint64(bits * i)
                self.set(r, v & np.uint64((1 << bits) - 1), mask)
        else:
            of = [self.get(o) for o in ops[1:] if not isinstance(o, list)]
            self.set(ops[0], self.value(name, of, ops), mask)

    def value(self, name, v, ops):
        key, bits = name[0], 8 * TYPES.get(name[-1], 8)
        if name[-1] in ("bf16", "f16") and key in ("add", "sub", "mul", "min", "max"):
            return self.half(name, v)
        assert name[-1] not in ("f64", *HALVES) or key in ("mov", "selp", "cvt"), name  # no whole numbers
        cut = np.uint64((1 << bits) - 1) if bits < 64 else ~np.uint64(0)
        if key == "cvt":
            return self.converted(name, v)
        if name[-1] == "f32" and key == "setp":
            a, b = (x.astype(np.uint32).view(np.float32) for x in v)
            return {"eq": a == b, "equ": ~((a < b) | (a > b)), "gtu": ~(a <= b), "leu": ~(a > b), "le": a <= b, "gt": a > b}[name[1]]
        if name[-1] == "f32" and key not in ("mov", "selp"):
            return self.real(name, v)
        if key == "mov":
            return v[0] & cut if not isinstance(ops[1], list) else self.joined(bits, ops[1])
        if key == "setp":
            a, b = self.whole(name[-1], v)
            return {"eq": a == b, "ne": a != b, "lt": a < b, "gt": a > b, "le": a <= b,
                    "ge": a >= b}[name[1]]
        if key == "popc":
            return np.array([int(x & MASK32).bit_count() for x in v[0]], np.uint64)
        if key == "prmt":
            return self.permuted(v)
        if key == "bfe":
            top = np.uint64(1) << v[2] - np.uint64(1)  # the sign of a number of s
            field = v[0] >> v[1] & (top << np.uint64(1)) - np.uint64(1)
            return (field ^ top) - top & cut if name[1][0] == "s" else field
        if key == "mul" and name[1:] == ["hi", "u64"]:
            return np.array([int(a) * int(b) >> 64 for a, b in zip(*v)], np.uint64)
        if key == "mul" and name[1] == "hi":
            return (v[0] & MASK32) * (v[1] & MASK32) >> np.uint64(32)
        if key == "mad":
            return v[0] * v[1] + v[2] & cut
        if key in ("min", "max"):
            return getattr(np, key + "imum")(*self.whole(name[1], v)).astype(np.uint64) & cut
        shift = np.minimum(v[1], np.uint64(63)) if len(v) > 1 else None
        return {"add": lambda: v[0] + v[1], "sub": lambda: v[0] - v[1], "mul": lambda: v[0] * v[1],
                "and": lambda: v[0] & v[1], "or": lambda: v[0] | v[1], "xor": lambda: v[0] ^ v[1],
                "not": lambda: ~v[0] if name[1] != "pred" else v[0] == 0, "shl": lambda: v[0] << shift, "shr": lambda: (v[0] & cut) >> shift,
                "selp": lambda: np.where(v[2] != 0, v[0], v[1])}[key]().astype(np.uint64) & cut

    @staticmethod
    def whole(kind, v):
        """As the numbers that bits of such a type mean."""
        sign, bits = {"s": "i", "u": "u", "b": "u"}.get(kind[0], "u"), 8 * TYPES.get(kind, 8)
        return [x.astype(np.uint64).astype(f"u{bits // 8}").view(f"{sign}{bits // 8}") for x in v]

    @staticmethod
    def real(name, v):
        a, *b = (x.astype(np.uint32).view(np.float32) for x in v)
        if name[:2] == ["ex2", "approx"]:
            return np.exp2(a).view(np.uint32)
        if name[:2] == ["rcp", "rn"]:
            return (np.float32(1) / a).view(np.uint32)
        b, *c = b
        if name[:2] == ["fma", "rn"]:  # of numbers whose products are exact
            return (a * b + c[0]).view(np.uint32)
        if name == ["max", "f32"]:  # of a NaN and a number the number
            return np.fmax(a, b).view(np.uint32)
        f = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum,
             "min": np.minimum}[name[0]]
        assert name[1] in ("rn", "NaN"), name
        return f(a, b).view(np.uint32)

    @staticmethod
    def half(name, v):
        """Of two bf16 or f16: what f32 has more than twice the digits of is rounded as if once."""
        if name[-1] == "f16":
            x = Group.real(name, [x.astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32) for x in v])
            return x.view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint64)
        x = Group.real(name, [x << np.uint64(16) for x in v])
        x = x + (x >> np.uint32(16) & np.uint32(1)) + np.uint32(0x7fff)
        return x.astype(np.uint64) >> np.uint64(16)

    def joined(self, bits, parts):
        bits //= len(parts)
        return sum(self.get(p) << np.uint64(bits * i) for i, p in enumerate(parts))

    def permuted(self, v):
        pair, out = v[0] & MASK32 | v[1] << np.uint64(32), np.zeros(self.n, np.uint64)
        for i in range(4):
            which = v[2] >> np.uint64(4 * i) & np.uint64(7)
            out |= (pair >> which * np.uint64(8) & np.uint64(255)) << np.uint64(8 * i)
        return out

    def converted(self, name, v):
        if name[1:] == ["s64", "s32"]:
            return v[0].astype(np.uint32).view(np.int32).astype(np.int64)
        if name[1] in ("u64", "u32", "u16"):
            return v[0] & np.uint64((1 << 8 * min(TYPES[name[1]], TYPES[name[2]])) - 1)
        if name[1:] == ["rna", "tf32", "f32"]:  # of finite numbers
            return v[0] + np.uint64(0x1000) & np.uint64(0xffffe000)
        if name[1:] == ["rn", "f32", "s32"]:
            return v[0].astype(np.uint32).view(np.int32).astype(np.float32).view(np.uint32)
        if name[1:] == ["f32", "bf16"]:
            return (v[0] & np.uint64(0xffff)) << np.uint64(16)
        if name[1:] == ["f32", "f16"]:
            return v[0].astype(np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
        assert name[1] == "rn" and name[2] in ("bf16", "bf16x2", "f16", "f16x2") and name[3] == "f32", name
        out = np.zeros(self.n, np.uint64)
        for x, at in zip(v, (16, 0) if len(v) == 2 else (0,)):
            x = x.astype(np.uint32)
            if name[2].startswith("bf16"):
                x = x + (x >> 16 & 1) + 0x7fff >> 16
            else:
                x = x.view(np.float32).astype(np.float16).view(np.uint16)
            out |= x.astype(np.uint64) << np.uint64(at)
        return out

    def run(self):
        while (self.at < len(self.k.code)).any():
            self.step()
        assert not self.running and not self.copies, "products or copies that nobody waits for"


def run(text, arrays, groups, local):
    """Runs these groups over arrays, one a parameter, in place."""
    kernel = Kernel(text)
    memory = [a.reshape(-1).view(np.uint8) for a in arrays]
    for g in groups:
        Group(kernel, memory, g, local).run()
