
func.func @main(%x: tensor<2x3xf32>, %by: tensor<f32>) -> tensor<2x3xf32> {
  %b = stablehlo.broadcast_in_dim %by, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %r = stablehlo.multiply %x, %b : tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}