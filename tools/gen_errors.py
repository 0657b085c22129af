#!/usr/bin/env python3
"""docs/errors.md: every message that the sources can give.

    gen_errors.py write [SEEN]   SEEN: what tests recorded (SUNDOG_ERRORS_SEEN)
    gen_errors.py check          is the page what the sources say?

A message begins in sd_error or in a function that hands a text of its caller's
on to it; those are found by reading the sources, so a new one needs no entry
here.  tests/errors_seen.txt keeps which messages a test has produced.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "errors.md")
SEEN = os.path.join(ROOT, "tests", "errors_seen.txt")

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
    "hlo": "HLO: the rules of its operations, its text, its protobuf, the evaluator. The instruction, JAX's name for it and its source line come with the message.",
    "passes": "The optimiser, and operations that it cannot lower.",
    "plan": "Planning kernels and memory.", "target": "Making machine code.",
    "thunk": "Programs of steps: building, saving, loading.",
    "xpu": "Devices, memory, execution, transfers, foreign functions.",
    "compile": "The road of a compile as a whole.",
    "plugin": "The PJRT interface: what frameworks call.",
}
# maker -> (argument or code, argument of text); all but the first keep the text
# of the first failure, which somebody else makes the error of.
FIRST = {"sd_error": (0, 1), "sd_cursor_fail": ("SD_INVALID", 1),
         "hlo_fail": ("SD_INVALID", 1), "hlo_attr_want": ("SD_INVALID", 1),
         "vhlo_fail": (2, 3)}
TEXT = ("what", "expected", "fmt", "why", "word", "rule")


def sources():
    for top in ("src", "plugin"):
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path) as f:
                        text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
                    yield os.path.relpath(path, ROOT), text


def split_args(text, at):
    """The arguments of a call whose bracket opens before at; None: no end."""
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
                return out + [text[start:i].strip()]
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
        i += 1
    return None


def calls(text, name):
    for m in re.finditer(rf"(?<![\w#]){name}\(", text):
        args = split_args(text, m.end())
        if args:
            yield args


def functions(text):
    """(name, names of parameters, body) of each function that is defined."""
    for m in re.finditer(r"^[a-z_][\w \*]*?\b(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}",
                         text, re.S | re.M):
        names = [re.sub(r".*\W", "", p.strip())
                 for p in m.group(2).split(",")]
        yield m.group(1), names, m.group(3)


def find_makers(files):
    """Makers for all files, and those of one file (static ones may share
    names): a function that hands its own text on to a maker is one."""
    everywhere, local = dict(FIRST), {}
    for _ in range(4):
        for path, text in files:
            for name, params, body in functions(text):
                static = re.search(rf"^static [^;{{]*\b{name}\(", text, re.M)
                where = local.setdefault(path, {}) if static else everywhere
                if name in where or name == "sd_error_make":
                    continue
                known = {**everywhere, **local.get(path, {})}
                for maker, (code, _) in known.items():
                    for args in calls(body, maker):
                        own = [t for t in TEXT if t in params and
                               any(re.fullmatch(t, a) for a in args)]
                        if own:
                            c = args[code] if isinstance(code, int) else code
                            where[name] = (params.index(c) if c in params
                                           else c, params.index(own[0]))
        # hlo_bad and its like format their text before they hand it on
        for path, text in files:
            for name, params, body in functions(text):
                if name in everywhere or "fmt" not in params or \
                        name.startswith(("sd_", "test")):
                    continue
                made = list(calls(body, "sd_error"))
                if made and "va_start" in body:
                    c = made[0][0]
                    everywhere[name] = (params.index(c) if c in params else c,
                                        params.index("fmt"))
    return everywhere, local


def literals(arg):
    """The texts that an argument may be; numbers printed become <>."""
    arg = re.sub(r'"\s*PRI\w+\s*"', "d", arg)
    arg = re.sub(r'"\s*PRI\w+', 'd"', arg)
    for part in re.split(r"[?]|(?<!:):(?!:)(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", arg):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', part)
        if strings:
            s = "".join(strings)
            s = re.sub(r"%%", "\0", s)
            s = re.sub(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|t)?"
                       r"[diouxXeEfgGcsp]?", "<>", s).replace("\0", "%")
            yield s.replace('\\"', '"').replace("\\n", " ").replace("\\t", " ")


def room_of(path):
    parts = path.split("/")
    return parts[0] if parts[0] == "plugin" else (
        parts[1] if len(parts) > 2 else "compile")


def messages():
    """{(room, code, text): files}"""
    files = list(sources())
    everywhere, local = find_makers(files)
    out = {}
    for path, text in files:
        makers = {**everywhere, **local.get(path, {})}
        for maker, (code, at) in makers.items():
            for args in calls(text, maker):
                if len(args) <= at:
                    continue
                c = args[code] if isinstance(code, int) else code
                for name in re.findall(r"SD_[A-Z_]+", c) or ["SD_INVALID"]:
                    for s in literals(args[at]):
                        if name in CODES and re.search(r"\w{2}", s.replace("<>", "")):
                            out.setdefault((room_of(path), name, s),
                                           set()).add(path)
    return out


def matcher(text):
    return re.compile(".*".join(re.escape(p) for p in text.split("<>")), re.S)


def note_seen(found, path):
    with open(path, errors="replace") as f:
        said = set(f.read().split("\0"))
    whole = "\0".join(said)
    seen = {k for k in found
            if re.search(re.sub(r"\.\*", "[^\\0]*", matcher(k[2]).pattern),
                         whole)}
    with open(SEEN, "w") as f:
        f.write("# What tests have produced; written by `make errors`.\n")
        f.writelines("\t".join(k) + "\n" for k in sorted(seen))


def page(found):
    with open(SEEN) as f:
        seen = {tuple(l.rstrip("\n").split("\t")) for l in f if l[0] != "#"}
    keys = sorted(found)
    tested = sum(k in seen for k in keys)
    out = ["# Messages", "",
           "Made by `make errors` from the sources; `<>` is where a name, a number or a shape stands. A message is often the end of a longer one: what was being",
           f"done comes before it. {len(keys)} messages; *tested*: one of the C tests produces it ({tested}; the others are mostly reached by fuzzing, or need a machine that fails).",
           "", "## What a code means, and what to do", "",
           "| code | cause | what to do |", "|---|---|---|"]
    used = {k[1] for k in keys}
    out += [f"| `{n}` | {c} | {d} |" for s, (n, c, d) in CODES.items()
            if s in used]
    for room in ROOMS:
        mine = [k for k in keys if k[0] == room]
        if not mine:
            continue
        out += ["", f"## {room}", "", ROOMS[room], "",
                "| code | message | tested | from |", "|---|---|---|---|"]
        for k in sorted(mine, key=lambda k: (k[1], k[2])):
            text = k[2].replace("|", "\\|").replace("`", "'").strip()
            files = ", ".join(sorted(os.path.basename(p) for p in found[k]))
            out.append(f"| {CODES[k[1]][0]} | `{text}` | "
                       f"{'yes' if k in seen else ''} | {files} |")
    return "\n".join(out) + "\n"


def main():
    found = messages()
    if sys.argv[1:2] == ["write"]:
        if len(sys.argv) > 2:
            note_seen(found, sys.argv[2])
        with open(PAGE, "w") as f:
            f.write(page(found))
    elif sys.argv[1:] == ["check"]:
        with open(PAGE) as f:
            if f.read() != page(found):
                sys.exit("docs/errors.md is not what the sources say: run "
                         "`make errors-page`")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
