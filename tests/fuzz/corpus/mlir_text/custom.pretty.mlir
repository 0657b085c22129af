#loc2 = loc("-":3:26)
module @jit_custom {
  func.func public @main(%arg0: tensor<4x6xf32> loc("-":3:26)) -> tensor<4x6xf32> {
    %0:2 = stablehlo.custom_call @target(%arg0) {has_side_effect = true, mhlo.backend_config = {a = -1 : i64, b = true, c = 2.500000e+00 : f32, d = array<i64: 1, -2>, e = ["q\\22", 76 : ui8], f = dense<[1, 2]> : tensor<2xi32>}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>]} : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<3xi32>) loc(#loc3)
    return %0#0 : tensor<4x6xf32> loc(#loc4)
  } loc(#loc1)
} loc(#loc)
#loc = loc("-":2:1)
#loc1 = loc("-":3:3)
#loc3 = loc("-":4:12)
#loc4 = loc("-":16:5)
