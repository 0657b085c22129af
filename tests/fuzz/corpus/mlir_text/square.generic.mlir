#loc2 = loc("-":5:7)
"builtin.module"() <{sym_name = "jit_square"}> ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}], function_type = (tensor<4x6xf32>) -> tensor<4x6xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x6xf32> loc("-":5:7)):
    %0 = "stablehlo.multiply"(%arg0, %arg0) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32> loc(#loc9)
    "func.return"(%0) : (tensor<4x6xf32>) -> () loc(#loc5)
  }) : () -> () loc(#loc1)
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc = loc("-":2:1)
#loc1 = loc("-":4:3)
#loc3 = loc("model.py":12:3)
#loc4 = loc("run.py":3:1)
#loc5 = loc("-":10:5)
#loc6 = loc("square"(#loc3))
#loc7 = loc("main"(#loc4))
#loc8 = loc(callsite(#loc6 at #loc7))
#loc9 = loc("jit(square)/mul"(#loc8))
