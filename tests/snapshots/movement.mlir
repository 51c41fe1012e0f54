module @main {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<6x3xf32> {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.reverse %0, dims = [1] : tensor<3x2xf32>
    %cst = stablehlo.constant dense<9.000000e+00> : tensor<f32>
    %2 = stablehlo.pad %1, %cst, low = [0, -1], high = [1, 0], interior = [0, 2] : (tensor<3x2xf32>, tensor<f32>) -> tensor<4x3xf32>
    %3 = stablehlo.slice %2 [0:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    %4 = stablehlo.concatenate %3, %2, dim = 0 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
    return %4 : tensor<6x3xf32>
  }
}
