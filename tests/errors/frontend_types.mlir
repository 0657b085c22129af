// code: UNIMPLEMENTED
// error: argument 0 of main: tensor of quantized type is not done
func.func @main(%a: tensor<2x!quant.uniform<i8:f32, 0.5>>) {
  return
}
// -----
// code: UNIMPLEMENTED
// error: argument 0 of main: a value of buffer type is not done
func.func @main(%a: memref<2xf32>) {
  return
}
// -----
// code: UNIMPLEMENTED
// error: argument 0 of main: a value of a type that is no tensor is not done
func.func @main(%a: i32) {
  return
}
// -----
// code: UNIMPLEMENTED
// error: argument 0 of main: tensor of what is no element type is not done
func.func @main(%a: tensor<2xtensor<2xf32>>) {
  return
}
// -----
// error: argument 0 of main: a tuple of more than 65536 arrays
!a = tuple<tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>>
!b = tuple<!a, !a, !a, !a, !a, !a, !a, !a>
!c = tuple<!b, !b, !b, !b, !b, !b, !b, !b>
!d = tuple<!c, !c, !c, !c, !c, !c, !c, !c>
!e = tuple<!d, !d, !d, !d, !d, !d, !d, !d>
!f = tuple<!e, !e, !e, !e, !e, !e, !e, !e>
func.func @main(%a: !f) {
  return
}
// -----
// error: argument 0 of main: a type that is nested deeper than 16
!a = tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tensor<f32>>>>>>>>>
!b = tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<!a>>>>>>>>
!c = tuple<tuple<!b>>
func.func @main(%a: !c) {
  return
}
// -----
// error: stablehlo.custom_call (-:4): a type that is nested deeper than 16
!a = tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tensor<f32>>>>>>>>>
!b = tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<!a>>>>>>>>
func.func @main(%a: tensor<f32>) {
  stablehlo.custom_call @f(%a) {backend_config = {t = tuple<tuple<!b>>}} : (tensor<f32>) -> ()
  return
}
// -----
// error: stablehlo.custom_call (-:2): an attribute that is nested deeper than 32
func.func @main(%a: tensor<f32>) {
  stablehlo.custom_call @f(%a) {backend_config = {deep = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}} : (tensor<f32>) -> ()
  return
}
// -----
// error: stablehlo.custom_call (-:3): a location that is nested deeper than 32
#a = loc("a"("b"("c"("d"("e"("f"("g"("h"("i"("j"("k"("l"("m"("n"("o"("p"("q"("r"))))))))))))))))))
func.func @main(%a: tensor<f32>) {
  stablehlo.custom_call @f(%a) {backend_config = {place = loc("a"("b"("c"("d"("e"("f"("g"("h"("i"("j"("k"("l"("m"("n"("o"("p"("q"("r"(#a)))))))))))))))))))}} : (tensor<f32>) -> ()
  return
}
// -----
// error: 3:8: operand 0 is a tensor<2xf32, loc(?)>, not a tensor<3xf32>
#later = loc(#here)
func.func @main(%a: tensor<2xf32, loc(#there)>) {
  %0 = "stablehlo.abs"(%a) : (tensor<3xf32>) -> tensor<3xf32>
  return
}
#there = loc("there")
// -----
// error: stablehlo.custom_call (-:8): an attribute or type of more than
// error: bytes of text
#a = ["a long string, of which there are many", "a long string, of which there are many"]
#b = [#a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a, #a]
#c = [#b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b, #b]
#d = [#c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c, #c]
#e = [#d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d, #d]
#f = [#e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e, #e]
func.func @main(%a: tensor<f32>) {
  stablehlo.custom_call @f(%a) {backend_config = {many = #f}} : (tensor<f32>) -> ()
  return
}
// -----
// error: stablehlo.custom_call (-:30): an attribute or type of more than
#l0 = loc("here")
#l1 = loc(callsite(#l0 at #l0))
#l2 = loc(callsite(#l1 at #l1))
#l3 = loc(callsite(#l2 at #l2))
#l4 = loc(callsite(#l3 at #l3))
#l5 = loc(callsite(#l4 at #l4))
#l6 = loc(callsite(#l5 at #l5))
#l7 = loc(callsite(#l6 at #l6))
#l8 = loc(callsite(#l7 at #l7))
#l9 = loc(callsite(#l8 at #l8))
#l10 = loc(callsite(#l9 at #l9))
#l11 = loc(callsite(#l10 at #l10))
#l12 = loc(callsite(#l11 at #l11))
#l13 = loc(callsite(#l12 at #l12))
#l14 = loc(callsite(#l13 at #l13))
#l15 = loc(callsite(#l14 at #l14))
#l16 = loc(callsite(#l15 at #l15))
#l17 = loc(callsite(#l16 at #l16))
#l18 = loc(callsite(#l17 at #l17))
#l19 = loc(callsite(#l18 at #l18))
#l20 = loc(callsite(#l19 at #l19))
#l21 = loc(callsite(#l20 at #l20))
#l22 = loc(callsite(#l21 at #l21))
#l23 = loc(callsite(#l22 at #l22))
#l24 = loc(callsite(#l23 at #l23))
#l25 = loc(callsite(#l24 at #l24))
#l26 = loc(callsite(#l25 at #l25))
#l27 = loc(callsite(#l26 at #l26))
func.func @main(%a: tensor<f32>) {
  stablehlo.custom_call @f(%a) {backend_config = {place = loc(#l27)}} : (tensor<f32>) -> ()
  return
}
