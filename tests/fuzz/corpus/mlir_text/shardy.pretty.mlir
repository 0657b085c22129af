#loc3 = loc("-":4:26)
#loc6 = loc("-":8:10)
#loc8 = loc("-":11:12)
#loc9 = loc("-":11:29)
module @jit_shardy {
  sdy.mesh @mesh = <["i"=1]> loc(#loc1)
  func.func public @main(%arg0: tensor<4x6xf32> loc("-":4:26)) -> tensor<4x6xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"i"}, {}]> : tensor<4x6xf32> loc(#loc4)
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"i"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"i"} (%arg1: tensor<4x6xf32> loc("-":8:10)) {
      %2 = "stablehlo.all_reduce"(%arg1) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
      ^bb0(%arg2: tensor<f32> loc("-":11:12), %arg3: tensor<f32> loc("-":11:29)):
        %3 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc10)
        stablehlo.return %3 : tensor<f32> loc(#loc11)
      }) : (tensor<4x6xf32>) -> tensor<4x6xf32> loc(#loc7)
      sdy.return %2 : tensor<4x6xf32> loc(#loc12)
    } : (tensor<4x6xf32>) -> tensor<4x6xf32> loc(#loc5)
    return %1 : tensor<4x6xf32> loc(#loc13)
  } loc(#loc2)
} loc(#loc)
#loc = loc("-":2:1)
#loc1 = loc("-":3:3)
#loc2 = loc("-":4:3)
#loc4 = loc("-":5:10)
#loc5 = loc("-":6:10)
#loc7 = loc("-":9:12)
#loc10 = loc("-":12:14)
#loc11 = loc("-":13:9)
#loc12 = loc("-":15:7)
#loc13 = loc("-":17:5)
