#loc2 = loc("-":3:26)
"builtin.module"() <{sym_name = "jit_host"}> ({
  "func.func"() <{function_type = (tensor<4x6xf32>) -> tensor<f32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x6xf32> loc("-":3:26)):
    %0 = "stablehlo.create_token"() : () -> !stablehlo.token loc(#loc3)
    %1 = "stablehlo.send"(%arg0, %0) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 2>, is_host_transfer = true}> {mhlo.frontend_attributes = {_xla_host_transfer_handler_name = "pjrt_rendezvous"}} : (tensor<4x6xf32>, !stablehlo.token) -> !stablehlo.token loc(#loc4)
    %2:2 = "stablehlo.recv"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token) loc(#loc5)
    "func.return"(%2#0) : (tensor<f32>) -> () loc(#loc6)
  }) : () -> () loc(#loc1)
}) : () -> () loc(#loc)
#loc = loc("-":2:1)
#loc1 = loc("-":3:3)
#loc3 = loc("-":4:10)
#loc4 = loc("-":5:10)
#loc5 = loc("-":10:12)
#loc6 = loc("-":14:5)
