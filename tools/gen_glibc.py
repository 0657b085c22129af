#!/usr/bin/env python3
"""Makes a folder to link against, in which glibc is as old as you like.

usage: gen_glibc.py CC VERSION OUT_FOLDER

A library that is linked on a new system asks for the newest version of each
symbol and does not load on an older one, though glibc still has the versions
of old.  So what we ship is linked against libraries without code that offer,
of each symbol of this machine's glibc, the newest version that VERSION had.
What VERSION had not at all is missing: src/glibc.c has what is needed of it.
libpthread and libdl are empty, as they are in a newer glibc: of an older one
they hold some of what libc offers here, so they must be asked for by name.
"""
import os
import re
import subprocess
import sys

LIBRARIES = ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2")
EMPTY = ("libpthread.so.0", "libdl.so.2")
SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+ +(\d+) (FUNC|OBJECT|IFUNC|TLS) +"
                    r"(?:GLOBAL|WEAK) +DEFAULT +\d+ "
                    r"(\w+)@@?GLIBC_([0-9.]+)$")


def number(version):
    return tuple(int(n) for n in version.split("."))


def run(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def offered(path, most):
    """{name: (version, kind, size)}: the newest that is at most `most`."""
    found = {}
    for line in run("readelf", "-W", "--dyn-syms", path).splitlines():
        m = SYMBOL.match(line)
        if not m or number(m[4]) > most:
            continue
        size, kind, name, version = m.groups()
        if name not in found or number(found[name][0]) < number(version):
            found[name] = version, kind, size
    return found


def assembly(symbols):
    yield '.section .note.GNU-stack,"",@progbits'
    for section, flags, kinds in ((".text", "ax", ("FUNC", "IFUNC")),
                                  (".data", "aw", ("OBJECT",)),
                                  (".tdata", "awT", ("TLS",))):
        yield f'.section {section},"{flags}",@progbits'
        for i, (name, (version, kind, size)) in enumerate(symbols.items()):
            if kind in kinds:
                sort = {"OBJECT": "object", "TLS": "tls_object"}.get(
                    kind, "function")
                yield (f".globl s{i}\n.type s{i}, @{sort}\n"
                       f".size s{i}, {size}\ns{i}: .byte 0\n"
                       f".symver s{i}, {name}@@GLIBC_{version}")


def link(cc, out, soname, symbols):
    source, script = (os.path.join(out, soname + e) for e in (".s", ".map"))
    versions = sorted({v for v, _, _ in symbols.values()}, key=number)
    with open(source, "w") as f:
        f.write("\n".join(assembly(symbols)) + "\n")
    with open(script, "w") as f:  # s0, s1, ... are no names of glibc's
        f.write("".join(f"GLIBC_{v} {{ local: s[0-9]*; }};\n"
                        for v in versions) or "{ local: *; };\n")
    run(cc, "-shared", "-nostdlib", "-o", os.path.join(out, soname),
        f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}", source)


def main(cc, version, out):
    os.makedirs(out, exist_ok=True)
    for soname in LIBRARIES:
        path = run(cc, f"-print-file-name={soname}").strip()
        link(cc, out, soname, offered(path, number(version)))
    for soname in EMPTY:
        link(cc, out, soname, {})
    # What cc asks for by -lc and its like; a part of libc is always static.
    static = run(cc, "-print-file-name=libc_nonshared.a").strip()
    for name, files in (("libc", f"{out}/libc.so.6 {static} "
                         f"{out}/ld-linux-x86-64.so.2"),
                        ("libm", f"{out}/libm.so.6"),
                        ("libpthread", f"{out}/libpthread.so.0"),
                        ("libdl", f"{out}/libdl.so.2")):
        with open(os.path.join(out, name + ".so"), "w") as f:
            f.write(f"GROUP ( {files} )\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3]))
