module @main {
  func.func public @main() -> (tensor<f32>, tensor<2x2xui8>, tensor<2xi1>, tensor<f32>, tensor<0x3xf32>, tensor<complex<f64>>, tensor<101xi8>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xui8>
    %c_0 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_2 = stablehlo.constant dense<> : tensor<0x3xf32>
    %cst_3 = stablehlo.constant dense<(1.000000e+00,-2.000000e+00)> : tensor<complex<f64>>
    %c_4 = stablehlo.constant dense<"0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F6061626364"> : tensor<101xi8>
    return %cst, %c, %c_0, %cst_1, %cst_2, %cst_3, %c_4 : tensor<f32>, tensor<2x2xui8>, tensor<2xi1>, tensor<f32>, tensor<0x3xf32>, tensor<complex<f64>>, tensor<101xi8>
  }
}
