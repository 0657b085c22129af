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
