module @main {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.add %arg1, %arg1 : tensor<3xf32>
      stablehlo.return %1 : tensor<3xf32>
    }, {
      stablehlo.return %arg1 : tensor<3xf32>
    }, {
      %1 = stablehlo.negate %arg1 : tensor<3xf32>
      stablehlo.return %1 : tensor<3xf32>
    }) : (tensor<i32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
