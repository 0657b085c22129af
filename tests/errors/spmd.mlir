// error: dimension 0 of 3 is to be cut in 2 equal parts
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<3xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<3xf32> {
    return %a : tensor<3xf32>
  }
}
// -----
// code: UNIMPLEMENTED
// error: an array of one participant alone among the program's arguments or results
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <[], device_ids=[0]>
  func.func @main(%a: tensor<3xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) -> tensor<3xf32> {
    return %a : tensor<3xf32>
  }
}
// -----
// error: value 0 of a manual computation does not have the shape that its sharding gives
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      sdy.return %b : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
// error: an axis of the mesh should be at
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"y"}]>}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
// -----
// code: UNIMPLEMENTED
// error: groups or operands of another form than as many numbers for each member
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%a: tensor<4xf32>, %b: tensor<2xi32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @ragged_all_to_all(%a, %a, %b, %b, %b, %b) {api_version = 4 : i32, backend_config = {channel_id = 1 : i64}} : (tensor<4xf32>, tensor<4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
// code: UNIMPLEMENTED
// error: evaluating a manual computation's unreduced result
// stage: evaluate all
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main() -> tensor<4xf32> {
    %a = stablehlo.constant dense<1.0> : tensor<4xf32>
    %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{}]>] out_shardings=[<@m, [{}], unreduced={"x"}>] manual_axes={"x"} (%b: tensor<4xf32>) {
      sdy.return %b : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
// -----
// error: main is of 1 replicas and 2 partitions, the options are for 1 and 4
// stage: compile
// partitions: 4
module @main attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
// -----
// error: a mesh of all participants should be at
// stage: compile
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
// -----
// error: each participant once in device_ids should be at
// stage: compile
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @m = <["x"=2], device_ids=[1, 1]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
