declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.ssub.sat.i64(i64, i64)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define void @phase0(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.5, align 64
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.15, %done7 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = icmp sge i64 %head1.i, 2
  %b2.2 = icmp slt i64 %head1.i, 22
  %b2.3 = and i1 %b2.1, %b2.2
  %b2.4 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.5 = shufflevector <16 x i64> %b2.4, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.6 = insertelement <16 x i1> poison, i1 %b2.1, i64 0
  %b2.7 = shufflevector <16 x i1> %b2.6, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.8 = insertelement <16 x i1> poison, i1 %b2.2, i64 0
  %b2.9 = shufflevector <16 x i1> %b2.8, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.10 = insertelement <16 x i1> poison, i1 %b2.3, i64 0
  %b2.11 = shufflevector <16 x i1> %b2.10, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.12 = sub nsw i64 34, 0
  %b2.13 = and i64 %b2.12, -32
  %b2.14 = add nsw i64 0, %b2.13
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.14
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = insertelement <16 x i64> poison, i64 %head3.i, i64 0
  %b5.2 = shufflevector <16 x i64> %b5.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b5.3 = add <16 x i64> %b5.2, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b5.4 = call i64 @llvm.ssub.sat.i64(i64 30, i64 %head3.i)
  %b5.5 = call i64 @llvm.smax.i64(i64 %b5.4, i64 -1)
  %b5.6 = call i64 @llvm.smin.i64(i64 %b5.5, i64 16)
  %b5.7 = trunc i64 %b5.6 to i8
  %b5.8 = insertelement <16 x i8> poison, i8 %b5.7, i64 0
  %b5.9 = shufflevector <16 x i8> %b5.8, <16 x i8> poison, <16 x i32> zeroinitializer
  %b5.10 = icmp slt <16 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8, i8 9, i8 10, i8 11, i8 12, i8 13, i8 14, i8 15>, %b5.9
  %b5.11 = and <16 x i1> splat (i1 true), %b5.10
  %b5.12 = and <16 x i1> %b5.11, %b2.11
  %b5.13 = mul nsw i64 %head1.i, 31
  %b5.14 = add nsw i64 %b5.13, %head3.i
  %b5.15 = getelementptr float, ptr %b.2, i64 %b5.14
  %b5.16 = getelementptr float, ptr %b5.15, i64 -61
  %b5.17 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b5.16, i32 4, <16 x i1> %b5.12, <16 x float> zeroinitializer)
  %b5.18 = fneg <16 x float> %b5.17
  %b5.19 = select <16 x i1> %b5.12, <16 x float> %b5.18, <16 x float> splat (float 0x3FF8000000000000)
  %b5.20 = mul <16 x i64> %b5.3, splat (i64 -1)
  %b5.21 = add <16 x i64> %b5.20, splat (i64 33)
  %b5.22 = icmp slt <16 x i64> %b5.21, splat (i64 30)
  %b5.23 = and <16 x i1> splat (i1 true), %b5.22
  %b5.24 = and <16 x i1> %b5.23, %b2.11
  %b5.25 = mul nsw i64 %head1.i, 31
  %b5.26 = mul nsw i64 %head3.i, -1
  %b5.27 = add nsw i64 %b5.25, %b5.26
  %b5.28 = getelementptr float, ptr %b.2, i64 %b5.27
  %b5.29 = getelementptr float, ptr %b5.28, i64 -28
  %b5.30 = getelementptr float, ptr %b5.29, i64 -15
  %b5.31 = shufflevector <16 x i1> %b5.24, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b5.32 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b5.30, i32 4, <16 x i1> %b5.31, <16 x float> zeroinitializer)
  %b5.33 = shufflevector <16 x float> %b5.32, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b5.34 = fneg <16 x float> %b5.33
  %b5.35 = select <16 x i1> %b5.24, <16 x float> %b5.34, <16 x float> splat (float 0x3FF8000000000000)
  %b5.36 = fadd <16 x float> %b5.19, %b5.35
  %b5.37 = mul nsw i64 %head1.i, 34
  %b5.38 = add nsw i64 %b5.37, %head3.i
  %b5.39 = getelementptr float, ptr %b.4, i64 %b5.38
  store <16 x float> %b5.36, ptr %b5.39, align 4
  %b6.1 = add nsw i64 %head3.i, 16
  %b6.2 = insertelement <16 x i64> poison, i64 %b6.1, i64 0
  %b6.3 = shufflevector <16 x i64> %b6.2, <16 x i64> poison, <16 x i32> zeroinitializer
  %b6.4 = add <16 x i64> %b6.3, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b6.5 = call i64 @llvm.ssub.sat.i64(i64 30, i64 %b6.1)
  %b6.6 = call i64 @llvm.smax.i64(i64 %b6.5, i64 -1)
  %b6.7 = call i64 @llvm.smin.i64(i64 %b6.6, i64 16)
  %b6.8 = trunc i64 %b6.7 to i8
  %b6.9 = insertelement <16 x i8> poison, i8 %b6.8, i64 0
  %b6.10 = shufflevector <16 x i8> %b6.9, <16 x i8> poison, <16 x i32> zeroinitializer
  %b6.11 = icmp slt <16 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8, i8 9, i8 10, i8 11, i8 12, i8 13, i8 14, i8 15>, %b6.10
  %b6.12 = and <16 x i1> splat (i1 true), %b6.11
  %b6.13 = and <16 x i1> %b6.12, %b2.11
  %b6.14 = mul nsw i64 %head1.i, 31
  %b6.15 = add nsw i64 %b6.14, %b6.1
  %b6.16 = getelementptr float, ptr %b.2, i64 %b6.15
  %b6.17 = getelementptr float, ptr %b6.16, i64 -61
  %b6.18 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b6.17, i32 4, <16 x i1> %b6.13, <16 x float> zeroinitializer)
  %b6.19 = fneg <16 x float> %b6.18
  %b6.20 = select <16 x i1> %b6.13, <16 x float> %b6.19, <16 x float> splat (float 0x3FF8000000000000)
  %b6.21 = mul <16 x i64> %b6.4, splat (i64 -1)
  %b6.22 = add <16 x i64> %b6.21, splat (i64 33)
  %b6.23 = icmp slt <16 x i64> %b6.22, splat (i64 30)
  %b6.24 = and <16 x i1> splat (i1 true), %b6.23
  %b6.25 = and <16 x i1> %b6.24, %b2.11
  %b6.26 = mul nsw i64 %head1.i, 31
  %b6.27 = mul nsw i64 %b6.1, -1
  %b6.28 = add nsw i64 %b6.26, %b6.27
  %b6.29 = getelementptr float, ptr %b.2, i64 %b6.28
  %b6.30 = getelementptr float, ptr %b6.29, i64 -28
  %b6.31 = getelementptr float, ptr %b6.30, i64 -15
  %b6.32 = shufflevector <16 x i1> %b6.25, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b6.33 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b6.31, i32 4, <16 x i1> %b6.32, <16 x float> zeroinitializer)
  %b6.34 = shufflevector <16 x float> %b6.33, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b6.35 = fneg <16 x float> %b6.34
  %b6.36 = select <16 x i1> %b6.25, <16 x float> %b6.35, <16 x float> splat (float 0x3FF8000000000000)
  %b6.37 = fadd <16 x float> %b6.20, %b6.36
  %b6.38 = mul nsw i64 %head1.i, 34
  %b6.39 = add nsw i64 %b6.38, %b6.1
  %b6.40 = getelementptr float, ptr %b.4, i64 %b6.39
  store <16 x float> %b6.37, ptr %b6.40, align 4
  %b4.1 = add nsw i64 %head3.i, 32
  br label %head3
done3:
  br label %head7
head7:
  %head7.i = phi i64 [ %b2.14, %done3 ], [ %b8.1, %body7 ]
  %head7.more = icmp slt i64 %head7.i, 34
  br i1 %head7.more, label %body7, label %done7
body7:
  %b9.1 = sub nsw i64 34, %head7.i
  %b9.2 = icmp slt i64 %b9.1, 16
  %b9.3 = select i1 %b9.2, i64 %b9.1, i64 16
  %b9.4 = trunc i64 %b9.3 to i32
  %b9.5 = insertelement <16 x i32> poison, i32 %b9.4, i64 0
  %b9.6 = shufflevector <16 x i32> %b9.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b9.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b9.6
  %b9.8 = insertelement <16 x i64> poison, i64 %head7.i, i64 0
  %b9.9 = shufflevector <16 x i64> %b9.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b9.10 = add <16 x i64> %b9.9, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b9.11 = call i64 @llvm.ssub.sat.i64(i64 30, i64 %head7.i)
  %b9.12 = call i64 @llvm.smax.i64(i64 %b9.11, i64 -1)
  %b9.13 = call i64 @llvm.smin.i64(i64 %b9.12, i64 16)
  %b9.14 = trunc i64 %b9.13 to i8
  %b9.15 = insertelement <16 x i8> poison, i8 %b9.14, i64 0
  %b9.16 = shufflevector <16 x i8> %b9.15, <16 x i8> poison, <16 x i32> zeroinitializer
  %b9.17 = icmp slt <16 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7, i8 8, i8 9, i8 10, i8 11, i8 12, i8 13, i8 14, i8 15>, %b9.16
  %b9.18 = and <16 x i1> splat (i1 true), %b9.17
  %b9.19 = and <16 x i1> %b9.18, %b2.11
  %b9.20 = and <16 x i1> %b9.19, %b9.7
  %b9.21 = mul nsw i64 %head1.i, 31
  %b9.22 = add nsw i64 %b9.21, %head7.i
  %b9.23 = getelementptr float, ptr %b.2, i64 %b9.22
  %b9.24 = getelementptr float, ptr %b9.23, i64 -61
  %b9.25 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.24, i32 4, <16 x i1> %b9.20, <16 x float> zeroinitializer)
  %b9.26 = fneg <16 x float> %b9.25
  %b9.27 = select <16 x i1> %b9.19, <16 x float> %b9.26, <16 x float> splat (float 0x3FF8000000000000)
  %b9.28 = mul <16 x i64> %b9.10, splat (i64 -1)
  %b9.29 = add <16 x i64> %b9.28, splat (i64 33)
  %b9.30 = icmp slt <16 x i64> %b9.29, splat (i64 30)
  %b9.31 = and <16 x i1> splat (i1 true), %b9.30
  %b9.32 = and <16 x i1> %b9.31, %b2.11
  %b9.33 = and <16 x i1> %b9.32, %b9.7
  %b9.34 = mul nsw i64 %head1.i, 31
  %b9.35 = mul nsw i64 %head7.i, -1
  %b9.36 = add nsw i64 %b9.34, %b9.35
  %b9.37 = getelementptr float, ptr %b.2, i64 %b9.36
  %b9.38 = getelementptr float, ptr %b9.37, i64 -28
  %b9.39 = getelementptr float, ptr %b9.38, i64 -15
  %b9.40 = shufflevector <16 x i1> %b9.33, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b9.41 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.39, i32 4, <16 x i1> %b9.40, <16 x float> zeroinitializer)
  %b9.42 = shufflevector <16 x float> %b9.41, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b9.43 = fneg <16 x float> %b9.42
  %b9.44 = select <16 x i1> %b9.32, <16 x float> %b9.43, <16 x float> splat (float 0x3FF8000000000000)
  %b9.45 = fadd <16 x float> %b9.27, %b9.44
  %b9.46 = mul nsw i64 %head1.i, 34
  %b9.47 = add nsw i64 %b9.46, %head7.i
  %b9.48 = getelementptr float, ptr %b.4, i64 %b9.47
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b9.45, ptr %b9.48, i32 4, <16 x i1> %b9.7)
  %b8.1 = add nsw i64 %head7.i, 16
  br label %head7
done7:
  %b2.15 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
