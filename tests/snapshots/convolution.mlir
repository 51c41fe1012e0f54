module @main {
  func.func public @main(%arg0: tensor<2x3x1xf32>, %arg1: tensor<2x1x1xf32>) -> tensor<2x3x1xf32> {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 0]], lhs_dilate = [3], rhs_dilate = [2], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]} : (tensor<2x3x1xf32>, tensor<2x1x1xf32>) -> tensor<2x3x1xf32>
    return %0 : tensor<2x3x1xf32>
  }
}
