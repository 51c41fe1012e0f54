declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
define void @phase0(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.5, align 64
  %b.6 = sub nsw i64 %end, %begin
  %b.7 = and i64 %b.6, -8
  %b.8 = add nsw i64 %begin, %b.7
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.1, %body1 ]
  %head1.more = icmp slt i64 %head1.i, %b.8
  br i1 %head1.more, label %body1, label %done1
body1:
  %b3.1 = getelementptr double, ptr %b.2, i64 %head1.i
  %b3.2 = load <8 x double>, ptr %b3.1, align 8
  %b3.3 = fcmp ogt <8 x double> %b3.2, splat (double 0x0000000000000000)
  %b3.4 = fmul <8 x double> %b3.2, %b3.2
  %b3.5 = fneg <8 x double> %b3.4
  %b3.6 = fcmp olt <8 x double> %b3.5, splat (double 0xC087500000000000)
  %b3.7 = select <8 x i1> %b3.6, <8 x double> splat (double 0xC096280000000000), <8 x double> %b3.5
  %b3.8 = fcmp ogt <8 x double> %b3.7, splat (double 0x4086300000000000)
  %b3.9 = select <8 x i1> %b3.8, <8 x double> splat (double 0x4086300000000000), <8 x double> %b3.7
  %b3.10 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.9, <8 x double> splat (double 0x3FF71547652B82FE), <8 x double> splat (double 0x4338000000000000))
  %b3.11 = fsub <8 x double> %b3.10, splat (double 0x4338000000000000)
  %b3.12 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.11, <8 x double> splat (double 0xBFE62E42FEFA39EF), <8 x double> %b3.9)
  %b3.13 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.11, <8 x double> splat (double 0xBC7ABC9E3B39803F), <8 x double> %b3.12)
  %b3.14 = fmul <8 x double> %b3.13, %b3.13
  %b3.15 = call <8 x double> @llvm.fma.v8f64(<8 x double> splat (double 0x3E21F75ABA0B1E2E), <8 x double> %b3.13, <8 x double> splat (double 0x3E5AF52906239DE4))
  %b3.16 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.15, <8 x double> %b3.13, <8 x double> splat (double 0x3E927E4DA1A3BF04))
  %b3.17 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.16, <8 x double> %b3.13, <8 x double> splat (double 0x3EC71DDFFEF9E7B1))
  %b3.18 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.17, <8 x double> %b3.13, <8 x double> splat (double 0x3EFA01A01A741B3C))
  %b3.19 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.18, <8 x double> %b3.13, <8 x double> splat (double 0x3F2A01A01ACA0134))
  %b3.20 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.19, <8 x double> %b3.13, <8 x double> splat (double 0x3F56C16C16C16212))
  %b3.21 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.20, <8 x double> %b3.13, <8 x double> splat (double 0x3F8111111110FF87))
  %b3.22 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.21, <8 x double> %b3.13, <8 x double> splat (double 0x3FA5555555555556))
  %b3.23 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.22, <8 x double> %b3.13, <8 x double> splat (double 0x3FC5555555555557))
  %b3.24 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.23, <8 x double> %b3.13, <8 x double> splat (double 0x3FE0000000000000))
  %b3.25 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.14, <8 x double> %b3.24, <8 x double> %b3.13)
  %b3.26 = fadd <8 x double> %b3.25, splat (double 0x3FF0000000000000)
  %b3.27 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b3.11, <8 x double> splat (double 0x3FE0000000000000), <8 x double> splat (double 0x43380000000003FF))
  %b3.28 = bitcast <8 x double> %b3.27 to <8 x i64>
  %b3.29 = shl <8 x i64> %b3.28, splat (i64 52)
  %b3.30 = bitcast <8 x i64> %b3.29 to <8 x double>
  %b3.31 = fmul <8 x double> %b3.26, %b3.30
  %b3.32 = fsub <8 x double> %b3.27, splat (double 0x43380000000003FF)
  %b3.33 = fsub <8 x double> %b3.11, %b3.32
  %b3.34 = fadd <8 x double> %b3.33, splat (double 0x43380000000003FF)
  %b3.35 = bitcast <8 x double> %b3.34 to <8 x i64>
  %b3.36 = shl <8 x i64> %b3.35, splat (i64 52)
  %b3.37 = bitcast <8 x i64> %b3.36 to <8 x double>
  %b3.38 = fmul <8 x double> %b3.31, %b3.37
  %b3.39 = select <8 x i1> %b3.3, <8 x double> %b3.38, <8 x double> %b3.2
  %b3.40 = getelementptr double, ptr %b.4, i64 %head1.i
  store <8 x double> %b3.39, ptr %b3.40, align 8
  %b2.1 = add nsw i64 %head1.i, 8
  br label %head1
done1:
  br label %head4
head4:
  %head4.i = phi i64 [ %b.8, %done1 ], [ %b5.1, %body4 ]
  %head4.more = icmp slt i64 %head4.i, %end
  br i1 %head4.more, label %body4, label %done4
body4:
  %b6.1 = sub nsw i64 %end, %head4.i
  %b6.2 = icmp slt i64 %b6.1, 8
  %b6.3 = select i1 %b6.2, i64 %b6.1, i64 8
  %b6.4 = insertelement <8 x i64> poison, i64 %b6.3, i64 0
  %b6.5 = shufflevector <8 x i64> %b6.4, <8 x i64> poison, <8 x i32> zeroinitializer
  %b6.6 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %b6.5
  %b6.7 = getelementptr double, ptr %b.2, i64 %head4.i
  %b6.8 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %b6.7, i32 8, <8 x i1> %b6.6, <8 x double> zeroinitializer)
  %b6.9 = fcmp ogt <8 x double> %b6.8, splat (double 0x0000000000000000)
  %b6.10 = fmul <8 x double> %b6.8, %b6.8
  %b6.11 = fneg <8 x double> %b6.10
  %b6.12 = fcmp olt <8 x double> %b6.11, splat (double 0xC087500000000000)
  %b6.13 = select <8 x i1> %b6.12, <8 x double> splat (double 0xC096280000000000), <8 x double> %b6.11
  %b6.14 = fcmp ogt <8 x double> %b6.13, splat (double 0x4086300000000000)
  %b6.15 = select <8 x i1> %b6.14, <8 x double> splat (double 0x4086300000000000), <8 x double> %b6.13
  %b6.16 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.15, <8 x double> splat (double 0x3FF71547652B82FE), <8 x double> splat (double 0x4338000000000000))
  %b6.17 = fsub <8 x double> %b6.16, splat (double 0x4338000000000000)
  %b6.18 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.17, <8 x double> splat (double 0xBFE62E42FEFA39EF), <8 x double> %b6.15)
  %b6.19 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.17, <8 x double> splat (double 0xBC7ABC9E3B39803F), <8 x double> %b6.18)
  %b6.20 = fmul <8 x double> %b6.19, %b6.19
  %b6.21 = call <8 x double> @llvm.fma.v8f64(<8 x double> splat (double 0x3E21F75ABA0B1E2E), <8 x double> %b6.19, <8 x double> splat (double 0x3E5AF52906239DE4))
  %b6.22 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.21, <8 x double> %b6.19, <8 x double> splat (double 0x3E927E4DA1A3BF04))
  %b6.23 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.22, <8 x double> %b6.19, <8 x double> splat (double 0x3EC71DDFFEF9E7B1))
  %b6.24 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.23, <8 x double> %b6.19, <8 x double> splat (double 0x3EFA01A01A741B3C))
  %b6.25 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.24, <8 x double> %b6.19, <8 x double> splat (double 0x3F2A01A01ACA0134))
  %b6.26 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.25, <8 x double> %b6.19, <8 x double> splat (double 0x3F56C16C16C16212))
  %b6.27 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.26, <8 x double> %b6.19, <8 x double> splat (double 0x3F8111111110FF87))
  %b6.28 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.27, <8 x double> %b6.19, <8 x double> splat (double 0x3FA5555555555556))
  %b6.29 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.28, <8 x double> %b6.19, <8 x double> splat (double 0x3FC5555555555557))
  %b6.30 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.29, <8 x double> %b6.19, <8 x double> splat (double 0x3FE0000000000000))
  %b6.31 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.20, <8 x double> %b6.30, <8 x double> %b6.19)
  %b6.32 = fadd <8 x double> %b6.31, splat (double 0x3FF0000000000000)
  %b6.33 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b6.17, <8 x double> splat (double 0x3FE0000000000000), <8 x double> splat (double 0x43380000000003FF))
  %b6.34 = bitcast <8 x double> %b6.33 to <8 x i64>
  %b6.35 = shl <8 x i64> %b6.34, splat (i64 52)
  %b6.36 = bitcast <8 x i64> %b6.35 to <8 x double>
  %b6.37 = fmul <8 x double> %b6.32, %b6.36
  %b6.38 = fsub <8 x double> %b6.33, splat (double 0x43380000000003FF)
  %b6.39 = fsub <8 x double> %b6.17, %b6.38
  %b6.40 = fadd <8 x double> %b6.39, splat (double 0x43380000000003FF)
  %b6.41 = bitcast <8 x double> %b6.40 to <8 x i64>
  %b6.42 = shl <8 x i64> %b6.41, splat (i64 52)
  %b6.43 = bitcast <8 x i64> %b6.42 to <8 x double>
  %b6.44 = fmul <8 x double> %b6.37, %b6.43
  %b6.45 = select <8 x i1> %b6.9, <8 x double> %b6.44, <8 x double> %b6.8
  %b6.46 = getelementptr double, ptr %b.4, i64 %head4.i
  call void @llvm.masked.store.v8f64.p0(<8 x double> %b6.45, ptr %b6.46, i32 8, <8 x i1> %b6.6)
  %b5.1 = add nsw i64 %head4.i, 8
  br label %head4
done4:
  ret void
}
