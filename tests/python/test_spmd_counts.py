"""What a training step moves between eight devices, held to formulas written by
hand from how the step is cut, not from what Sundog does: collectives by kind and
the bytes that go in (what comes out of a gather)."""
import os
import re
import subprocess
import sys
from collections import Counter
from math import prod

import pytest

import environment

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TOOL = os.path.join(TOP, "build/release/tools/sundog")
KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all",
         "collective-permute", "collective-broadcast")
BYTES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "bf16": 2, "f64": 8,
         "c64": 8}


def lower(script, path):
    r = subprocess.run([sys.executable, os.path.join(HERE, script), path],
                       env=environment.bare(), capture_output=True, text=True,
                       timeout=300)
    assert r.returncode == 0, r.stderr[-3000:]
    return path


@pytest.fixture(scope="module")
def lowered(tmp_path_factory):
    return lower("spmd_steps.py", tmp_path_factory.mktemp("steps"))


def bytes_of(shapes):
    return sum(BYTES[t] * prod(int(d) for d in dims.split(",") if d)
               for t, dims in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", shapes))


def moved(path, name, turns=1):
    """{kind: (how many, bytes)} of the program that each device runs, with loops
    of so many turns."""
    r = subprocess.run([TOOL, "spmd", os.path.join(path, name + ".mlir")],
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr
    count, size, shape = Counter(), Counter(), {}
    for line in r.stdout.splitlines():
        if line.endswith("{"):
            times = 1 if line.startswith("ENTRY") else turns
        m = re.match(r"\s*(?:ROOT )?%(\S+) = (.*?) ([a-z-]+)\((.*?)\)", line)
        if not m:
            continue
        shape[m[1]] = m[2]
        if m[3] in KINDS:
            sent = m[2] if m[3] == "all-gather" else " ".join(
                shape[x] for x in re.findall(r"%([^\s,]+)", m[4]))
            count[m[3]] += times
            size[m[3]] += times * bytes_of(sent)
    return {k: (count[k], size[k]) for k in count}


def check(path, name):
    r = subprocess.run([TOOL, "spmd", "--check",
                        os.path.join(path, name + ".mlir")],
                       capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr


# An MLP of two layers: w1 [32, 64], b1, w2 [64, 16], b2; a batch of 64.
W1, B1, W2, B2, LOSS = 32 * 64, 64, 64 * 16, 16, 1


def test_data_parallel(lowered):
    """Each device has all parameters: all gradients and the loss meet once."""
    check(lowered, "dp")
    assert moved(lowered, "dp") == {
        "all-reduce": (1, 4 * (W1 + B1 + W2 + B2 + LOSS))}


def test_convolutions_data_parallel(lowered):
    """The gradients of kernels are sums over the batch, too, and so are those
    of a kernel of one feature each."""
    check(lowered, "conv_dp")
    assert moved(lowered, "conv_dp") == {
        "all-reduce": (1, 4 * (9 * 3 * 16 + 9 * 16 * 24 + 9 * 24 + 24 * 10 + LOSS))}


def test_convolutions_in_space(lowered):
    """Of an image of 64 rows in eight parts a window of 3 needs a row of each
    neighbour, of 16 columns and 3 features; pooling by two nothing; a window of
    5 with stride 2 a row from above and two from below, of 8 columns and 8
    features.  Two images."""
    check(lowered, "conv_space")
    assert moved(lowered, "conv_space") == {
        "collective-permute": (4, 4 * 2 * (2 * 16 * 3 + 3 * 8 * 8))}


def test_what_goes_across_parts(lowered):
    """Only a window that reaches over all of the image is computed whole; of a
    running sum each needs what the others' parts come to."""
    check(lowered, "across")
    assert moved(lowered, "across")["all-gather"] == (
        2, 4 * 64 * 6 + 4 * 8 * 6)


# Along the 64 rows of an array of 16 columns.
ROWS, COLUMNS = 64, 16
ALL, ENDS = 4 * ROWS * COLUMNS, 4 * 8 * COLUMNS


def test_running_sums(lowered):
    """Of each what the parts come to is gathered; x[1:] goes one row on, once.
    Of the parts of 63 rows the maxima meet."""
    check(lowered, "running")
    assert moved(lowered, "running") == {
        "all-gather": (6, 6 * ENDS), "collective-permute": (1, 4 * COLUMNS),
        "all-reduce": (1, 2 * 4 * COLUMNS)}


def test_sorts_of_a_cut_dimension(lowered):
    """The cut goes to the columns, keys alone or keys and places, and what is
    given as it came goes back; the four greatest of each are gathered."""
    check(lowered, "ordered")
    assert moved(lowered, "ordered") == {
        "all-to-all": (5, 5 * ALL // 8),
        "all-gather": (2, 2 * 4 * 4 * COLUMNS)}


def test_transforms_of_a_cut_dimension(lowered):
    """There once, as complex numbers; the result stays in those parts."""
    check(lowered, "spectrum")
    assert moved(lowered, "spectrum") == {"all-to-all": (1, 2 * ALL // 8)}


def test_transforms_of_two_dimensions(lowered):
    """Rows are whole; for the columns the cut goes over to the rows."""
    check(lowered, "spectrum_2d")
    assert moved(lowered, "spectrum_2d") == {"all-to-all": (1, 2 * ALL // 8)}


@pytest.mark.parametrize("name", ["solved", "added_to_rows"])
def test_nothing_moves(lowered, name):
    """Right sides are solved for by themselves, and who has a row adds to it."""
    check(lowered, name)
    assert moved(lowered, name) == {}


def test_greatest_of_a_cut_dimension(lowered):
    """Values and places of each part's greatest and least."""
    check(lowered, "greatest")
    assert moved(lowered, "greatest") == {"all-gather": (4, 4 * ENDS)}


def test_rows_by_number(lowered):
    """Twelve rows of a table in eight parts: a sum in which all but one are
    nothing."""
    check(lowered, "looked_up")
    assert moved(lowered, "looked_up") == {"all-reduce": (1, 4 * 12 * COLUMNS)}


def test_slices_at_a_variable(lowered):
    """Four rows are written by who has them, and two are read."""
    check(lowered, "cache")
    assert moved(lowered, "cache") == {"all-reduce": (1, 4 * 2 * COLUMNS)}


@pytest.mark.parametrize("name,rows", [
    ("rolled", [1, 1, 3, 3]),  # what moves on, and what comes round
    ("shifted", [1]),
    # parts of 16 rows out of parts of 8: each half's come from up to four
    # other places
    ("joined", [8] * 8),
])
def test_put_beside_each_other(lowered, name, rows):
    check(lowered, name)
    assert moved(lowered, name) == {
        "collective-permute": (len(rows), 4 * 6 * sum(rows))}


def test_differences_of_rows(lowered):
    """63 rows are in parts of 8, too: each needs a row of the next, and what
    lies behind the last is not summed."""
    check(lowered, "differences")
    assert moved(lowered, "differences") == {
        "collective-permute": (1, 4 * 6), "all-reduce": (1, 4)}


def test_a_few_rows_are_sent(lowered):
    """The first row by who has it, one element each of the last two."""
    check(lowered, "ends")
    assert moved(lowered, "ends") == {
        "collective-broadcast": (2, 4 * (6 + 2 * 6))}


def test_stencil_in_a_loop(lowered):
    """62 rows of the inside: what is in the middle comes from one row further
    on, what is below from two; the result goes one row back, without the two
    columns of the border."""
    check(lowered, "heat")
    assert moved(lowered, "heat", 10) == {
        "collective-permute": (3 * 10, 10 * 4 * (6 + 2 * 6 + 4))}


def test_constraints_that_do_not_divide(lowered):
    """67 rows over eight: sums, maxima and products of rows are of those that
    there are."""
    check(lowered, "uneven")
    assert moved(lowered, "uneven") == {
        "all-reduce": (3, 4 * (6 * 6 + 6 + 6))}


def test_fully_sharded(lowered):
    """Each parameter is gathered once (the second layer's weight serves forward
    and backward), each gradient is summed in shares, and the loss meets."""
    check(lowered, "fsdp")
    assert moved(lowered, "fsdp") == {
        "all-gather": (4, 4 * (W1 + B1 + W2 + B2)),
        "reduce-scatter": (4, 4 * (W1 + B1 + W2 + B2)),
        "all-reduce": (1, 4 * LOSS)}


def test_tensor_parallel(lowered):
    """The second layer's halves are summed for a quarter of the batch over the
    two that have them; then all gradients and the loss over the four, halves of
    all but the last bias."""
    check(lowered, "tp")
    assert moved(lowered, "tp") == {
        "all-reduce": (2, 4 * (64 // 4 * 16 + (W1 + B1 + W2) // 2 + B2 + LOSS))}


def test_fully_sharded_by_hand(lowered):
    """Weights are gathered along the manual axis in halves, as they are cut along
    the automatic one, and gradients summed in shares so; the halves of the second
    layer's product meet."""
    check(lowered, "manual_fsdp")
    assert moved(lowered, "manual_fsdp") == {
        "all-gather": (2, 4 * (W1 + W2) // 2),
        "reduce-scatter": (2, 4 * (W1 + W2) // 2),
        "all-reduce": (1, 4 * (64 // 4 * 16))}


def test_moved_parts(lowered):
    """[x, y] to [, x]: y is gathered before x changes its dimension.  Then two
    that follow each other; parts that are others' parts, which are sent; and what
    is sliced before it is gathered or exchanged."""
    check(lowered, "moved_parts")
    a = 4 * 64 * 16 * 8
    assert moved(lowered, "moved_parts") == {
        "all-gather": (2, a // 4 + a // 4),
        "all-to-all": (4, a // 4 + a // 8 + a // 8 + a // 8),
        "collective-permute": (1, a // 8)}


# Six layers h + tanh(h @ a) @ b in a scan: a [6, 32, 64], b [6, 64, 32]; h is
# [64, 32].
LAYERS, WEIGHT, STATE = 6, 32 * 64, 64 * 32


def test_data_parallel_scan(lowered):
    """All layers' gradients and the loss meet once, behind the scans."""
    check(lowered, "scan_dp")
    assert moved(lowered, "scan_dp", LAYERS) == {
        "all-reduce": (1, 4 * (LAYERS * 2 * WEIGHT + LOSS))}


def test_fully_sharded_scan(lowered):
    """Each layer's two weights are gathered in its turns forward and backward,
    its gradients are summed in shares, and the loss meets once."""
    check(lowered, "scan_fsdp")
    assert moved(lowered, "scan_fsdp", LAYERS) == {
        "all-gather": (4 * LAYERS, 4 * LAYERS * 4 * WEIGHT),
        "reduce-scatter": (2 * LAYERS, 4 * LAYERS * 2 * WEIGHT),
        "all-reduce": (1, 4 * LOSS)}


def test_tensor_parallel_scan(lowered):
    """Of each layer the state of a quarter of the batch is summed over the two
    that have half of the layer each, forward and backward; the gradients of all
    halves and the loss once over the four that have other data."""
    check(lowered, "scan_tp")
    assert moved(lowered, "scan_tp", LAYERS) == {
        "all-reduce": (2 * LAYERS + 1, 4 * (
            LAYERS * (2 * STATE // 4 + 2 * WEIGHT // 2) + LOSS))}


def test_accumulated_gradients(lowered):
    """Of four parts of a batch the losses meet in their turns, and the gradients
    once, behind them."""
    check(lowered, "accumulated")
    assert moved(lowered, "accumulated", 4) == {
        "all-reduce": (4 + 1, 4 * (4 * LOSS + 32 * 16))}


# Three layers of a transformer of width 32 with 40 words and Adam: q, k, v, o
# [32, 4, 8], up and down [32, 64], a norm's scale; 16 sequences of 8.
DEPTH, NORM, EMBED = 3, 32, 40 * 32
MATRICES = 4 * 32 * 32 + 2 * 32 * 64
SEQUENCES = 16 * 8 * 32


def test_transformer_data_parallel(lowered):
    check(lowered, "transformer_dp")
    assert moved(lowered, "transformer_dp") == {
        "all-reduce": (1, 4 * (DEPTH * (MATRICES + NORM) + EMBED + LOSS))}


def test_transformer_fully_sharded(lowered):
    """Seven arrays a layer and the embedding, which the first and the last layer
    share, are gathered once; their gradients are summed in shares."""
    check(lowered, "transformer_fsdp")
    all = 4 * (DEPTH * (MATRICES + NORM) + EMBED)
    assert moved(lowered, "transformer_fsdp") == {
        "all-gather": (7 * DEPTH + 1, all),
        "reduce-scatter": (7 * DEPTH + 1, all), "all-reduce": (1, 4 * LOSS)}


def test_transformer_tensor_parallel(lowered):
    """Attention and MLP are summed once each forward and once each backward,
    for a quarter of the sequences over two; all gradients meet once over four."""
    check(lowered, "transformer_tp")
    assert moved(lowered, "transformer_tp") == {
        "all-reduce": (4 * DEPTH + 1, 4 * (
            4 * DEPTH * SEQUENCES // 4 + DEPTH * (MATRICES // 2 + NORM)
            + EMBED + LOSS))}


def test_mixture_of_experts(lowered):
    """Tokens go to their experts and back, and so do what comes back's
    gradients, to the experts; what a device sends is its own eighth, [16 experts,
    8 groups, 4 places, 32].  The router's gradient and the loss meet."""
    check(lowered, "moe")
    assert moved(lowered, "moe") == {
        "all-to-all": (3, 3 * 4 * 16 * 8 * 4 * 32 // 8),
        "all-reduce": (1, 4 * (32 * 16 + LOSS))}


def test_gpt3_over_256_devices(tmp_path):
    """96 layers of width 12,288, scanned and made again backward, on 32 x 8
    devices, on paper alone: each has the sequences of 8 of 256 and an eighth of
    every layer.  Forward the states of a layer are summed twice over eight, made
    again once and backward twice; six gradients of all layers, the embedding's
    and the loss over the 32 that have other sequences."""
    lower("spmd_gpt3.py", tmp_path / "gpt3.mlir")
    layers, width, words = 96, 12288, 50304
    state = 256 // 32 * 2048 * width
    assert moved(tmp_path, "gpt3", layers) == {"all-reduce": (
        layers * 5 + 6 + 2,
        4 * (layers * (5 * state + 12 * width ** 2 // 8) + words * width
             + LOSS))}
    text = subprocess.run([TOOL, "spmd", tmp_path / "gpt3.mlir"],
                          capture_output=True, text=True).stdout
    carried = " ".join(x for x in text.splitlines() if x.startswith("%body"))
    assert "pred[8,12,2048,2048]" in carried  # the mask
    assert "[256,96,2048,2048]" not in carried


def test_random_programs_cut_are_what_they_are_uncut():
    r = subprocess.run([TOOL, "spmd", "--random=1500", "--seed=1"],
                       capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r.stdout[-3000:]
    assert " 0 wrong" in r.stdout
