// error: stablehlo.sort (-:2): no operands, where one at least should be
func.func @main() {
  "stablehlo.sort"() <{dimension = 0 : i64, is_stable = true}> ({
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : () -> ()
  return
}
// -----
// error: stablehlo.reduce_window (-:3): window_strides has 1 entries, not 2
func.func @main(%a: tensor<4x4xf32>) -> tensor<3x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x4xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}
// -----
// error: stablehlo.reduce (-:3): region 0 has no block
func.func @main(%a: tensor<4xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 0>}> ({
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.dot_general (-:2): precision_config: 3 integers where at most 2 should be
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>, #stablehlo<precision HIGH>]}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// error: stablehlo.dot_general (-:2): precision_config holds 5, which should be 0 to 2
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [5 : i32]}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.dot_general (-:2): algorithm dot_f16_f16_f64_x2_fast_accum: it is none of XLA's
func.func @main(%a: tensor<2x2xf16>) -> tensor<2x2xf16> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = f16, rhs_precision_type = f16, accumulation_type = f64, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 2, allow_imprecise_accumulation = true> : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  return %0 : tensor<2x2xf16>
}
// -----
// error: stablehlo.convolution (-:2): input, kernel and output have 1, 2 and 1 spatial dimensions
func.func @main(%a: tensor<1x2x5xf32>, %k: tensor<3x2x2x2xf32>) -> tensor<1x3x4xf32> {
  %0 = "stablehlo.convolution"(%a, %k) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0, 1]->[b, f, 0]>}> : (tensor<1x2x5xf32>, tensor<3x2x2x2xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}
// -----
// error: stablehlo.convolution (-:2): spatial dimension 3 of a kernel of rank 3
func.func @main(%a: tensor<1x2x5x5xf32>, %k: tensor<3x2x2xf32>) -> tensor<1x3x4x4xf32> {
  %0 = "stablehlo.convolution"(%a, %k) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>}> : (tensor<1x2x5x5xf32>, tensor<3x2x2xf32>) -> tensor<1x3x4x4xf32>
  return %0 : tensor<1x3x4x4xf32>
}
// -----
// error: stablehlo.dynamic_conv (-:3): operand 2 has 1 entries, not 2
func.func @main(%a: tensor<1x2x5xf32>, %k: tensor<3x2x2xf32>) -> tensor<1x3x4xf32> {
  %p = stablehlo.constant dense<[[0]]> : tensor<1x1xi64>
  %0 = "stablehlo.dynamic_conv"(%a, %k, %p) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>}> : (tensor<1x2x5xf32>, tensor<3x2x2xf32>, tensor<1x1xi64>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}
