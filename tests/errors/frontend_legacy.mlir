// code: UNIMPLEMENTED
// error: stablehlo.einsum (-:2): config "ii,ij->ij": what is read is "ij,jk->ik", each letter once in a term
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.einsum %a, %a, config = "ii,ij->ij" : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.unary_einsum (-:2): config "...i->i": what is read is "ij->j"
func.func @main(%a: tensor<2x2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.unary_einsum %a, config = "...i->i" : (tensor<2x2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: stablehlo.einsum (-:2): einsum_config: an integer where a string should be
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.einsum"(%a, %a) <{einsum_config = 1 : i32}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// error: stablehlo.einsum (-:2): config "ijk,jk->ik" names 3 dimensions of operand 0, which has 2
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.einsum %a, %a, config = "ijk,jk->ik" : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
// error: stablehlo.einsum (-:2): a letter of the config stands for dimensions of two sizes
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.einsum %a, %b, config = "ij,jk->ik" : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.einsum (-:2): the config gives a result of other dimensions than the declared 2
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.einsum %a, %b, config = "ij,jk->ik" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
// error: stablehlo.torch_index_select (-:2): dimension 2 behind 0 batch dimensions of operands of rank 2 and 1
func.func @main(%a: tensor<4x3xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.torch_index_select"(%a, %i) <{batch_dims = 0 : i64, dim = 2 : i64}> : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
