"""Our StableHLO text, judged by jaxlib: every 40th of JAX's primitive programs
(tests/conform/text.py has the judge; make conform-text asks for all)."""
import os
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "conform"))


def test_jaxlib_prints_our_text_as_the_original(tmp_path):
    import text
    a = text.arguments(["--every", "40", "--artifacts", str(tmp_path)])
    count, misses = text.run(a)
    assert not misses, misses[:5]
    for kind in text.KINDS:
        assert count[kind, "ok"] > 150, text.report(count)
