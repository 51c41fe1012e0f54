module @main {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
    %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<2x3xf32>, tensor<3xf32>
    %1 = stablehlo.tuple %0#0, %0#1 : tuple<tensor<2x3xf32>, tensor<3xf32>>
    %2 = stablehlo.tuple %1, %arg1 : tuple<tuple<tensor<2x3xf32>, tensor<3xf32>>, tensor<3xf32>>
    %3 = stablehlo.get_tuple_element %2[0] : (tuple<tuple<tensor<2x3xf32>, tensor<3xf32>>, tensor<3xf32>>) -> tuple<tensor<2x3xf32>, tensor<3xf32>>
    %4 = stablehlo.get_tuple_element %3[1] : (tuple<tensor<2x3xf32>, tensor<3xf32>>) -> tensor<3xf32>
    return %0#0, %4 : tensor<2x3xf32>, tensor<3xf32>
  }
}
