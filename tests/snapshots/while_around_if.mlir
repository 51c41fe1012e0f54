module @main {
  func.func public @main(%arg0: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %c) : tensor<i32>, tensor<i32>
    cond {
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.compare NE, %iterArg, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.and %iterArg, %c_1 : tensor<i32>
      %2 = stablehlo.convert %1 : (tensor<i32>) -> tensor<i1>
      %3 = "stablehlo.if"(%2) ({
        %c_3 = stablehlo.constant dense<3> : tensor<i32>
        %5 = stablehlo.multiply %iterArg, %c_3 : tensor<i32>
        %c_4 = stablehlo.constant dense<1> : tensor<i32>
        %6 = stablehlo.add %5, %c_4 : tensor<i32>
        stablehlo.return %6 : tensor<i32>
      }, {
        %c_3 = stablehlo.constant dense<2> : tensor<i32>
        %5 = stablehlo.divide %iterArg, %c_3 : tensor<i32>
        stablehlo.return %5 : tensor<i32>
      }) : (tensor<i1>) -> tensor<i32>
      %c_2 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg_0, %c_2 : tensor<i32>
      stablehlo.return %3, %4 : tensor<i32>, tensor<i32>
    }
    return %0#1, %0#0 : tensor<i32>, tensor<i32>
  }
}
