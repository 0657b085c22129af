module @jit_loop attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<i32>) -> (tensor<i32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0:4 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %c, %iterArg_3 = %c_0) : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %iterArg_2, %iterArg, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %iterArg_2, %c_4 : tensor<i32>
      %2 = stablehlo.multiply %iterArg_3, %iterArg_1 : tensor<i32>
      %3 = stablehlo.add %2, %iterArg_2 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_1, %1, %3 : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
    }
    return %0#3 : tensor<i32>
  }
}
