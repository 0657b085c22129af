#loc4 = loc("-":8:24)
#loc7 = loc("a")
#loc8 = loc("-":12:19)
#loc9 = loc("-":12:36)
#loc10 = loc("-":12:52)
#loc11 = loc("-":13:7)
#loc12 = loc("-":13:19)
#loc13 = loc("-":13:40)
#loc14 = loc("-":14:7)
#loc18 = loc("-":24:28)
#loc19 = loc("-":24:38)
#loc31 = loc("-":40:26)
#loc34 = loc("-":43:15)
#loc35 = loc("-":43:50)
#loc36 = loc("-":43:32)
#loc37 = loc("-":43:67)
#map = affine_map<(d0) -> (d0)>
"builtin.module"() <{sym_name = "odd"}> ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<2x3xf32>, sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%arg18: tensor<2x3xf32> loc("-":8:24)):
    "func.return"(%arg18) : (tensor<2x3xf32>) -> () loc(#loc5)
  }) : () -> () loc(#loc3)
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true}, {}, {}, {}, {}, {}, {}, {}], function_type = (tensor<2x3xf32>, tensor<i32>, tensor<i1>, !stablehlo.token, tuple<tensor<2xf32>, tensor<i32>>, tensor<8x8xf32>, memref<4xf32>, tensor<?x3xf32, #stablehlo.bounds<4, ?>>) -> tensor<2x3xf32>, res_attrs = [{jax.result_info = "x\0A\22y"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x3xf32> loc("a"), %arg1: tensor<i32> loc("-":12:19), %arg2: tensor<i1> loc("-":12:36), %arg3: !stablehlo.token loc("-":12:52), %arg4: tuple<tensor<2xf32>, tensor<i32>> loc("-":13:7), %arg5: tensor<8x8xf32> loc("-":13:19), %arg6: memref<4xf32> loc("-":13:40), %arg7: tensor<?x3xf32, #stablehlo.bounds<4, ?>> loc("-":14:7)):
    %0 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<2x2xf32> loc(#loc)
    %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2x3xf32>) -> tensor<4x3xf32> loc(#loc15)
    %2 = "stablehlo.composite"(%arg0) <{composite_attributes = {k = 1 : i64, s = [@f, @f::@g], t = i32}, decomposition = @f, name = "chlo.foo", version = 1 : i32}> : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc16)
    %3:2 = "stablehlo.while"(%arg1, %arg0) ({
    ^bb0(%arg16: tensor<i32> loc("-":24:28), %arg17: tensor<2x3xf32> loc("-":24:38)):
      %25 = "stablehlo.compare"(%arg16, %arg16) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc20)
      "stablehlo.return"(%25) : (tensor<i1>) -> () loc(#loc21)
    }, {
    ^bb0(%arg14: tensor<i32> loc("-":24:28), %arg15: tensor<2x3xf32> loc("-":24:38)):
      "stablehlo.return"(%arg14, %arg15) : (tensor<i32>, tensor<2x3xf32>) -> () loc(#loc22)
    }) {odd.x = 1.500000e+00 : f32} : (tensor<i32>, tensor<2x3xf32>) -> (tensor<i32>, tensor<2x3xf32>) loc(#loc17)
    %4 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32> loc(#loc23)
    %5 = "stablehlo.constant"() <{value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi4>}> : () -> tensor<2x2xi4> loc(#loc24)
    %6 = "stablehlo.constant"() <{value = dense<[(1.000000e+00,2.000000e+00), (-3.500000e+00,0x7FC00000)]> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>> loc(#loc25)
    %7 = "stablehlo.constant"() <{value = dense<[1.000000e+00, 7.500000e+00]> : tensor<2xf6E2M3FN>}> : () -> tensor<2xf6E2M3FN> loc(#loc26)
    %8 = "stablehlo.constant"() <{value = dense<[true, false, true]> : tensor<3xi1>}> : () -> tensor<3xi1> loc(#loc27)
    %9 = "stablehlo.constant"() <{value = dense<[67305985, 134678021]> : tensor<2xui32>}> : () -> tensor<2xui32> loc(#loc28)
    %10 = "stablehlo.constant"() <{value = dense<> : tensor<0x3xbf16>}> : () -> tensor<0x3xbf16> loc(#loc29)
    %11 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32> loc(#loc30)
    %12 = "stablehlo.reduce"(%arg0, %4) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg12: tensor<f32> loc("-":40:26), %arg13: tensor<f32> loc("-":40:26)):
      %24 = "stablehlo.maximum"(%arg12, %arg13) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc31)
      "stablehlo.return"(%24) : (tensor<f32>) -> () loc(#loc31)
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32> loc(#loc31)
    %13 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2x3xi32> loc(#loc32)
    %14:2 = "stablehlo.reduce"(%arg0, %13, %4, %11) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg8: tensor<f32> loc("-":43:15), %arg9: tensor<i32> loc("-":43:50), %arg10: tensor<f32> loc("-":43:32), %arg11: tensor<i32> loc("-":43:67)):
      "stablehlo.return"(%arg8, %arg9) : (tensor<f32>, tensor<i32>) -> () loc(#loc38)
    }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>) loc(#loc33)
    %15 = "stablehlo.pad"(%arg0, %4) <{edge_padding_high = array<i64: 0, -1>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32> loc(#loc39)
    %16:2 = "stablehlo.rng_bit_generator"(%arg1) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<i32>) -> (tensor<i32>, tensor<4xui32>) loc(#loc40)
    %17 = "stablehlo.reduce_precision"(%arg5) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc41)
    %18 = "stablehlo.get_tuple_element"(%arg4) <{index = 0 : i32}> : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<2xf32> loc(#loc42)
    %19 = "stablehlo.exponential"(%arg0) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc43)
    %20 = "stablehlo.dot_general"(%arg5, %arg5) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc44)
    %21 = "stablehlo.einsum"(%arg5, %arg5) <{einsum_config = "ab,bc->ac"}> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc(#loc45)
    %22 = "stablehlo.case"(%arg1) ({
      "stablehlo.return"(%arg0) : (tensor<2x3xf32>) -> () loc(#loc47)
    }, {
      "stablehlo.return"(%19) : (tensor<2x3xf32>) -> () loc(#loc48)
    }) : (tensor<i32>) -> tensor<2x3xf32> loc(#loc46)
    %23 = "stablehlo.after_all"(%arg3, %arg3) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token loc(#loc49)
    "func.return"(%arg0) : (tensor<2x3xf32>) -> () loc(#loc50)
  }) : () -> () loc(#loc6)
}) {jax.flag = true, mhlo.num_partitions = 1 : i32, odd.big = 31 : i64, odd.map = #map, odd.res = dense_resource<blob> : tensor<2xi32>, odd.unit} : () -> () loc(#loc54)
#loc = loc("odd.py":3:4 to 5:6)
#loc1 = loc("g.py":1:2)
#loc2 = loc(unknown)
#loc3 = loc("-":8:3)
#loc5 = loc("-":9:5)
#loc6 = loc("-":11:3)
#loc15 = loc("-":17:10)
#loc16 = loc("-":21:10)
#loc17 = loc("-":24:12)
#loc20 = loc("-":27:14)
#loc21 = loc("-":28:9)
#loc22 = loc("-":30:9)
#loc23 = loc("-":32:11)
#loc24 = loc("-":33:11)
#loc25 = loc("-":34:11)
#loc26 = loc("-":35:11)
#loc27 = loc("-":36:11)
#loc28 = loc("-":37:11)
#loc29 = loc("-":38:11)
#loc30 = loc("-":39:11)
#loc32 = loc("-":41:11)
#loc33 = loc("-":42:28)
#loc38 = loc("-":44:9)
#loc39 = loc("-":46:10)
#loc40 = loc("-":47:12)
#loc41 = loc("-":48:10)
#loc42 = loc("-":49:10)
#loc43 = loc("-":50:11)
#loc44 = loc("-":51:11)
#loc45 = loc("-":52:11)
#loc46 = loc("-":53:11)
#loc47 = loc("-":54:7)
#loc48 = loc("-":56:7)
#loc49 = loc("-":58:11)
#loc50 = loc("-":59:5)
#loc51 = loc("odd"(#loc))
#loc52 = loc("f"(#loc1))
#loc53 = loc(callsite(#loc52 at #loc2))
#loc54 = loc(fused<"meta">[#loc51, #loc53])

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000100000002000000"
    }
  }
#-}
