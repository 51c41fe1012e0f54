module @main {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3x2x4xf32>) -> tensor<2x4xf64> {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x2x4xf32>) -> tensor<2x4xf64>
    return %0 : tensor<2x4xf64>
  }
}
