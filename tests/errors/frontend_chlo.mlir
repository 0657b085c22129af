// error: chlo.asin (-:2): gives f32[2], and its type says f32[3]
func.func @main(%a: tensor<2xf32>) -> tensor<3xf32> {
  %0 = chlo.asin %a : tensor<2xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// -----
// error: chlo.lgamma (-:2): of s32, which should be a float
func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {
  %0 = chlo.lgamma %a : tensor<2xi32> -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
// -----
// error: chlo.digamma (-:2): of c64, which should be a float
func.func @main(%a: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = chlo.digamma %a : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}
// -----
// error: chlo.is_inf (-:2): of s32, which should be a float
func.func @main(%a: tensor<2xi32>) -> tensor<2xi1> {
  %0 = chlo.is_inf %a : tensor<2xi32> -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
// -----
// error: chlo.mulhi (-:2): of s32[2] and s16[2], which should be integers of one shape
func.func @main(%a: tensor<2xi32>, %b: tensor<2xi16>) -> tensor<2xi32> {
  %0 = chlo.mulhi %a, %b : (tensor<2xi32>, tensor<2xi16>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
// -----
// code: UNIMPLEMENTED
// error: not supported: chlo.next_after (-:2): of f4e2m1fn and f4e2m1fn: floats of one type, with a sign and of a byte or more, are done
func.func @main(%a: tensor<2xf4E2M1FN>) -> tensor<2xf4E2M1FN> {
  %0 = chlo.next_after %a, %a : tensor<2xf4E2M1FN>, tensor<2xf4E2M1FN> -> tensor<2xf4E2M1FN>
  return %0 : tensor<2xf4E2M1FN>
}
// -----
// error: chlo.broadcast_add (-:2): broadcast_dimensions do not map rank 2 to 1
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %0 = chlo.broadcast_add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// -----
// error: chlo.ragged_dot (-:2): ragged_dot_dimension_numbers name a dimension that there is not, or one twice
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [1]>} : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): dimensions of lhs and rhs that belong together differ in number or in size
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x5x6xf32>, %c: tensor<3xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x5x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): one dimension of lhs should be ragged
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): rhs has groups only where lhs's are not contracted and no batch
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): rhs should have as many groups as there are sizes
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<2xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<2xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): the groups' sizes should be integers, for all alike or for each of what stands before the dimension
func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xf32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x6xf32>, tensor<3xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
// -----
// error: chlo.ragged_dot (-:2): operands should be arrays, with a dimension less than the most
func.func @main(%a: tensor<8x4x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>, %b: tensor<3x4x6xf32>, %c: tensor<3xi32>) -> tensor<8x6xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %c) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>, tensor<3x4x6xf32>, tensor<3xi32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
