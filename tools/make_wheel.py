#!/usr/bin/env python3
"""Makes the wheel from a build folder and prints its path.

usage: make_wheel.py BUILD_FOLDER [OUT_FOLDER]

Written by hand because a wheel is a zip of a few files: no build back end, no
network.  The same inputs give the same bytes.
"""
import base64
import hashlib
import os
import sys
import zipfile

NAME, VERSION = "sundog", "0.1.0"
TAG = "py3-none-manylinux_2_36_x86_64"
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = ("libsundog.so", "libsundog-compiler.so")


def contents(build):
    package = os.path.join(TOP, "python", NAME)
    for f in sorted(os.listdir(package)):
        if f.endswith(".py"):
            yield f"{NAME}/{f}", open(os.path.join(package, f), "rb").read()
    for lib in LIBRARIES:
        yield f"{NAME}/{lib}", open(os.path.join(build, lib), "rb").read()
    info = f"{NAME}-{VERSION}.dist-info"
    readme = open(os.path.join(TOP, "README.md")).read()
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"
        "Summary: An OpenXLA PJRT plugin in C\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.10\nDescription-Content-Type: text/markdown\n\n"
        + readme).encode()
    yield f"{info}/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: make_wheel.py\n"
        f"Root-Is-Purelib: false\nTag: {TAG}\n").encode()
    yield f"{info}/entry_points.txt", (
        "[jax_plugins]\nxpu = sundog.jax_plugin\n").encode()
    yield f"{info}/licenses/LICENSE", open(os.path.join(TOP, "LICENSE"),
                                           "rb").read()


def main(build, out):
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"{NAME}-{VERSION}-{TAG}.whl")
    record = f"{NAME}-{VERSION}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        def write(name, data):
            item = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            item.external_attr = (0o755 if name.endswith(".so")
                                  else 0o644) << 16
            item.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(item, data)
        for name, data in contents(build):
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
            write(name, data)
        write(record, ("\n".join(lines) + f"\n{record},,\n").encode())
    print(path)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3
         else os.path.join(TOP, "dist"))
