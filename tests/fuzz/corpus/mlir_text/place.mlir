// Locations in attributes, and in those of locations.
#far = loc("far.py":1:2)
#near = loc(callsite("near"(#far) at #far))
module attributes {here = loc("a"(#near)), all = [loc(#near), loc(unknown)]} {
  func.func @main(%a: tensor<f32> loc("a")) -> tensor<f32> {
    %0 = stablehlo.abs %a {from = loc(fused<"m">[#far, "b"])} : tensor<f32>
      loc(fused<loc(#near)>[#far, #near])
    return %0 : tensor<f32> loc(#near)
  }
} loc(#far)
