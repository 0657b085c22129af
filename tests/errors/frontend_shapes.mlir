// error: stablehlo.slice (-:2): 2 starts, 2 limits and 1 strides for an operand of rank 2
func.func @main(%a: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %0 = "stablehlo.slice"(%a) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 1>, strides = array<i64: 1>}> : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}
// -----
// error: stablehlo.pad (-:2): 1 low, 2 high and 2 interior paddings for an operand of rank 2
func.func @main(%a: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<2x3xf32> {
  %0 = stablehlo.pad %a, %v, low = [0], high = [0, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.broadcast_in_dim (-:2): broadcast_dimensions do not map rank 2 to 3
func.func @main(%a: tensor<2x3xf32>) -> tensor<4x2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 1] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}
// -----
// error: stablehlo.broadcast (-:2): the result has 1 dimensions, the operand 2
func.func @main(%a: tensor<2x3xf32>) -> tensor<2xf32> {
  %0 = stablehlo.broadcast %a, sizes = [] : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: stablehlo.get_dimension_size (-:2): dimension 2 of 2 has no size that an i32 holds
func.func @main(%a: tensor<2x3xf32>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %a, dim = 2 : (tensor<2x3xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}
// -----
// error: stablehlo.get_dimension_size (-:2): the result should be a tensor<i32>
func.func @main(%a: tensor<2x3xf32>) -> tensor<i64> {
  %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<2x3xf32>) -> tensor<i64>
  return %0 : tensor<i64>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.set_dimension_size (-:3): a size other than that of dimension 1
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %n = stablehlo.constant dense<2> : tensor<i32>
  %0 = stablehlo.set_dimension_size %a, %n, dim = 1 : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.dynamic_reshape (-:2): operand 1 decides a shape and is no constant
func.func @main(%a: tensor<6xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %a, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
// -----
// error: stablehlo.dynamic_reshape (-:3): operand 1 has 3 sizes for a result of rank 2
func.func @main(%a: tensor<6xf32>) -> tensor<?x?xf32> {
  %s = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = stablehlo.dynamic_reshape %a, %s : (tensor<6xf32>, tensor<3xi32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
// -----
// code: UNIMPLEMENTED
// error: argument 0 of main: dynamic dimension 1 of a tensor of rank 2: only sizes that are known
func.func @main(%a: tensor<2x?xf32>) -> tensor<2x?xf32> {
  return %a : tensor<2x?xf32>
}
// -----
// error: stablehlo.dynamic_iota (-:3): a result without an element type
func.func @main() -> tensor<?x!stablehlo.token> {
  %s = stablehlo.constant dense<[3]> : tensor<1xi32>
  %0 = "stablehlo.dynamic_iota"(%s) <{iota_dimension = 0 : i64}> : (tensor<1xi32>) -> tensor<?x!stablehlo.token>
  return %0 : tensor<?x!stablehlo.token>
}
