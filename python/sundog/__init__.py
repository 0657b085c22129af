"""Sundog: an OpenXLA PJRT plugin.  JAX finds it through the entry point group
`jax_plugins`; this module only tells where the libraries are."""
import os

__version__ = "0.1.0"


def library():
    """The path of the PJRT plugin, libsundog.so."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "libsundog.so")
    return os.environ.get("SUNDOG_LIBRARY", path)
