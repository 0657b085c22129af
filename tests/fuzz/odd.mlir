// Operations, types and attributes that no program of JAX has.
#map = affine_map<(d0) -> (d0)>
#place = loc("odd.py":3:4 to 5:6)
!pair = tuple<tensor<2xf32>, tensor<i32>>
module @odd attributes {mhlo.num_partitions = 1 : i32, jax.flag = true,
    odd.unit, odd.big = 0x1F : i64, odd.map = affine_map<(d0) -> (d0)>,
    odd.res = dense_resource<blob> : tensor<2xi32>} {
  func.func private @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    return %x : tensor<2x3xf32>
  }
  func.func public @main(%a: tensor<2x3xf32> {jax.buffer_donor = true}
        loc("a"), %i: tensor<i32>, %p: tensor<i1>, %tok: !stablehlo.token,
      %tt: !pair, %z: tensor<8x8xf32>, %m: memref<4xf32>,
      %b: tensor<?x3xf32, #stablehlo.bounds<4, ?>>)
      -> (tensor<2x3xf32> {jax.result_info = "x\0A\22y"}) {
    %0 = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32> loc(#place)
    %1 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>
      }> : (tensor<2x3xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.composite "chlo.foo" %a {composite_attributes =
        {k = 1 : i64, t = i32, s = [@f, @f::@g]}, decomposition = @f,
        version = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3:2 = stablehlo.while(%it = %i, %ia = %a) : tensor<i32>, tensor<2x3xf32>
      attributes {odd.x = 1.5 : f32}
      cond {
        %c = stablehlo.compare LT, %it, %it, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        stablehlo.return %it, %ia : tensor<i32>, tensor<2x3xf32>
      }
    %c0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c1 = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi4>
    %c2 = stablehlo.constant dense<[(1.0, 2.0), (-3.5, 0x7FC00000)]> : tensor<2xcomplex<f32>>
    %c3 = stablehlo.constant dense<[1.0, 7.5]> : tensor<2xf6E2M3FN>
    %c4 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %c5 = stablehlo.constant dense<"0x0102030405060708"> : tensor<2xui32>
    %c6 = stablehlo.constant dense<> : tensor<0x3xbf16>
    %c7 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.reduce(%a init: %c0) applies stablehlo.maximum across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %ai = stablehlo.iota dim = 0 : tensor<2x3xi32>
    %5:2 = stablehlo.reduce(%a init: %c0), (%ai init: %c7) across dimensions = [0] : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
      reducer(%x: tensor<f32>, %y: tensor<f32>) (%u: tensor<i32>, %v: tensor<i32>) {
        stablehlo.return %x, %u : tensor<f32>, tensor<i32>
      }
    %6 = stablehlo.pad %a, %c0, low = [1, 0], high = [0, -1], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32>
    %7:2 = stablehlo.rng_bit_generator %i, algorithm = THREE_FRY : (tensor<i32>) -> (tensor<i32>, tensor<4xui32>)
    %8 = stablehlo.reduce_precision %z, format = e5m10 : tensor<8x8xf32>
    %9 = stablehlo.get_tuple_element %tt[0] : (!pair) -> tensor<2xf32>
    %10 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
    %11 = stablehlo.dot_general %z, %z, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %12 = stablehlo.einsum %z, %z, config = "ab,bc->ac" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %13 = "stablehlo.case"(%i) ({
      stablehlo.return %a : tensor<2x3xf32>
    }, {
      stablehlo.return %10 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %14 = stablehlo.after_all %tok, %tok : !stablehlo.token
    return %a : tensor<2x3xf32>
  }
} loc(fused<"meta">["odd"(#place), callsite("f"("g.py":1:2) at unknown)])
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000100000002000000"
    }
  }
#-}
