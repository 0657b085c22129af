"""`sundog` and `python -m sundog`: the command-line tool, which needs neither
Python nor JAX; `sundog selftest` tells what a device does right."""
import os
import sys

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sundog")


def main():
    if sys.prefix != sys.base_prefix:  # where Intel's runtime for CPUs may be
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    os.execv(TOOL, ["sundog", *sys.argv[1:]])


if __name__ == "__main__":
    main()
