// error: the program has no function main
func.func @helper(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
// -----
// error: func.func (-:2): a second function main
func.func @main() { return }
func.func @main() { return }
// -----
// error: func.func (-:1): no attribute sym_name
"func.func"() <{function_type = () -> ()}> ({
  func.return
}) : () -> ()
// -----
// error: func.func (-:1): 0 operands, 0 results, 2 regions, where 0, 0, 1 should be
"func.func"() <{function_type = () -> (), sym_name = "main"}> ({
  func.return
}, {
  func.return
}) : () -> ()
// -----
// code: UNIMPLEMENTED
// error: stablehlo.create_token (-:1): it stands in a module beside functions
%t = stablehlo.create_token : !stablehlo.token
func.func @main() { return }
// -----
// error: sdy.mesh (-:1): no attribute mesh
"sdy.mesh"() <{sym_name = "m"}> : () -> ()
func.func @main() { return }
// -----
// error: mhlo.num_replicas is 0, which should be 1 to 1048576
module attributes {mhlo.num_replicas = 0 : i32} {
  func.func @main() { return }
}
// -----
// error: sharding "{m = #sdy.mesh<["x"=2, "y"]>}": '=' should be at "]>}"
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2, "y"]>
  func.func @main() { return }
}
// -----
// error: func.func (-:1): parameter 0 aliases output 1 of 1
func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
// -----
// code: UNIMPLEMENTED
// error: func.func (-:1): layout {1,0:T(8,128)} of an array of 2 dimensions: orders of all dimensions are done, tiles are not
func.func @main(%a: tensor<2x3xf32> {mhlo.layout_mode = "{1,0:T(8,128)}"}) -> tensor<2x3xf32> {
  return %a : tensor<2x3xf32>
}
// -----
// code: UNIMPLEMENTED
// error: func.func (-:1): layout {0} of an array of 2 dimensions
func.func @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32> {mhlo.layout_mode = "{0}"}) {
  return %a : tensor<2x3xf32>
}
// -----
// code: UNIMPLEMENTED
// error: not supported: stablehlo.uniform_quantize (jit(f)/quantize, model.py:7)
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.uniform_quantize"(%a) : (tensor<f32>) -> tensor<f32> loc("jit(f)/quantize"("model.py":7:1))
  return %0 : tensor<f32>
}
// -----
// code: UNIMPLEMENTED
// error: not supported: my.op (-:2)
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "my.op"(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
