module @main {
  func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xf32>) {
    %0 = stablehlo.subtract %arg0, %arg1 : tensor<3xf32>
    %1 = stablehlo.abs %0 : tensor<3xf32>
    %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
    %2 = stablehlo.compare LE, %1, %cst, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    %3 = stablehlo.select %2, %arg0, %arg1 : tensor<3xi1>, tensor<3xf32>
    %4 = stablehlo.reduce_precision %3, format = e5m10 : tensor<3xf32>
    %5 = stablehlo.complex %arg0, %arg1 : tensor<3xcomplex<f32>>
    %6 = chlo.acos %arg0 : tensor<3xf32> -> tensor<3xf32>
    return %4, %5, %6 : tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xf32>
  }
}
