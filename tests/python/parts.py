"""Several parts of a test in one process: each is tried, whatever became of
those before it."""
import textwrap


class Output:
    def __init__(self, text):
        self.part, name = {}, None
        for line in text.splitlines():
            if line.startswith("== "):
                name = line[3:]
            self.part.setdefault(name, []).append(line)

    def lines(self, part):
        """What the part printed; it must have come to its end."""
        lines = self.part[part]
        assert lines[-1] == "done", "\n".join(lines[-40:])
        return lines[1:-1]

    def oks(self, part):
        return [l.split()[1] for l in self.lines(part) if l.startswith("ok ")]


def run(python, head, parts, *args, **k):
    code = head + "\nimport sys, traceback\n"
    for name, text in parts.items():
        code += (f"print('== {name}', flush=True)\ntry:\n"
                 + textwrap.indent(text, "    ")
                 + "\n    print('done', flush=True)\nexcept BaseException:\n"
                 "    print(traceback.format_exc(), flush=True)\n")
    return Output(python(code, *args, **k))
