"""What is done when a module is imported by somebody who uses it: importing it
for that alone would slow down every start."""
import importlib.abc
import importlib.util
import sys


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls back when a module that is slow to import has been imported by
    somebody who uses it."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self.then(module)
        spec.loader.exec_module = exec_module
        return spec


def after_import(name, then, *args):
    """then(module, *args), now if the module is there already."""
    if name in sys.modules:
        then(sys.modules[name], *args)
    else:
        sys.meta_path.insert(
            0, AfterImport(name, lambda module: then(module, *args)))
