// error: stablehlo.custom_call (-:2): no attribute call_target_name
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "stablehlo.custom_call"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): operand_layouts has 2 entries for 1 values
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): operand_layouts: entry 0 orders 3 dimensions, where each of 2 should be once
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {operand_layouts = [dense<[0, 1, 2]> : tensor<3xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): result_layouts: entry 0 orders 2 dimensions, where each of 2 should be once
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): output_operand_aliases: an integer where an alias should be
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {output_operand_aliases = [0]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): output_operand_aliases: operand 1 of 1
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// error: stablehlo.custom_call (-:2): called_computations: an integer where a function's name should be
func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.custom_call @f(%a) {called_computations = [1]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.send (-:3): between devices: only transfers to and from the host are done
func.func @main(%a: tensor<f32>) -> !stablehlo.token {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.send"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}
// -----
// error: stablehlo.recv (-:3): 0 results, the last of which should be a token
func.func @main() {
  %t = stablehlo.create_token : !stablehlo.token
  "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> ()
  return
}
// -----
// error: stablehlo.infeed (-:3): 1 results, the last of which should be a token
func.func @main() -> tensor<f32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.infeed (-:3): infeed_config "fast"
func.func @main() -> !stablehlo.token {
  %t = stablehlo.create_token : !stablehlo.token
  %0 = "stablehlo.infeed"(%t) <{infeed_config = "fast"}> : (!stablehlo.token) -> !stablehlo.token
  return %0 : !stablehlo.token
}
// -----
// error: stablehlo.all_reduce (-:2): replica_groups should be a table of participants
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: stablehlo.collective_permute (-:2): source_target_pairs should be a table of participants
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<0> : tensor<2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: needs groups of one size
module attributes {mhlo.num_replicas = 3 : i32} {
func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>}> : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// -----
// error: each axis once should be at
module attributes {mhlo.num_partitions = 2 : i32} {
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "x">]>}> : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// -----
// error: a mesh of all participants should be at
module attributes {mhlo.num_partitions = 4 : i32} {
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// -----
// error: stablehlo.all_gather (-:3): sharding "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>": a mesh of the module should be at ", axes
module attributes {mhlo.num_replicas = 2 : i32} {
func.func @main(%a: tensor<2xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
// -----
// error: stablehlo.all_to_all (-:2): operand 0 cannot be split in 3 along dimension 0 and joined along 1
func.func @main(%a: tensor<2x2xf32>) -> tensor<1x4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 3 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x2xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
// -----
// error: all-to-all of f32[4,2] (-:3): splits in 4 among groups of 2
module attributes {mhlo.num_replicas = 2 : i32} {
func.func @main(%a: tensor<4x2xf32>) -> tensor<1x8xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.collective_broadcast (-:2): has_dynamic_root: only roots known when compiling are done
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.collective_broadcast"(%a) <{has_dynamic_root, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: stablehlo.all_gather (-:2): no operands, where one at least should be
func.func @main() {
  "stablehlo.all_gather"() <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : () -> ()
  return
}
// -----
// error: stablehlo.async_done (-:6): 2 results of a future of others
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<2xf32>):
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<2xf32>) -> !stablehlo.future<tensor<2xf32>>
  %1:2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> (tensor<2xf32>, tensor<2xf32>)
  return %1#0 : tensor<2xf32>
}
// -----
// error: all-reduce-start: the frontend attribute async_collective_config should be a text
func.func private @add(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-reduce-start", called_computations = [@add], api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a brace at byte 0
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "[]"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a string at byte 1
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{replica_groups: []}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a string with an end at byte 1
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a colon at byte 18
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22 [[0]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a list of lists of participants at byte 19
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: 1}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a list of participants at byte 20
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [0]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have an integer at byte 21
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[x]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a comma or a bracket at byte 22
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0; 1]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have a comma or a brace at byte 24
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0]]"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have true or false at byte 26
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22use_global_device_ids\22: 1}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config should have its end at byte 64
func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]], \22all_gather_dimension\22: 0} x"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// -----
// error: reduce-scatter-start: async_collective_config should have true at byte 10
func.func private @add(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "reduce-scatter-start", mhlo.frontend_attributes = {async_collective_config = "{\22tiled\22: false}"}, called_computations = [@add], api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: collective-permute-start: async_collective_config should have a source and a target, and no more, before at byte 26
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "collective-permute-start", mhlo.frontend_attributes = {async_collective_config = "{\22permutation\22: [[0, 1, 2]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// code: UNIMPLEMENTED
// error: all-gather-start: async_collective_config has a setting sub_group, which is not known
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22sub_group\22: 1}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// code: UNIMPLEMENTED
// error: all-gather-start: async_collective_config has a setting channel_id, which is not known
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22channel_id\5C000\22: 1}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config has no replica_groups
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22channel_id\22: 1}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-gather-start: async_collective_config has no all_gather_dimension
func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-gather-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// -----
// error: all-to-all-start: async_collective_config has no split_count
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-to-all-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]], \22split_dimension\22: 0, \22concat_dimension\22: 0}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-to-all-start: async_collective_config has no concat_dimension
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-to-all-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]], \22split_dimension\22: 0, \22split_count\22: 2}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: reduce-scatter-start: async_collective_config has no scatter_dimension
func.func private @add(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "reduce-scatter-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]]}"}, called_computations = [@add], api_version = 1 : i32} : (tensor<4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
// -----
// error: all-reduce-start: 0 called computations, where the one that reduces should be
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-reduce-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]]}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
// error: all-reduce-done: the result is f32[8] of a start of f32[4]
func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-reduce-done", api_version = 1 : i32} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// -----
// error: all-to-all-start: the result is declared as f32[8], and is f32[4]
module @m attributes {mhlo.num_replicas = 4 : i32} {
func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "all-to-all-start", mhlo.frontend_attributes = {async_collective_config = "{\22replica_groups\22: [[0, 1], [2, 3]], \22split_dimension\22: 0, \22concat_dimension\22: 0, \22split_count\22: 2}"}, api_version = 1 : i32} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
}
// -----
// error: all-reduce-start: 2 operands and 1 results, where one of each should be
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a, %a) {call_target_name = "all-reduce-start", api_version = 1 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
