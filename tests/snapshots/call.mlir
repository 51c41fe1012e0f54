module @main {
  func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = call @double_it(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
    %1 = call @double_it(%0) : (tensor<3xf32>) -> tensor<3xf32>
    %2:2 = call @both(%1) : (tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    return %2#1, %2#0 : tensor<3xf32>, tensor<3xf32>
  }
  func.func private @double_it(%arg0: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
  func.func private @both(%arg0: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>
    %1 = stablehlo.negate %arg0 : tensor<3xf32>
    return %0, %1 : tensor<3xf32>, tensor<3xf32>
  }
}
