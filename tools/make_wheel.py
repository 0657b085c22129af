#!/usr/bin/env python3
"""Makes the wheel from a build folder and prints its path.

usage: make_wheel.py BUILD_FOLDER [OUT_FOLDER]

Written by hand because a wheel is a zip of a few files: no build back end, no
network.  The same inputs give the same bytes.  The tag says what the libraries
need: a portable build (meson_options.txt) runs on every Linux of its glibc or
a newer one, any other on this machine only, which `linux_x86_64` says.
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = "sundog"
with open(os.path.join(TOP, "python", NAME, "__init__.py")) as f:
    VERSION = re.search(r'^__version__ = "(.*)"$', f.read(), re.M).group(1)
BINARIES = {"libsundog.so": "libsundog.so", "sundog": "tools/sundog",
            "libsundog-compiler.so": "libsundog-compiler.so"}
GLIBC = (2, 28)  # the oldest that a portable build loads on
OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
            "ld-linux-x86-64.so.2"}
# What a portable build holds of others, and where Debian keeps their licences.
INSIDE = {"llvm": "llvm-22-dev", "libstdcxx": "libstdc++-12-dev",
          "zlib": "zlib1g-dev", "zstd": "libzstd-dev"}
MOST_BYTES = 40e6


def needs(path):
    """The shared libraries that a file asks for, and the newest glibc."""
    text = subprocess.run(["readelf", "-dVW", path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    libraries = set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
    versions = re.findall(r"Name: GLIBC_([0-9.]+) ", text)
    return libraries, max(tuple(int(n) for n in v.split("."))
                          for v in versions)


def platform(build):
    for path in BINARIES.values():
        libraries, glibc = needs(os.path.join(build, path))
        if libraries - OF_GLIBC or glibc > GLIBC:
            return "linux_x86_64"
    return "manylinux_%d_%d_x86_64" % GLIBC


def licences(portable):
    yield "LICENSE", open(os.path.join(TOP, "LICENSE"), "rb").read()
    for name, package in INSIDE.items() if portable else ():
        yield (f"{name}.txt",
               open(f"/usr/share/doc/{package}/copyright", "rb").read())


def contents(build, tag):
    package = os.path.join(TOP, "python", NAME)
    for f in sorted(os.listdir(package)):
        if f.endswith(".py"):
            yield f"{NAME}/{f}", open(os.path.join(package, f), "rb").read()
    for name, path in BINARIES.items():
        yield f"{NAME}/{name}", open(os.path.join(build, path), "rb").read()
    info = f"{NAME}-{VERSION}.dist-info"
    readme = open(os.path.join(TOP, "README.md")).read()
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
        "Summary: An OpenXLA PJRT plugin in C\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n"
        + readme).encode()
    yield f"{info}/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: make_wheel.py\n"
        f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    yield f"{info}/entry_points.txt", (
        "[jax_plugins]\nxpu = sundog.jax_plugin\n\n"
        "[console_scripts]\nsundog = sundog.__main__:main\n").encode()
    for name, text in licences("manylinux" in tag):
        yield f"{info}/licenses/{name}", text


def remove_older(out):
    for f in os.listdir(out):
        if f.startswith(NAME + "-") and f.endswith(".whl"):
            os.remove(os.path.join(out, f))


def main(build, out):
    os.makedirs(out, exist_ok=True)
    remove_older(out)  # a build of the other kind has another name
    tag = "py3-none-" + platform(build)
    path = os.path.join(out, f"{NAME}-{VERSION}-{tag}.whl")
    record = f"{NAME}-{VERSION}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as z:
        def write(name, data):
            item = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            is_binary = os.path.basename(name) in BINARIES
            # "Regular file" too, or pip does not make it executable.
            item.external_attr = (0o100755 if is_binary else 0o100644) << 16
            item.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(item, data)
        for name, data in contents(build, tag):
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
            write(name, data)
        write(record, ("\n".join(lines) + f"\n{record},,\n").encode())
    if os.path.getsize(path) > MOST_BYTES:
        sys.exit(f"{path} has {os.path.getsize(path)} bytes, at most "
                 f"{MOST_BYTES:.0f} are wanted")
    print(path)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3
         else os.path.join(TOP, "dist"))
