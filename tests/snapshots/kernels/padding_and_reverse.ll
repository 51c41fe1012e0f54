declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
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
  %b5.4 = icmp sge <16 x i64> %b5.3, splat (i64 -1)
  %b5.5 = icmp slt <16 x i64> %b5.3, splat (i64 30)
  %b5.6 = and <16 x i1> %b5.4, %b5.5
  %b5.7 = and <16 x i1> %b5.6, %b2.11
  %b5.8 = mul nsw i64 %head1.i, 31
  %b5.9 = add nsw i64 -61, %b5.8
  %b5.10 = add nsw i64 %b5.9, %head3.i
  %b5.11 = getelementptr float, ptr %b.2, i64 %b5.10
  %b5.12 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b5.11, i32 4, <16 x i1> %b5.7, <16 x float> zeroinitializer)
  %b5.13 = fneg <16 x float> %b5.12
  %b5.14 = select <16 x i1> %b5.7, <16 x float> %b5.13, <16 x float> splat (float 0x3FF8000000000000)
  %b5.15 = mul <16 x i64> %b5.3, splat (i64 -1)
  %b5.16 = add <16 x i64> %b5.15, splat (i64 33)
  %b5.17 = icmp sge <16 x i64> %b5.16, splat (i64 -1)
  %b5.18 = icmp slt <16 x i64> %b5.16, splat (i64 30)
  %b5.19 = and <16 x i1> %b5.17, %b5.18
  %b5.20 = and <16 x i1> %b5.19, %b2.11
  %b5.21 = mul nsw i64 %head1.i, 31
  %b5.22 = mul nsw i64 %head3.i, -1
  %b5.23 = add nsw i64 -28, %b5.21
  %b5.24 = add nsw i64 %b5.23, %b5.22
  %b5.25 = getelementptr float, ptr %b.2, i64 %b5.24
  %b5.26 = getelementptr float, ptr %b5.25, i64 -15
  %b5.27 = shufflevector <16 x i1> %b5.20, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b5.28 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b5.26, i32 4, <16 x i1> %b5.27, <16 x float> zeroinitializer)
  %b5.29 = shufflevector <16 x float> %b5.28, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b5.30 = fneg <16 x float> %b5.29
  %b5.31 = select <16 x i1> %b5.20, <16 x float> %b5.30, <16 x float> splat (float 0x3FF8000000000000)
  %b5.32 = fadd <16 x float> %b5.14, %b5.31
  %b5.33 = mul nsw i64 %head1.i, 34
  %b5.34 = add nsw i64 %b5.33, %head3.i
  %b5.35 = getelementptr float, ptr %b.4, i64 %b5.34
  store <16 x float> %b5.32, ptr %b5.35, align 4
  %b6.1 = add nsw i64 %head3.i, 16
  %b6.2 = insertelement <16 x i64> poison, i64 %b6.1, i64 0
  %b6.3 = shufflevector <16 x i64> %b6.2, <16 x i64> poison, <16 x i32> zeroinitializer
  %b6.4 = add <16 x i64> %b6.3, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b6.5 = icmp sge <16 x i64> %b6.4, splat (i64 -1)
  %b6.6 = icmp slt <16 x i64> %b6.4, splat (i64 30)
  %b6.7 = and <16 x i1> %b6.5, %b6.6
  %b6.8 = and <16 x i1> %b6.7, %b2.11
  %b6.9 = mul nsw i64 %head1.i, 31
  %b6.10 = add nsw i64 -61, %b6.9
  %b6.11 = add nsw i64 %b6.10, %b6.1
  %b6.12 = getelementptr float, ptr %b.2, i64 %b6.11
  %b6.13 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b6.12, i32 4, <16 x i1> %b6.8, <16 x float> zeroinitializer)
  %b6.14 = fneg <16 x float> %b6.13
  %b6.15 = select <16 x i1> %b6.8, <16 x float> %b6.14, <16 x float> splat (float 0x3FF8000000000000)
  %b6.16 = mul <16 x i64> %b6.4, splat (i64 -1)
  %b6.17 = add <16 x i64> %b6.16, splat (i64 33)
  %b6.18 = icmp sge <16 x i64> %b6.17, splat (i64 -1)
  %b6.19 = icmp slt <16 x i64> %b6.17, splat (i64 30)
  %b6.20 = and <16 x i1> %b6.18, %b6.19
  %b6.21 = and <16 x i1> %b6.20, %b2.11
  %b6.22 = mul nsw i64 %head1.i, 31
  %b6.23 = mul nsw i64 %b6.1, -1
  %b6.24 = add nsw i64 -28, %b6.22
  %b6.25 = add nsw i64 %b6.24, %b6.23
  %b6.26 = getelementptr float, ptr %b.2, i64 %b6.25
  %b6.27 = getelementptr float, ptr %b6.26, i64 -15
  %b6.28 = shufflevector <16 x i1> %b6.21, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b6.29 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b6.27, i32 4, <16 x i1> %b6.28, <16 x float> zeroinitializer)
  %b6.30 = shufflevector <16 x float> %b6.29, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b6.31 = fneg <16 x float> %b6.30
  %b6.32 = select <16 x i1> %b6.21, <16 x float> %b6.31, <16 x float> splat (float 0x3FF8000000000000)
  %b6.33 = fadd <16 x float> %b6.15, %b6.32
  %b6.34 = mul nsw i64 %head1.i, 34
  %b6.35 = add nsw i64 %b6.34, %b6.1
  %b6.36 = getelementptr float, ptr %b.4, i64 %b6.35
  store <16 x float> %b6.33, ptr %b6.36, align 4
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
  %b9.11 = icmp sge <16 x i64> %b9.10, splat (i64 -1)
  %b9.12 = icmp slt <16 x i64> %b9.10, splat (i64 30)
  %b9.13 = and <16 x i1> %b9.11, %b9.12
  %b9.14 = and <16 x i1> %b9.13, %b2.11
  %b9.15 = and <16 x i1> %b9.14, %b9.7
  %b9.16 = mul nsw i64 %head1.i, 31
  %b9.17 = add nsw i64 -61, %b9.16
  %b9.18 = add nsw i64 %b9.17, %head7.i
  %b9.19 = getelementptr float, ptr %b.2, i64 %b9.18
  %b9.20 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.19, i32 4, <16 x i1> %b9.15, <16 x float> zeroinitializer)
  %b9.21 = fneg <16 x float> %b9.20
  %b9.22 = select <16 x i1> %b9.14, <16 x float> %b9.21, <16 x float> splat (float 0x3FF8000000000000)
  %b9.23 = mul <16 x i64> %b9.10, splat (i64 -1)
  %b9.24 = add <16 x i64> %b9.23, splat (i64 33)
  %b9.25 = icmp sge <16 x i64> %b9.24, splat (i64 -1)
  %b9.26 = icmp slt <16 x i64> %b9.24, splat (i64 30)
  %b9.27 = and <16 x i1> %b9.25, %b9.26
  %b9.28 = and <16 x i1> %b9.27, %b2.11
  %b9.29 = and <16 x i1> %b9.28, %b9.7
  %b9.30 = mul nsw i64 %head1.i, 31
  %b9.31 = mul nsw i64 %head7.i, -1
  %b9.32 = add nsw i64 -28, %b9.30
  %b9.33 = add nsw i64 %b9.32, %b9.31
  %b9.34 = getelementptr float, ptr %b.2, i64 %b9.33
  %b9.35 = getelementptr float, ptr %b9.34, i64 -15
  %b9.36 = shufflevector <16 x i1> %b9.29, <16 x i1> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b9.37 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.35, i32 4, <16 x i1> %b9.36, <16 x float> zeroinitializer)
  %b9.38 = shufflevector <16 x float> %b9.37, <16 x float> poison, <16 x i32> <i32 15, i32 14, i32 13, i32 12, i32 11, i32 10, i32 9, i32 8, i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>
  %b9.39 = fneg <16 x float> %b9.38
  %b9.40 = select <16 x i1> %b9.28, <16 x float> %b9.39, <16 x float> splat (float 0x3FF8000000000000)
  %b9.41 = fadd <16 x float> %b9.22, %b9.40
  %b9.42 = mul nsw i64 %head1.i, 34
  %b9.43 = add nsw i64 %b9.42, %head7.i
  %b9.44 = getelementptr float, ptr %b.4, i64 %b9.43
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b9.41, ptr %b9.44, i32 4, <16 x i1> %b9.7)
  %b8.1 = add nsw i64 %head7.i, 16
  br label %head7
done7:
  %b2.15 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
