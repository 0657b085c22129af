// error: stablehlo.constant (-:2): a constant of type token, which should be a tensor
func.func @main() -> !stablehlo.token {
  %0 = "stablehlo.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> !stablehlo.token
  return %0 : !stablehlo.token
}
// -----
// error: stablehlo.constant (-:2): no attribute value
func.func @main() -> tensor<f32> {
  %0 = "stablehlo.constant"() : () -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.constant (-:2): a string where dense elements should be
func.func @main() -> tensor<f32> {
  %0 = "stablehlo.constant"() <{value = "one"}> : () -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.constant (-:2): 4 bytes for a constant of 2 elements of u8
func.func @main() -> tensor<2xui8> {
  %0 = stablehlo.constant dense<"0x01020304"> : tensor<2xui8>
  return %0 : tensor<2xui8>
}
// -----
// error: stablehlo.compare (-:2): comparison_direction 0 and compare_type 3 do not fit f32
func.func @main(%a: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare EQ, %a, %a, SIGNED : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
// -----
// error: stablehlo.custom_call (-:2): api_version is 4294967297, which should be 0 to 4
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.custom_call"(%a) <{call_target_name = "Sharding", api_version = 4294967297 : i64}> : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.rng (-:3): rng_distribution is 77, which should be 1 to 2
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<4xf32> {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = "stablehlo.rng"(%a, %b, %s) <{rng_distribution = 77 : i64}> : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: stablehlo.rng_bit_generator (-:2): rng_algorithm is 7, which should be 0 to 2
func.func @main(%s: tensor<2xui64>) -> tensor<4xui32> {
  %0:2 = "stablehlo.rng_bit_generator"(%s) <{rng_algorithm = 7 : i64}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %0#1 : tensor<4xui32>
}
// -----
// error: stablehlo.fft (-:2): fft_type is 4, which should be 0 to 3
func.func @main(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "stablehlo.fft"(%a) <{fft_type = 4 : i64, fft_length = array<i64: 4>}> : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
// -----
// error: stablehlo.triangular_solve (-:2): transpose_a is 0, which should be 1 to 3
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE_INVALID>}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// error: stablehlo.reduce_precision (-:2): 0 exponent and 3 mantissa bits, which should be 1 to 64 and 0 to 64
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.reduce_precision"(%a) <{exponent_bits = 0 : i32, mantissa_bits = 3 : i32}> : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.triangular_solve (-:2): no attribute transpose_a
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// error: stablehlo.iota (-:2): iota_dimension: a string where an integer of at most 64 bits should be
func.func @main() -> tensor<3xf32> {
  %0 = "stablehlo.iota"() <{iota_dimension = "first"}> : () -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
// -----
// error: stablehlo.batch_norm_inference (-:2): epsilon: an integer where a float of at most 64 bits should be
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.batch_norm_inference"(%a, %b, %b, %b, %b) <{epsilon = 1 : i32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.transpose (-:2): permutation: dense elements where integers should be
func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.transpose"(%a) <{permutation = dense<[1.0, 0.0]> : tensor<2xf32>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
// -----
// error: stablehlo.transpose (-:2): permutation: 33 integers where at most 32 should be
func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.transpose"(%a) <{permutation = dense<0> : tensor<33xi64>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
