declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare <16 x float> @llvm.maximum.v16f32(<16 x float>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define internal float @maximum.float(float %a, float %b) alwaysinline nounwind {
  %wins = fcmp ogt float %a, %b
  %better = select i1 %wins, float %a, float %b
  %first = insertelement <4 x float> zeroinitializer, float %a, i64 0
  %second = insertelement <4 x float> zeroinitializer, float %better, i64 0
  %early = bitcast <4 x float> %first to <4 x i32>
  %chosen = bitcast <4 x float> %second to <4 x i32>
  %counts = icmp eq <4 x i32> %early, zeroinitializer
  %sign = select <4 x i1> %counts, <4 x i32> splat (i32 2147483647), <4 x i32> splat (i32 -1)
  %signed = and <4 x i32> %chosen, %sign
  %nan = fcmp uno <4 x float> %first, zeroinitializer
  %joined = select <4 x i1> %nan, <4 x i32> %early, <4 x i32> %signed
  %result = bitcast <4 x i32> %joined to <4 x float>
  %one = extractelement <4 x float> %result, i64 0
  ret float %one
}
define void @phase0(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = alloca float, i64 117, align 64
  %b.6 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.6, align 64
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.32, %done34 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.2 = shufflevector <16 x i64> %b2.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.3 = sub nsw i64 53, 0
  %b2.4 = and i64 %b2.3, -32
  %b2.5 = add nsw i64 0, %b2.4
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %body3 ]
  %head3.a0.0.0 = phi <16 x float> [ splat (float 0xFFF0000000000000), %body1 ], [ %c6.1, %body3 ]
  %head3.a1.0.0 = phi <16 x float> [ splat (float 0xFFF0000000000000), %body1 ], [ %c8.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.5
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = mul nsw i64 %head1.i, 53
  %b5.2 = add nsw i64 %b5.1, %head3.i
  %b5.3 = getelementptr float, ptr %b.2, i64 %b5.2
  %b5.4 = load <16 x float>, ptr %b5.3, align 4
  %c6.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %head3.a0.0.0, <16 x float> %b5.4)
  %b7.1 = add nsw i64 %head3.i, 16
  %b7.2 = mul nsw i64 %head1.i, 53
  %b7.3 = add nsw i64 %b7.2, %b7.1
  %b7.4 = getelementptr float, ptr %b.2, i64 %b7.3
  %b7.5 = load <16 x float>, ptr %b7.4, align 4
  %c8.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %head3.a1.0.0, <16 x float> %b7.5)
  %b4.1 = add nsw i64 %head3.i, 32
  br label %head3
done3:
  %c9.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %head3.a0.0.0, <16 x float> %head3.a1.0.0)
  br label %head10
head10:
  %head10.i = phi i64 [ %b2.5, %done3 ], [ %b11.1, %body10 ]
  %head10.a0.0.0 = phi <16 x float> [ %c9.1, %done3 ], [ %b12.12, %body10 ]
  %head10.more = icmp slt i64 %head10.i, 53
  br i1 %head10.more, label %body10, label %done10
body10:
  %b12.1 = sub nsw i64 53, %head10.i
  %b12.2 = icmp slt i64 %b12.1, 16
  %b12.3 = select i1 %b12.2, i64 %b12.1, i64 16
  %b12.4 = trunc i64 %b12.3 to i32
  %b12.5 = insertelement <16 x i32> poison, i32 %b12.4, i64 0
  %b12.6 = shufflevector <16 x i32> %b12.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b12.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b12.6
  %b12.8 = mul nsw i64 %head1.i, 53
  %b12.9 = add nsw i64 %b12.8, %head10.i
  %b12.10 = getelementptr float, ptr %b.2, i64 %b12.9
  %b12.11 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b12.10, i32 4, <16 x i1> %b12.7, <16 x float> zeroinitializer)
  %c13.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %head10.a0.0.0, <16 x float> %b12.11)
  %b12.12 = select <16 x i1> %b12.7, <16 x float> %c13.1, <16 x float> %head10.a0.0.0
  %b11.1 = add nsw i64 %head10.i, 16
  br label %head10
done10:
  %b2.6 = shufflevector <16 x float> %head10.a0.0.0, <16 x float> poison, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %c14.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %head10.a0.0.0, <16 x float> %b2.6)
  %b2.7 = shufflevector <16 x float> %c14.1, <16 x float> poison, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3>
  %c15.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %c14.1, <16 x float> %b2.7)
  %b2.8 = shufflevector <16 x float> %c15.1, <16 x float> poison, <16 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1>
  %c16.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %c15.1, <16 x float> %b2.8)
  %b2.9 = shufflevector <16 x float> %c16.1, <16 x float> poison, <16 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0>
  %c17.1 = call <16 x float> @llvm.maximum.v16f32(<16 x float> %c16.1, <16 x float> %b2.9)
  %b2.10 = extractelement <16 x float> %c17.1, i64 0
  %b2.11 = call float @maximum.float(float 0xFFF0000000000000, float %b2.10)
  %b2.12 = insertelement <16 x float> poison, float %b2.10, i64 0
  %b2.13 = shufflevector <16 x float> %b2.12, <16 x float> poison, <16 x i32> zeroinitializer
  %b2.14 = insertelement <16 x float> poison, float %b2.11, i64 0
  %b2.15 = shufflevector <16 x float> %b2.14, <16 x float> poison, <16 x i32> zeroinitializer
  %b2.16 = sub nsw i64 53, 0
  %b2.17 = and i64 %b2.16, -16
  %b2.18 = add nsw i64 0, %b2.17
  br label %head18
head18:
  %head18.i = phi i64 [ 0, %done10 ], [ %b19.1, %body18 ]
  %head18.a0.0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %done10 ], [ %c21.1, %body18 ]
  %head18.more = icmp slt i64 %head18.i, %b2.18
  br i1 %head18.more, label %body18, label %done18
body18:
  %b20.1 = mul nsw i64 %head1.i, 53
  %b20.2 = add nsw i64 %b20.1, %head18.i
  %b20.3 = getelementptr float, ptr %b.2, i64 %b20.2
  %b20.4 = load <16 x float>, ptr %b20.3, align 4
  %b20.5 = fsub <16 x float> %b20.4, %b2.15
  %b20.6 = fcmp olt <16 x float> %b20.5, splat (float 0xC05A000000000000)
  %b20.7 = select <16 x i1> %b20.6, <16 x float> splat (float 0xC066000000000000), <16 x float> %b20.5
  %b20.8 = fcmp ogt <16 x float> %b20.7, splat (float 0x4056400000000000)
  %b20.9 = select <16 x i1> %b20.8, <16 x float> splat (float 0x4056400000000000), <16 x float> %b20.7
  %b20.10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.9, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %b20.11 = fsub <16 x float> %b20.10, splat (float 0x4168000000000000)
  %b20.12 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.11, <16 x float> splat (float 0xBFE62E4300000000), <16 x float> %b20.9)
  %b20.13 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.11, <16 x float> splat (float 0x3E205C6100000000), <16 x float> %b20.12)
  %b20.14 = fmul <16 x float> %b20.13, %b20.13
  %b20.15 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F2A12A420000000), <16 x float> %b20.13, <16 x float> splat (float 0x3F56D49200000000))
  %b20.16 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.15, <16 x float> %b20.13, <16 x float> splat (float 0x3F81110E00000000))
  %b20.17 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.16, <16 x float> %b20.13, <16 x float> splat (float 0x3FA5554E40000000))
  %b20.18 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.17, <16 x float> %b20.13, <16 x float> splat (float 0x3FC5555560000000))
  %b20.19 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.18, <16 x float> %b20.13, <16 x float> splat (float 0x3FE0000000000000))
  %b20.20 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.14, <16 x float> %b20.19, <16 x float> %b20.13)
  %b20.21 = fadd <16 x float> %b20.20, splat (float 0x3FF0000000000000)
  %b20.22 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b20.11, <16 x float> splat (float 0x3FE0000000000000), <16 x float> splat (float 0x4168000FE0000000))
  %b20.23 = bitcast <16 x float> %b20.22 to <16 x i32>
  %b20.24 = shl <16 x i32> %b20.23, splat (i32 23)
  %b20.25 = bitcast <16 x i32> %b20.24 to <16 x float>
  %b20.26 = fmul <16 x float> %b20.21, %b20.25
  %b20.27 = fsub <16 x float> %b20.22, splat (float 0x4168000FE0000000)
  %b20.28 = fsub <16 x float> %b20.11, %b20.27
  %b20.29 = fadd <16 x float> %b20.28, splat (float 0x4168000FE0000000)
  %b20.30 = bitcast <16 x float> %b20.29 to <16 x i32>
  %b20.31 = shl <16 x i32> %b20.30, splat (i32 23)
  %b20.32 = bitcast <16 x i32> %b20.31 to <16 x float>
  %b20.33 = fmul <16 x float> %b20.26, %b20.32
  %b20.34 = getelementptr float, ptr %b.5, i64 %head18.i
  store <16 x float> %b20.33, ptr %b20.34, align 4
  %c21.1 = fadd <16 x float> %head18.a0.0.0, %b20.33
  %b19.1 = add nsw i64 %head18.i, 16
  br label %head18
done18:
  br label %head22
head22:
  %head22.i = phi i64 [ %b2.18, %done18 ], [ %b23.1, %body22 ]
  %head22.a0.0.0 = phi <16 x float> [ %head18.a0.0.0, %done18 ], [ %b24.42, %body22 ]
  %head22.more = icmp slt i64 %head22.i, 53
  br i1 %head22.more, label %body22, label %done22
body22:
  %b24.1 = sub nsw i64 53, %head22.i
  %b24.2 = icmp slt i64 %b24.1, 16
  %b24.3 = select i1 %b24.2, i64 %b24.1, i64 16
  %b24.4 = trunc i64 %b24.3 to i32
  %b24.5 = insertelement <16 x i32> poison, i32 %b24.4, i64 0
  %b24.6 = shufflevector <16 x i32> %b24.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b24.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b24.6
  %b24.8 = mul nsw i64 %head1.i, 53
  %b24.9 = add nsw i64 %b24.8, %head22.i
  %b24.10 = getelementptr float, ptr %b.2, i64 %b24.9
  %b24.11 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b24.10, i32 4, <16 x i1> %b24.7, <16 x float> zeroinitializer)
  %b24.12 = fsub <16 x float> %b24.11, %b2.15
  %b24.13 = fcmp olt <16 x float> %b24.12, splat (float 0xC05A000000000000)
  %b24.14 = select <16 x i1> %b24.13, <16 x float> splat (float 0xC066000000000000), <16 x float> %b24.12
  %b24.15 = fcmp ogt <16 x float> %b24.14, splat (float 0x4056400000000000)
  %b24.16 = select <16 x i1> %b24.15, <16 x float> splat (float 0x4056400000000000), <16 x float> %b24.14
  %b24.17 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.16, <16 x float> splat (float 0x3FF7154760000000), <16 x float> splat (float 0x4168000000000000))
  %b24.18 = fsub <16 x float> %b24.17, splat (float 0x4168000000000000)
  %b24.19 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.18, <16 x float> splat (float 0xBFE62E4300000000), <16 x float> %b24.16)
  %b24.20 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.18, <16 x float> splat (float 0x3E205C6100000000), <16 x float> %b24.19)
  %b24.21 = fmul <16 x float> %b24.20, %b24.20
  %b24.22 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F2A12A420000000), <16 x float> %b24.20, <16 x float> splat (float 0x3F56D49200000000))
  %b24.23 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.22, <16 x float> %b24.20, <16 x float> splat (float 0x3F81110E00000000))
  %b24.24 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.23, <16 x float> %b24.20, <16 x float> splat (float 0x3FA5554E40000000))
  %b24.25 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.24, <16 x float> %b24.20, <16 x float> splat (float 0x3FC5555560000000))
  %b24.26 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.25, <16 x float> %b24.20, <16 x float> splat (float 0x3FE0000000000000))
  %b24.27 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.21, <16 x float> %b24.26, <16 x float> %b24.20)
  %b24.28 = fadd <16 x float> %b24.27, splat (float 0x3FF0000000000000)
  %b24.29 = call <16 x float> @llvm.fma.v16f32(<16 x float> %b24.18, <16 x float> splat (float 0x3FE0000000000000), <16 x float> splat (float 0x4168000FE0000000))
  %b24.30 = bitcast <16 x float> %b24.29 to <16 x i32>
  %b24.31 = shl <16 x i32> %b24.30, splat (i32 23)
  %b24.32 = bitcast <16 x i32> %b24.31 to <16 x float>
  %b24.33 = fmul <16 x float> %b24.28, %b24.32
  %b24.34 = fsub <16 x float> %b24.29, splat (float 0x4168000FE0000000)
  %b24.35 = fsub <16 x float> %b24.18, %b24.34
  %b24.36 = fadd <16 x float> %b24.35, splat (float 0x4168000FE0000000)
  %b24.37 = bitcast <16 x float> %b24.36 to <16 x i32>
  %b24.38 = shl <16 x i32> %b24.37, splat (i32 23)
  %b24.39 = bitcast <16 x i32> %b24.38 to <16 x float>
  %b24.40 = fmul <16 x float> %b24.33, %b24.39
  %b24.41 = getelementptr float, ptr %b.5, i64 %head22.i
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b24.40, ptr %b24.41, i32 4, <16 x i1> %b24.7)
  %c25.1 = fadd <16 x float> %head22.a0.0.0, %b24.40
  %b24.42 = select <16 x i1> %b24.7, <16 x float> %c25.1, <16 x float> %head22.a0.0.0
  %b23.1 = add nsw i64 %head22.i, 16
  br label %head22
done22:
  %b2.19 = shufflevector <16 x float> %head22.a0.0.0, <16 x float> poison, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %c26.1 = fadd <16 x float> %head22.a0.0.0, %b2.19
  %b2.20 = shufflevector <16 x float> %c26.1, <16 x float> poison, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3>
  %c27.1 = fadd <16 x float> %c26.1, %b2.20
  %b2.21 = shufflevector <16 x float> %c27.1, <16 x float> poison, <16 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1>
  %c28.1 = fadd <16 x float> %c27.1, %b2.21
  %b2.22 = shufflevector <16 x float> %c28.1, <16 x float> poison, <16 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0>
  %c29.1 = fadd <16 x float> %c28.1, %b2.22
  %b2.23 = extractelement <16 x float> %c29.1, i64 0
  %b2.24 = fadd float 0x0000000000000000, %b2.23
  %b2.25 = insertelement <16 x float> poison, float %b2.23, i64 0
  %b2.26 = shufflevector <16 x float> %b2.25, <16 x float> poison, <16 x i32> zeroinitializer
  %b2.27 = insertelement <16 x float> poison, float %b2.24, i64 0
  %b2.28 = shufflevector <16 x float> %b2.27, <16 x float> poison, <16 x i32> zeroinitializer
  %b2.29 = sub nsw i64 53, 0
  %b2.30 = and i64 %b2.29, -32
  %b2.31 = add nsw i64 0, %b2.30
  br label %head30
head30:
  %head30.i = phi i64 [ 0, %done22 ], [ %b31.1, %body30 ]
  %head30.more = icmp slt i64 %head30.i, %b2.31
  br i1 %head30.more, label %body30, label %done30
body30:
  %b32.1 = getelementptr float, ptr %b.5, i64 %head30.i
  %b32.2 = load <16 x float>, ptr %b32.1, align 4
  %b32.3 = fdiv <16 x float> %b32.2, %b2.28
  %b32.4 = mul nsw i64 %head1.i, 53
  %b32.5 = add nsw i64 %b32.4, %head30.i
  %b32.6 = getelementptr float, ptr %b.4, i64 %b32.5
  store <16 x float> %b32.3, ptr %b32.6, align 4
  %b33.1 = add nsw i64 %head30.i, 16
  %b33.2 = getelementptr float, ptr %b.5, i64 %b33.1
  %b33.3 = load <16 x float>, ptr %b33.2, align 4
  %b33.4 = fdiv <16 x float> %b33.3, %b2.28
  %b33.5 = mul nsw i64 %head1.i, 53
  %b33.6 = add nsw i64 %b33.5, %b33.1
  %b33.7 = getelementptr float, ptr %b.4, i64 %b33.6
  store <16 x float> %b33.4, ptr %b33.7, align 4
  %b31.1 = add nsw i64 %head30.i, 32
  br label %head30
done30:
  br label %head34
head34:
  %head34.i = phi i64 [ %b2.31, %done30 ], [ %b35.1, %body34 ]
  %head34.more = icmp slt i64 %head34.i, 53
  br i1 %head34.more, label %body34, label %done34
body34:
  %b36.1 = sub nsw i64 53, %head34.i
  %b36.2 = icmp slt i64 %b36.1, 16
  %b36.3 = select i1 %b36.2, i64 %b36.1, i64 16
  %b36.4 = trunc i64 %b36.3 to i32
  %b36.5 = insertelement <16 x i32> poison, i32 %b36.4, i64 0
  %b36.6 = shufflevector <16 x i32> %b36.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b36.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b36.6
  %b36.8 = getelementptr float, ptr %b.5, i64 %head34.i
  %b36.9 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b36.8, i32 4, <16 x i1> %b36.7, <16 x float> zeroinitializer)
  %b36.10 = fdiv <16 x float> %b36.9, %b2.28
  %b36.11 = mul nsw i64 %head1.i, 53
  %b36.12 = add nsw i64 %b36.11, %head34.i
  %b36.13 = getelementptr float, ptr %b.4, i64 %b36.12
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b36.10, ptr %b36.13, i32 4, <16 x i1> %b36.7)
  %b35.1 = add nsw i64 %head34.i, 16
  br label %head34
done34:
  %b2.32 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
