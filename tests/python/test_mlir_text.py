"""Our StableHLO text, judged by jaxlib: every 40th of JAX's primitive programs
(tests/conform/text.py has the judge; make conform-text asks for all)."""
import os
import subprocess
import sys

import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "conform"))


def test_jaxlib_prints_our_text_as_the_original(tmp_path):
    import text
    a = text.arguments(["--every", "40", "--artifacts", str(tmp_path)])
    count, misses = text.run(a)
    assert not misses, misses[:5]
    for kind in text.KINDS:
        assert count[kind, "ok"] > 150, text.report(count)


CHLO = {
    "compare": """
func.func @main(%a: tensor<2xf32>, %b: tensor<f32>) -> tensor<2xi1> {
  %0 = "chlo.broadcast_compare"(%a, %b) {
    comparison_direction = #chlo<comparison_direction LT>,
    compare_type = #chlo<comparison_type TOTALORDER>}
    : (tensor<2xf32>, tensor<f32>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}""",
    "ragged_dot": """
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xi32>)
    -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {
    precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>],
    ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
    : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}""",
}


@pytest.mark.parametrize("name", CHLO)
def test_jaxlib_reads_chlo_as_we_write_it(name, tmp_path):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo  # noqa: F401
    path = tmp_path / "a.mlir"
    path.write_text(CHLO[name])
    ours = subprocess.run([os.path.join(TOP, "build/release/tools/sundog"),
                           "mlir", path], capture_output=True, text=True)
    assert ours.returncode == 0, ours.stderr
    with mlir.make_ir_context():
        again, first = (ir.Module.parse(t) for t in (ours.stdout, CHLO[name]))
        assert again.operation.verify()

        def operation(module):
            (f,) = module.body.operations
            return {k: str(v) for k, v in
                    dict(f.entry_block.operations[0].attributes).items()}
        assert operation(again) == operation(first)
