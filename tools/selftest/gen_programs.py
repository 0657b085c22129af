#!/usr/bin/env python3
"""Programs of the selftest as a table in C: usage gen_programs.py OUT FILE..."""
import os
import sys

with open(sys.argv[1], "w") as out:
    out.write("static const struct {\n    const char *name, *text;\n"
              "} selftest_text[] = {\n")
    for path in sys.argv[2:]:
        name = os.path.splitext(os.path.basename(path))[0]
        out.write(f'{{"{name}",\n')
        for line in open(path):
            text = line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'"{text}\\n"\n')
        out.write("},\n")
    out.write("};\n")
