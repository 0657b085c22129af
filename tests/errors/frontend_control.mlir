// error: stablehlo.while (loop.py:3): region 0 takes 0 values, not 1
func.func @main(%a: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.while"(%a) ({
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x: tensor<i32>):
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32> loc("loop.py":3:1)
  return %0 : tensor<i32>
}
// -----
// error: stablehlo.while (-:2): region 1 gives 2 values, not 1
func.func @main(%a: tensor<i32>) -> tensor<i32> {
  %0 = "stablehlo.while"(%a) ({
  ^bb0(%x: tensor<i32>):
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x: tensor<i32>):
    stablehlo.return %x, %x : tensor<i32>, tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}
// -----
// error: stablehlo.while (-:2): 1 operands and 2 results: each operand should have its result
func.func @main(%a: tensor<i32>) -> tensor<i32> {
  %0:2 = "stablehlo.while"(%a) ({
  ^bb0(%x: tensor<i32>):
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%x: tensor<i32>):
    stablehlo.return %x : tensor<i32>
  }) : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
  return %0#0 : tensor<i32>
}
// -----
// error: stablehlo.if (-:2): region 1 has no block, where one that ends in a return should be
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<f32>
  }, {
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.if (-:2): region 1 has a block without operations
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<f32>
  }, {
  ^bb0:
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.if (-:2): region 0 takes 1 values, not 0
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
  ^bb0(%x: tensor<f32>):
    stablehlo.return %x : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.case (-:2): region 1 gives 0 values, not 1
func.func @main(%i: tensor<i32>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %a : tensor<f32>
  }, {
    stablehlo.return
  }) : (tensor<i32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.case (-:2): no regions, where one a branch should be
func.func @main(%i: tensor<i32>) {
  "stablehlo.case"(%i) : (tensor<i32>) -> ()
  return
}
// -----
// error: stablehlo.if (-:2): 1 operands, 1 results, 1 regions, where 1, 0 or more, 2 should be
func.func @main(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.negate (-:3): ends a block, where a return should be
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.abs %a : tensor<f32>
  %1 = stablehlo.negate %0 : tensor<f32>
}
// -----
// code: UNIMPLEMENTED
// error: stablehlo.reduce (-:3): its computation uses a value from outside: only constants
func.func @main(%a: tensor<3xf32>, %s: tensor<f32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %z) across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    reducer(%x: tensor<f32>, %y: tensor<f32>) {
      %1 = stablehlo.add %x, %s : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }
  return %0 : tensor<f32>
}
// -----
// error: func.call (-:5): function main calls itself
func.func @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: function f calls itself
func.func @f(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @g(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @f(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: func.call (-:2): there is no function g
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: func.func (-:1): function g is declared, and not defined
func.func private @g(tensor<f32>) -> tensor<f32>
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = call @g(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: func.call (-:2): no attribute callee
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "func.call"(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.composite (-:2): decomposition: an integer where a string should be
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "stablehlo.composite"(%a) <{decomposition = 3 : i32, name = "my.op"}> : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: sdy.named_computation (-:2): region 0 takes 0 values, not 1
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "sdy.named_computation"(%a) <{name = "f"}> ({
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    sdy.return %z : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: sdy.named_computation (-:2): region 0 gives 2 values, not 1
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = "sdy.named_computation"(%a) <{name = "f"}> ({
  ^bb0(%x: tensor<f32>):
    sdy.return %x, %x : tensor<f32>, tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: builtin.unrealized_conversion_cast (-:2): 2 operands and 1 results: each operand should have its result
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = "builtin.unrealized_conversion_cast"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
// -----
// error: stablehlo.optimization_barrier (-:2): 1 operands and 2 results
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0:2 = "stablehlo.optimization_barrier"(%a) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0#0 : tensor<f32>
}
