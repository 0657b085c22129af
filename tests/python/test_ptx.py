"""What CUDA GPUs would get: assembled, never run here."""
import os
import re
import subprocess
import sys

import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_ptxas_takes_what_programs_become():
    done = subprocess.run(
        [sys.executable, os.path.join(TOP, "tests/ptx/ptx.py"), "--every=8"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    for chip in "sm_80", "sm_90", "sm_100":
        assert f"{chip}: " in done.stdout
    assert done.stdout.count(" kernels, 0 with spills") == 3, done.stdout


SMALL_PRODUCTS = """HloModule small

ENTRY e {
  x = f32[65536,4,4]{2,1,0} parameter(0)
  y = f32[65536,4,4]{2,1,0} parameter(1)
  ROOT z = f32[65536,4,4]{2,1,0} dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
}
"""


def ptx_of(text, tmp_path):
    (tmp_path / "program.hlo").write_text(text)
    subprocess.run([os.path.join(TOP, "build/release/tools/sundog"), "compile", "--target=cuda:sm_90",
                    "--out=" + str(tmp_path), str(tmp_path / "program.hlo")], check=True, capture_output=True)
    return next(tmp_path.glob("*.ptx")).read_text()


def test_an_item_reads_and_writes_neighbours_at_once(tmp_path):
    """A product of 4 x 4 is an item's, which took 48 accesses of 4 bytes for it."""
    text = ptx_of(SMALL_PRODUCTS, tmp_path)
    assert re.findall(r"(?:ld|st)\.global\S*", text).count("ld.global.nc.v4.b32") == 8
    assert re.findall(r"(?:ld|st)\.global\S*", text).count("st.global.v4.b32") == 4
    assert len(re.findall(r"(?:ld|st)\.global", text)) == 12


DEPTHWISE = """HloModule depthwise

ENTRY e {
  x = f32[64,56,56,256]{3,2,1,0} parameter(0)
  w = f32[3,3,1,256]{3,2,1,0} parameter(1)
  ROOT y = f32[64,56,56,256]{3,2,1,0} convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=256
}
"""


def test_neighbouring_results_of_a_window_read_an_element_once(tmp_path):
    """Four of them a row of six elements and three weights, not twelve and three."""
    text = ptx_of(DEPTHWISE, tmp_path)
    assert len(re.findall(r"ld\.global", text)) == text.count("ld.global.nc.v4.b32") == 9


@pytest.mark.parametrize("op", ["tanh", "logistic"])
def test_no_branch_for_a_divisor_of_which_the_size_is_known(op, tmp_path):
    """A call of tanh took 16 instructions more, and waited for a branch of its own."""
    text = ptx_of("HloModule f\n\nENTRY e {\n  x = f32[1048576]{0} parameter(0)\n"
                  f"  ROOT y = f32[1048576]{{0}} {op}(x)\n}}\n", tmp_path)
    assert not re.search(r"(?:div|rcp)\.rn", text)
    assert text.count("rcp.approx.ftz.f32") == 4


def test_ptxas_takes_the_runtimes_own_kernels(tmp_path):
    """Their text is written by hand, and what the driver does not take of it is done
    without: loops of graphs came back to the host for want of another name."""
    sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
    import ptx
    with open(os.path.join(TOP, "build/release/libsundog.so"), "rb") as f:
        texts = re.findall(rb"\.version [^\0]*\.entry sundog_[^\0]*", f.read())
    names = [n for t in texts for n in re.findall(rb"\.entry (\w+)", t)]
    assert {b"sundog_turn", b"sundog_branch", b"sundog_read1", b"sundog_meet", b"sundog_check"} <= set(names)
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.ptx").write_bytes(text)
        for chip in "sm_80", "sm_90", "sm_100":
            done = subprocess.run([ptx.find_ptxas(), "-c", "-arch=" + chip, "-o", os.devnull,
                                   str(tmp_path / f"{i}.ptx")], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def test_an_or_of_what_is_anded_is_seen():
    """ptx.py refuses each pair of the kind that ptxas gets wrong, or no program would show one."""
    sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
    import ptx
    head = "\t.reg .pred \t%p<9>;\n\tand.pred \t%p4, %p1, %p2;\n"
    assert ptx.paired_logic(head + "\tor.pred \t%p5, %p2, %p1;\n") == "or.pred %p5, %p2, %p1"
    assert ptx.paired_logic(head + "\tnot.pred \t%p3, %p2;\n\tor.pred \t%p5, %p3, %p1;\n")
    assert ptx.paired_logic(head + "\tmov.pred \t%p3, %p2;\n\tor.pred \t%p5, %p3, %p1;\n")
    assert not ptx.paired_logic(head + "\tor.pred \t%p5, %p3, %p1;\n")
    assert not ptx.paired_logic(head + "\t.reg .pred \t%p<9>;\n\tor.pred \t%p5, %p2, %p1;\n")


def test_no_two_truth_values_are_anded_and_ored():
    done = subprocess.run([sys.executable, os.path.join(TOP, "tests/ptx/ptx.py"), "--only", "^(truth|gamma_sign)"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    assert "2 of 2 programs" in done.stdout
