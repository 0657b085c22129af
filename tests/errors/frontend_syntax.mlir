// error: 2:3: byte 0xC3 outside of a string
func.func @main(%a: tensor<2xf32>) {
  é
  return
}
// -----
// error: 2:8: a string that does not end
func.func @main() {
  %0 = "no end
}

// -----
// error: 1:15: a bracket that is not closed
sdy.mesh @m = <["x"=2]
func.func @main() { return }
// -----
// error: 1:33: an integer of more than 64 bits
module attributes {mhlo.cross = -18446744073709551615 : i64} {
}
// -----
// error: 2:29: an integer of more than 64 bits
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.iota dim = 18446744073709551616 : tensor<2xf32>
  return
}
// -----
// error: 2:44: expected a string, found '1'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.unary_einsum %a, config = 1 : (tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: 2:29: expected an integer, found 'x'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.iota dim = x : tensor<2xf32>
  return
}
// -----
// error: 2:8: my.op is no operation that is known
func.func @main(%a: tensor<2xf32>) {
  %0 = my.op %a : tensor<2xf32>
  return
}
// -----
// error: 2:8: stablehlo.gather is known in its generic form only
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.gather %a : tensor<2xf32>
  return
}
// -----
// error: 2:3: expected an operation, found '{'
func.func @main(%a: tensor<2xf32>) {
  {}
  return
}
// -----
// error: expected a value, found 'b'
func.func @main(%a: tensor<2xf32>) {
  %0, b = stablehlo.abs %a : tensor<2xf32>
  return
}
// -----
// error: 1 names for 0 results
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.return %a : tensor<2xf32>
  return
}
// -----
// error: %0 has 2 results
func.func @main(%a: tensor<2xf32>) {
  %0:2 = stablehlo.optimization_barrier %a, %a : tensor<2xf32>, tensor<2xf32>
  %1 = stablehlo.abs %0#2 : tensor<2xf32>
  return
}
// -----
// error: 2:8: 2 operands, and the types of 1
func.func @main(%a: tensor<2xf32>) {
  %0 = "stablehlo.add"(%a, %a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: expected ',' and another type, found 'return'
func.func @main(%a: tensor<2xf32>) {
  %0:2 = chlo.top_k(%a, k = 1) : tensor<2xf32>
  return
}
// -----
// error: successors: control flow between blocks is not StableHLO
func.func @main(%a: tensor<2xf32>) {
  "cf.br"(%a)[^bb1] : (tensor<2xf32>) -> ()
  return
}
// -----
// error: a second block: control flow between blocks is not StableHLO
func.func @main() {
  return
^bb1:
  return
}
// -----
// error: expected a block argument, found 'x'
"func.func"() <{function_type = () -> (), sym_name = "main"}> ({
^bb0(x: tensor<f32>):
  return
}) : () -> ()
// -----
// error: dimension_numbers must be #stablehlo.gather<...>
func.func @main(%a: tensor<2xf32>) {
  %0 = "stablehlo.gather"(%a, %a) <{dimension_numbers = #stablehlo.dot<>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: expected @callee, found 'f'
func.func @main(%a: tensor<2xf32>) {
  %0 = call f(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: expected @target, found 'f'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.custom_call f(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: expected @name, found 'main'
func.func main() { return }
// -----
// error: expected true or false, found 'yes'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.cholesky %a, lower = yes : tensor<2xf32>
  return
}
// -----
// error: expected a format like e5m10, found 'f5'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.reduce_precision %a, format = f5 : tensor<2xf32>
  return
}
// -----
// error: stablehlo.abs is no operation of two scalars
func.func @main(%a: tensor<2xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.abs across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return
}
// -----
// error: expected an argument, found 'x'
func.func @main(%a: tensor<2xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) across dimensions = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    reducer(x: tensor<f32>, %y: tensor<f32>) { }
  return
}
// -----
// error: expected a mesh, <[...]>, found 'x'
sdy.mesh @m = x
// -----
// error: expected a sharding, <@mesh, [...]>, found ':'
func.func @main(%a: tensor<2xf32>) {
  %0 = sdy.sharding_constraint %a : tensor<2xf32>
  return
}
// -----
// error: expected a list, found '<'
func.func @main(%a: tensor<2xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=<@m, []> out_shardings=[] manual_axes={} (%b: tensor<2xf32>) {
    sdy.return %b : tensor<2xf32>
  } : (tensor<2xf32>) -> tensor<2xf32>
  return
}
// -----
// error: expected 'x' behind a dimension
func.func @main(%a: tensor<2*f32>) { return }
// -----
// error: a rank of more than 32
func.func @main(%a: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) { return }
// -----
// error: a dimension of more than 64 bits
func.func @main(%a: tensor<9223372036854775808xf32>) { return }
// -----
// error: type !llvm.ptr is not known
func.func @main(%a: !llvm.ptr) { return }
// -----
// error: expected a quantized type's storage, i8 or u8
func.func @main(%a: tensor<2x!quant.uniform<f8:f32, 0.5>>) { return }
// -----
// error: expected '<', found ')'
func.func @main(%a: memref) { return }
// -----
// error: expected an attribute, found '}'
module attributes {x = } {
}
// -----
// error: expected a symbol, found 'b'
module attributes {x = @a::b} {
}
// -----
// error: expected a number, found 'x'
module attributes {x = -x} {
}
// -----
// error: a number of a type that has none, or of over 64 bits
module attributes {x = 1 : tensor<2xi32>} {
}
// -----
// error: expected a floating-point number, found '1'
module attributes {x = 1 : f32} {
}
// -----
// error: a number of type tf32 is written as its bits
module attributes {x = 1.5 : tf32} {
}
// -----
// error: more than the 16 bits of a float
module attributes {x = 0x10000 : f16} {
}
// -----
// error: expected an array of numbers, found
module attributes {x = array<tensor<2xi32>: 1>} {
}
// -----
// error: expected '<', found
module attributes {x = dense 1} {
}
// -----
// error: a constant of a type that is no tensor
module attributes {x = dense<1> : i32} {
}
// -----
// error: a constant of a shape that is not fixed
module attributes {x = dense<1> : tensor<?xi32>} {
}
// -----
// error: no elements in a constant of 2
module attributes {x = dense<> : tensor<2xi32>} {
}
// -----
// error: an element in a constant of none
module attributes {x = dense<1> : tensor<0xi32>} {
}
// -----
// error: 5000 elements in fewer bytes
module attributes {x = dense<[1, 2]> : tensor<5000xi32>} {
}
// -----
// error: 2 elements where dimension 0 has 3
module attributes {x = dense<[1, 2]> : tensor<3xi32>} {
}
// -----
// error: a constant of f128 is written as its bytes
module attributes {x = dense<1> : tensor<2xf128>} {
}
// -----
// error: expected "0x" and two digits a byte
module attributes {x = dense<"0x123"> : tensor<2xi8>} {
}
// -----
// error: is no hex digit
func.func @main() -> tensor<1xi8> {
  %0 = stablehlo.constant dense<"0x\10\19"> : tensor<1xi8>
  return %0 : tensor<1xi8>
}
// -----
// error: 'g' is no hex digit
module attributes {x = dense<"0x0g"> : tensor<1xi8>} {
}
// -----
// error: resource blob is not in the file
module attributes {x = dense_resource<blob> : tensor<2xi32>} {
}
// -----
// error: expected one of StableHLO's enumerations, found 'colour'
module attributes {x = #stablehlo<colour RED>} {
}
// -----
// error: #stablehlo.channel_handle without type
module attributes {x = #stablehlo.channel_handle<handle = 1>} {
}
// -----
// error: expected a field of this attribute, found 'color'
module attributes {x = #stablehlo.gather<color = 1>} {
}
// -----
// error: expected a field that is not there yet, found 'handle'
module attributes {x = #stablehlo.channel_handle<handle = 1, handle = 1>} {
}
// -----
// error: expected 'x', found '['
module attributes {x = #stablehlo.conv<[b, f, 0][i, o, 0]->[b, f, 0]>} {
}
// -----
// error: dimension 2 is none of a convolution
module attributes {x = #stablehlo.conv<[b, f, z]x[i, o, 0]->[b, f, 0]>} {
}
// -----
// error: dimension b or f is missing
module attributes {x = #stablehlo.conv<[b, 0]x[i, o, 0]->[b, f, 0]>} {
}
// -----
// error: spatial dimension 0 is missing
module attributes {x = #stablehlo.conv<[b, f, 1]x[i, o, 0]->[b, f, 0]>} {
}
// -----
// error: 1:4: expected '=', found '1'
#a 1

// -----
// error: 2:1: #a is defined already
#a = 1 : i32
#a = 2 : i32
module {}
// -----
// error: 2:1: #b stands for one that is not defined yet
#a = loc("x"(#b))
#b = loc(#b)
module {}
// -----
// error: expected a location, found '1'
func.func @main(%a: tensor<2xf32>) {
  %0 = stablehlo.abs %a : tensor<2xf32> loc(1)
  return
}
