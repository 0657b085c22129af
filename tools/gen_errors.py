#!/usr/bin/env python3
"""docs/errors.md: every message that the sources can give.

    gen_errors.py write               the page, from the sources
    gen_errors.py check               is the page what the sources say?
    gen_errors.py missing SEEN [ROOM] messages that no C test produced; SEEN: the
                                      file that SUNDOG_ERRORS_SEEN named

A message begins in sd_error or in a function that hands a text of its caller's
on to it; those are found by reading the sources, so a new one needs no entry
here.  A test produces a message if the error that it met was made where the
message stands and has its text, whole.
"""
import os
import re
import sys
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "errors.md")
PARTS = os.path.join(ROOT, "tools", "errors.tsv")
UNTESTED = os.path.join(ROOT, "tests", "errors", "untested.tsv")

CODES = {
    "SD_INVALID": ("INVALID_ARGUMENT", "What was handed over breaks a rule: a program, an option, an argument of a call. The message names the place and the rule.",
                   "Correct what it names. A program that JAX made should never give it: then report it, with the program (`XLA_FLAGS=--xla_dump_to=FOLDER`)."),
    "SD_UNIMPLEMENTED": ("UNIMPLEMENTED", "The program or the call is right, and this version does not do it, or not on this device.",
                         "`docs/status.md` says what is missing. Keep that part on the CPU (`jax.default_device`), or write it with other operations."),
    "SD_EXHAUSTED": ("RESOURCE_EXHAUSTED", "Memory, threads or another resource of the machine ran out; what was asked for was given back.",
                     "Use smaller batches, donate arguments, delete arrays that are not needed, or raise the limit that the message names."),
    "SD_INTERNAL": ("INTERNAL", "Something of ours, or of a driver, broke its own promise.",
                    "Report it with the message. `SUNDOG_LOG=debug` says more; `SUNDOG_DEVICE=host` goes without a driver."),
    "SD_NOT_FOUND": ("NOT_FOUND", "A name stands for nothing: a device, a file, a target of a custom-call.",
                     "Correct the name, or register what it should stand for."),
    "SD_PRECONDITION": ("FAILED_PRECONDITION", "The thing is not in a state that allows this: deleted, donated, not ready, of another client.",
                        "Do not use an array after it was deleted or donated; mind the order of calls."),
    "SD_UNAVAILABLE": ("UNAVAILABLE", "A device, a driver or a library is not there, or has gone.",
                       "Install what the message names (`docs/libraries.md`), or choose another device by `SUNDOG_DEVICE`."),
    "SD_DATA_LOSS": ("DATA_LOSS", "Saved bytes are damaged.", "Compile again; delete the file or the cache entry."),
    "SD_OUT_OF_RANGE": ("OUT_OF_RANGE", "A position lies outside of the thing it is a position in.", "Correct the position or the size."),
    "SD_ALREADY_EXISTS": ("ALREADY_EXISTS", "The name is taken.", "Choose another, or register once."),
    "SD_CANCELLED": ("CANCELLED", "The work was given up before it was done.", "See what gave it up."),
    "SD_ABORTED": ("ABORTED", "The work was stopped by a failure elsewhere.", "See that failure's message."),
    "SD_PERMISSION": ("PERMISSION_DENIED", "The system refused.", "Check the rights of the file or device that it names."),
    "SD_DEADLINE": ("DEADLINE_EXCEEDED", "It took longer than was allowed.", "Allow more time."),
    "SD_UNKNOWN": ("UNKNOWN", "An error of the caller's without a kind.", "See its text."),
}
ROOMS = {
    "base": "Settings, memory, bytes, threads: what every part uses.",
    "frontend": "Reading a program: MLIR bytecode, StableHLO text, compile options. \"Expected X\" names what should stand at the offset or line that comes with it.",
    "hlo": "HLO: the rules of its operations, its text, its protobuf, folding. The instruction, JAX's name for it and its source line come with the message.",
    "passes": "The optimiser, and operations that it cannot lower.",
    "plan": "Planning kernels and memory.", "target": "Making machine code.",
    "thunk": "Programs of steps: building, saving, loading.",
    "xpu": "Devices, memory, execution, transfers, foreign functions.",
    "compile": "The road of a compile as a whole.",
    "mlir": "Programs as StableHLO text, as `sundog mlir` writes them.",
    "ref": "The reference evaluator of `sundog selftest`, `sundog spmd` and the tests, which judges devices.",
    "plugin": "The PJRT interface: what frameworks call.",
}

# Parameters that hold words of a message; other texts are names of things.
TEXT = ("what", "expected", "fmt", "why", "rule")
# Functions that keep the text: who makes the error of it, and from where.
KEPT = {"sd_cursor_fail": ("sd_cursor_status", "c->bad"),
        "hlo_fail": ("parse_error", "p->x.bad"),
        "sharding_fail": ("sharding_misfit", "expected")}
HOLE = "\1"     # where the text of a function's caller goes

Frame = namedtuple("Frame", "text code site")   # code: a parameter, or SD_...
Maker = namedtuple("Maker", "at frames")        # at: the parameter of the text
Call = namedtuple("Call", "name args first last")
Message = namedtuple("Message", "files patterns")


# ---- the sources ----

def without_comments(text):
    def keep(m):
        return (m.group() if m.group()[0] in "\"'" else
                "\n" * m.group().count("\n") or " ")
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|/\*.*?\*/',
                  keep, text, flags=re.S)


def split_args(text, at):
    """The arguments of the call whose bracket opens before at, and its end."""
    out, depth, start, i = [], 0, at, at
    while i < len(text):
        c = text[i]
        if c in "\"'":
            i += 1
            while i < len(text) and text[i] != c:
                i += 2 if text[i] == "\\" else 1
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return out + [text[start:i].strip()], i
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
        i += 1
    return None, at


class Function:
    def __init__(self, path, text, m, aliases):
        self.path, self.name = path, m.group(2)
        self.static = m.group(1).startswith("static")
        self.params = [re.sub(r".*\W", "", p.strip())
                       for p in m.group(3).split(",")]
        self.body = m.group(4)
        self.calls = list(self.find_calls(text.count("\n", 0, m.start(4)) + 1,
                                          aliases))

    def find_calls(self, line, aliases):
        for m in re.finditer(r"(?<![\w#])([A-Za-z]\w*)\(", self.body):
            args, end = split_args(self.body, m.end())
            name = "sd_error" if m.group(1) in aliases else m.group(1)
            if args:
                yield Call(name, args, line + self.body.count("\n", 0, m.start()),
                           line + self.body.count("\n", 0, end))

    def printed(self):
        """The variable that is fmt, printed."""
        m = re.search(r"(\w+) = sd_arena_vfmt\(", self.body)
        return m and m.group(1)


def functions():
    for top in ("src", "plugin", "tools/mlir", "tools/ref"):
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(n for n in names if n.endswith((".c", ".h"))):
                with open(os.path.join(folder, name)) as f:
                    text = without_comments(f.read())
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                aliases = re.findall(
                    r"#define (\w+)\(\.\.\.\).*\bsd_error\(__VA_ARGS__\)", text)
                for m in re.finditer(r"^([A-Za-z_][\w \*]*\n?)\b(\w+)\(([^;{}]*)\)\n"
                                     r"\{\n(.*?)^\}", text, re.S | re.M):
                    yield Function(path, text, m, aliases)


def literals(arg):
    """The formats that an argument may be."""
    arg = re.sub(r'"\s*PRI\w+\s*"', "d", arg)
    arg = re.sub(r'"\s*PRI\w+', 'd"', arg)
    arg = re.sub(r'"\s+[A-Z_]{2,}\b(\(\w+\))?', '%s"', arg)  # a macro's text
    arg = re.sub(r'%s"\s+"', "%s", arg)
    parts = [""]
    for token in re.findall(r'"(?:\\.|[^"\\])*"|[?:]|[^"?:]+', arg):
        if token in "?:":
            parts.append("")
        elif token[0] == '"':
            parts[-1] += token[1:-1]
    yield from filter(None, parts)


CONVERSION = re.compile(r"%(?:%|[-+ #0]*[\d*]*(?:\.[\d*]+)?"
                        r"(?:hh|h|ll|l|z|t)?[diouxXeEfgGcsp])")


def template(fmt, args=(), hole=None):
    """What the format prints: <> for each conversion, HOLE for that of hole."""
    args = list(args)

    def put(m):
        if m.group() == "%%":
            return "%"
        used = args[:m.group().count("*") + 1]
        del args[:len(used)]
        return HOLE if hole and used and hole(used[-1]) else "<>"
    s = CONVERSION.sub(put, fmt)
    s = s.replace('\\"', '"').replace("\\n", " ").replace("\\t", " ")
    return re.sub("(<>)+", "<>", s)


# ---- makers ----

class Makers:
    def __init__(self, all_functions):
        self.functions = all_functions
        self.table = {(None, "sd_error"): Maker(1, {Frame(HOLE, 0, None)})}
        for name, (reader, member) in KEPT.items():
            self.table[None, name] = Maker(1, {
                Frame(template(*literals(c.args[1]), c.args[2:], lambda a: a == member),
                      c.args[0], (f.path, c.first, c.last))
                for f in all_functions if f.name == reader
                for c in f.calls if c.name == "sd_error" and member in c.args})
        known = 0
        while known != sum(len(m.frames) for m in self.table.values()):
            known = sum(len(m.frames) for m in self.table.values())
            for f in all_functions:
                self.look(f)

    def find(self, f, name):
        return self.table.get((f.path, name)) or self.table.get((None, name))

    def frames(self, f, call):
        """The frames of the maker called, as seen from its call in f."""
        for frame in self.find(f, call.name).frames:
            code = frame.code
            if isinstance(code, int):
                code = call.args[code]
                if code in f.params:
                    code = f.params.index(code)
                elif "SD_" not in code:     # a variable
                    code = " ".join(re.findall(rf"\b{code} = (SD_[A-Z_]+)",
                                               f.body))
            yield Frame(frame.text, code, frame.site or
                        (f.path, call.first, call.last))

    def handed_on(self, f, call):
        """(parameter, what stands around it) of texts that f hands on."""
        at = self.find(f, call.name).at
        text = call.args[at] if at < len(call.args) else ""
        if text in f.params and text in TEXT:
            yield text, HOLE
        for fmt in literals(text):
            rest = call.args[at + 1:]
            for p in set(f.params) & set(rest) & set(TEXT):
                yield p, template(fmt, rest, lambda a: a == p)
            if f.printed():
                around = template(fmt, rest, lambda a: a == f.printed())
                if HOLE in around:
                    yield "fmt", around

    def look(self, f):
        if f.name in KEPT:
            return
        for call in f.calls:
            if not self.find(f, call.name) or call.name == f.name:
                continue
            for param, around in self.handed_on(f, call):
                maker = self.table.setdefault(
                    (f.path if f.static else None, f.name),
                    Maker(f.params.index(param), set()))
                maker.frames.update(
                    Frame(fr.text.replace(HOLE, around), fr.code, fr.site)
                    for fr in self.frames(f, call))

    def fills(self, maker):
        """Do callers' texts make messages of their own?  Not so where they
        only name the thing that several rules are about."""
        texts = {fr.text for fr in maker.frames}
        expected = all("expected " + HOLE in t for t in texts)
        return expected or len(texts) == 1 and "expected <>" not in min(texts)


# ---- messages ----

def room_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "plugin" else (
        parts[1] if len(parts) > 2 else "compile")


def codes_of(expr):
    return tuple(dict.fromkeys(n for n in re.findall(r"SD_[A-Z_]+", str(expr))
                               if n in CODES))


def letters(s):
    return len(re.sub(r"<>|\W", "", s))


def pattern(s):
    return re.compile(".*".join(map(re.escape, s.split("<>"))), re.S)


def texts_of(makers, f, call):
    """What the call puts into the frames of its maker."""
    maker = makers.find(f, call.name)
    text = call.args[maker.at] if maker.at < len(call.args) else ""
    handed = list(makers.handed_on(f, call))
    own = makers.find(f, f.name) if handed else None
    if not makers.fills(maker) or (own and makers.fills(own)) or \
            f.name in dict(KEPT.values()):
        return []
    texts = [template(s) for s in literals(text)] or ["<>"]
    m = re.fullmatch(r"(\w+)\.at", call.args[-1])
    if texts == ["<>"] and m:   # printed into a buffer before
        texts = [template(s) + "<>" for s in re.findall(
            rf'sd_buf_fmt\(&{m.group(1)}, "([^"]*)"', f.body)[:1]]
    return texts


def static_messages():
    """Of errors that need no memory: they are recorded as of line 0."""
    path = "src/base/status.c"
    with open(os.path.join(ROOT, path)) as f:
        for code, s in re.findall(r'\.code = (SD_\w+),\s*\.message = '
                                  r'\(char \*\)"([^"]*)"', f.read()):
            yield ("base", (code,), s), Message(
                {path}, [((path, 0, 0), pattern(s), letters(s))])


def messages():
    """{(room, codes, text): Message}, and the sites of others' texts"""
    makers, out = Makers(list(functions())), dict(static_messages())
    foreign = set()
    for f in makers.functions:
        for call in f.calls:
            if not makers.find(f, call.name):
                continue
            frames = sorted(makers.frames(f, call), key=lambda fr: -fr.text.count("<>"))
            for s in texts_of(makers, f, call):
                whole = [re.sub("(<>)+", "<>", fr.text.replace(HOLE, s))
                         for fr in frames]
                if whole[0] == "<>":    # somebody else's text
                    foreign.add(frames[0].site)
                    continue
                code = codes_of(frames[0].code)
                if not code:
                    sys.exit(f"{f.path}: {f.name}: which code has \"{s}\"?")
                m = out.setdefault((room_of(f.path), code, whole[0]),
                                   Message(set(), []))
                m.files.add(f.path)
                m.patterns.extend((fr.site, pattern(w), letters(w))
                                  for fr, w in zip(frames, whole))
    return out, foreign


# ---- what tests produced ----

def produced(found, foreign, seen):
    """The messages that errors of the tests are; seen: "file:line\\ttext\\0"
    each.  Of several that an error may be, it is the one that says most."""
    at, out, strange = {}, set(), set()
    patterns = [(site, rx, n, key) for key, m in found.items()
                for site, rx, n in m.patterns]
    patterns += [(site, pattern("<>"), -1, None) for site in foreign]
    for (path, first, last), rx, n, key in patterns:
        for line in range(first, last + 1):
            at.setdefault((path, line), []).append((n, rx, key))
    for error in set(seen.split("\0")):
        where, _, text = error.partition("\t")
        m = re.search(r"((?:src|plugin|tools/mlir|tools/ref)/[\w/]+\.c):(\d+)$", where)
        if not m:
            continue
        fits = [(n, key) for n, rx, key in at.get((m[1], int(m[2])), ())
                if rx.fullmatch(text)]
        if not fits:
            strange.add(error)
        most = max((n for n, key in fits), default=0)
        out.update(key for n, key in fits if n == most and key)
    return out, strange


def code_name(codes):
    return " or ".join(CODES[c][0] for c in codes)


def rows_of(path):
    with open(path) as f:
        return [l.rstrip("\n").split("\t") for l in f if l[0] != "#"]


def untested():
    """{(room, code, text): why no test can produce it}"""
    return {tuple(r[:3]): r[3] for r in rows_of(UNTESTED)}


def row_key(key):
    return key[0], code_name(key[1]), key[2]


def missing(found, foreign, path, room):
    with open(path, errors="replace") as f:
        done, strange = produced(found, foreign, f.read())
    excused = untested()
    lost = sorted((k, m) for k, m in found.items()
                  if k not in done and row_key(k) not in excused
                  and room in (None, k[0]))
    for key, m in lost:
        print(*row_key(key), " ".join(sorted(m.files)), sep="\t")
    wrong = [r for r in excused if r in {row_key(k) for k in done}
             or r not in {row_key(k) for k in found}]
    for r in wrong:
        print("untested.tsv: a test produces it, or it is no message:", *r,
              sep="\t")
    for error in sorted(strange):
        print("no message of the sources:", *error.split("\t"), sep="\t")
    print(f"{len(done)} of {len(found)} messages are produced by C tests, "
          f"{len(excused)} are excused, {len(lost)} are missing")
    return lost or wrong or strange


# ---- the page ----

def cell(text):
    return text.replace("|", "\\|").replace("`", "'").strip()


def parts_of(found):
    """{(room, title): [{code: (cause, to do)}, keys]} in the order of PARTS"""
    rows, out = rows_of(PARTS), {}
    for room, title, files, code, cause, todo in rows:
        out.setdefault((room, title), [{}, []])[0][code] = cause, todo
    for key in sorted(found, key=lambda k: (code_name(k[1]), k[2])):
        file = os.path.basename(min(found[key].files))
        title = next((r[1] for r in rows if r[0] == key[0] and
                      file.startswith(tuple(r[2].split()) or "")), None)
        if not title:
            sys.exit(f"tools/errors.tsv: room {key[0]} has no part for {file}")
        out[key[0], title][1].append(key)
    return {k: v for k, v in out.items() if v[1]}


def print_part(title, advice, keys, found):
    codes = list(dict.fromkeys(code_name(k[1]) for k in keys))
    unknown = [c for c in codes if c not in advice]
    unused = [c for c in advice if c not in codes]
    if unknown or unused:
        sys.exit(f"tools/errors.tsv: part {title}: no row for {unknown}, "
                 f"nothing has {unused}")
    out = ["", f"### {title}", "", "| code | cause | what to do |",
           "|---|---|---|"]
    out += [f"| {c} | {advice[c][0]} | {advice[c][1]} |" for c in codes]
    out += ["", "| code | message | from |", "|---|---|---|"]
    for k in keys:
        files = ", ".join(sorted(os.path.basename(p) for p in found[k].files))
        out.append(f"| {code_name(k[1])} | `{cell(k[2])}` | {files} |")
    return out


def page(found):
    excused = untested()
    out = ["# Messages", "",
           f"Made by `make errors-page` from the sources: {len(found)} messages. `<>` is where a name, a number or a shape stands; what was being done comes",
           "before a message. `make test` produces each" + (", but for those at the end" if excused else "") +
           ". What any message of a code means stands first, what is more exact in its part.",
           "", "| code | cause | what to do |", "|---|---|---|"]
    used = {c for k in found for c in k[1]}
    out += [f"| `{n}` | {c} | {d} |" for s, (n, c, d) in CODES.items()
            if s in used]
    room = None
    for (r, title), (advice, keys) in parts_of(found).items():
        if r != room:
            room = r
            out += ["", f"## {room}", "", ROOMS[room]]
        out += print_part(title, advice, keys, found)
    if excused:
        out += ["", "## What no test can produce", "",
                "| room | code | message | why |", "|---|---|---|---|"]
    out += [f"| {r} | {c} | `{cell(t)}` | {why} |"
            for (r, c, t), why in sorted(excused.items())]
    return "\n".join(out) + "\n"


def main():
    found, foreign = messages()
    if sys.argv[1:] == ["write"]:
        text = page(found)  # before the page is opened: it may fail
        with open(PAGE, "w") as f:
            f.write(text)
    elif sys.argv[1:] == ["check"]:
        with open(PAGE) as f:
            if f.read() != page(found):
                sys.exit("docs/errors.md is not what the sources say: run "
                         "`make errors-page`")
    elif sys.argv[1:2] == ["missing"] and len(sys.argv) in (3, 4):
        if missing(found, foreign, sys.argv[2], (sys.argv[3:] or [None])[0]):
            sys.exit(1)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
