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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.6, %done7 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.2 = shufflevector <16 x i64> %b2.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.3 = sub nsw i64 39, 0
  %b2.4 = and i64 %b2.3, -32
  %b2.5 = add nsw i64 0, %b2.4
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.5
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = insertelement <16 x i64> poison, i64 %head3.i, i64 0
  %b5.2 = shufflevector <16 x i64> %b5.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b5.3 = add <16 x i64> %b5.2, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b5.4 = mul nsw i64 %head1.i, 41
  %b5.5 = add nsw i64 1, %b5.4
  %b5.6 = add nsw i64 %b5.5, %head3.i
  %b5.7 = getelementptr float, ptr %b.2, i64 %b5.6
  %b5.8 = load <16 x float>, ptr %b5.7, align 4
  %b5.9 = mul nsw i64 %head1.i, 41
  %b5.10 = add nsw i64 83, %b5.9
  %b5.11 = add nsw i64 %b5.10, %head3.i
  %b5.12 = getelementptr float, ptr %b.2, i64 %b5.11
  %b5.13 = load <16 x float>, ptr %b5.12, align 4
  %b5.14 = fadd <16 x float> %b5.8, %b5.13
  %b5.15 = mul nsw i64 %head1.i, 41
  %b5.16 = add nsw i64 41, %b5.15
  %b5.17 = add nsw i64 %b5.16, %head3.i
  %b5.18 = getelementptr float, ptr %b.2, i64 %b5.17
  %b5.19 = load <16 x float>, ptr %b5.18, align 4
  %b5.20 = mul nsw i64 %head1.i, 41
  %b5.21 = add nsw i64 43, %b5.20
  %b5.22 = add nsw i64 %b5.21, %head3.i
  %b5.23 = getelementptr float, ptr %b.2, i64 %b5.22
  %b5.24 = load <16 x float>, ptr %b5.23, align 4
  %b5.25 = fadd <16 x float> %b5.19, %b5.24
  %b5.26 = fadd <16 x float> %b5.14, %b5.25
  %b5.27 = mul nsw i64 %head1.i, 39
  %b5.28 = add nsw i64 %b5.27, %head3.i
  %b5.29 = getelementptr float, ptr %b.4, i64 %b5.28
  store <16 x float> %b5.26, ptr %b5.29, align 4
  %b6.1 = add nsw i64 %head3.i, 16
  %b6.2 = insertelement <16 x i64> poison, i64 %b6.1, i64 0
  %b6.3 = shufflevector <16 x i64> %b6.2, <16 x i64> poison, <16 x i32> zeroinitializer
  %b6.4 = add <16 x i64> %b6.3, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b6.5 = mul nsw i64 %head1.i, 41
  %b6.6 = add nsw i64 1, %b6.5
  %b6.7 = add nsw i64 %b6.6, %b6.1
  %b6.8 = getelementptr float, ptr %b.2, i64 %b6.7
  %b6.9 = load <16 x float>, ptr %b6.8, align 4
  %b6.10 = mul nsw i64 %head1.i, 41
  %b6.11 = add nsw i64 83, %b6.10
  %b6.12 = add nsw i64 %b6.11, %b6.1
  %b6.13 = getelementptr float, ptr %b.2, i64 %b6.12
  %b6.14 = load <16 x float>, ptr %b6.13, align 4
  %b6.15 = fadd <16 x float> %b6.9, %b6.14
  %b6.16 = mul nsw i64 %head1.i, 41
  %b6.17 = add nsw i64 41, %b6.16
  %b6.18 = add nsw i64 %b6.17, %b6.1
  %b6.19 = getelementptr float, ptr %b.2, i64 %b6.18
  %b6.20 = load <16 x float>, ptr %b6.19, align 4
  %b6.21 = mul nsw i64 %head1.i, 41
  %b6.22 = add nsw i64 43, %b6.21
  %b6.23 = add nsw i64 %b6.22, %b6.1
  %b6.24 = getelementptr float, ptr %b.2, i64 %b6.23
  %b6.25 = load <16 x float>, ptr %b6.24, align 4
  %b6.26 = fadd <16 x float> %b6.20, %b6.25
  %b6.27 = fadd <16 x float> %b6.15, %b6.26
  %b6.28 = mul nsw i64 %head1.i, 39
  %b6.29 = add nsw i64 %b6.28, %b6.1
  %b6.30 = getelementptr float, ptr %b.4, i64 %b6.29
  store <16 x float> %b6.27, ptr %b6.30, align 4
  %b4.1 = add nsw i64 %head3.i, 32
  br label %head3
done3:
  br label %head7
head7:
  %head7.i = phi i64 [ %b2.5, %done3 ], [ %b8.1, %body7 ]
  %head7.more = icmp slt i64 %head7.i, 39
  br i1 %head7.more, label %body7, label %done7
body7:
  %b9.1 = sub nsw i64 39, %head7.i
  %b9.2 = icmp slt i64 %b9.1, 16
  %b9.3 = select i1 %b9.2, i64 %b9.1, i64 16
  %b9.4 = trunc i64 %b9.3 to i32
  %b9.5 = insertelement <16 x i32> poison, i32 %b9.4, i64 0
  %b9.6 = shufflevector <16 x i32> %b9.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b9.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b9.6
  %b9.8 = insertelement <16 x i64> poison, i64 %head7.i, i64 0
  %b9.9 = shufflevector <16 x i64> %b9.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b9.10 = add <16 x i64> %b9.9, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b9.11 = mul nsw i64 %head1.i, 41
  %b9.12 = add nsw i64 1, %b9.11
  %b9.13 = add nsw i64 %b9.12, %head7.i
  %b9.14 = getelementptr float, ptr %b.2, i64 %b9.13
  %b9.15 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.14, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.16 = mul nsw i64 %head1.i, 41
  %b9.17 = add nsw i64 83, %b9.16
  %b9.18 = add nsw i64 %b9.17, %head7.i
  %b9.19 = getelementptr float, ptr %b.2, i64 %b9.18
  %b9.20 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.19, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.21 = fadd <16 x float> %b9.15, %b9.20
  %b9.22 = mul nsw i64 %head1.i, 41
  %b9.23 = add nsw i64 41, %b9.22
  %b9.24 = add nsw i64 %b9.23, %head7.i
  %b9.25 = getelementptr float, ptr %b.2, i64 %b9.24
  %b9.26 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.25, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.27 = mul nsw i64 %head1.i, 41
  %b9.28 = add nsw i64 43, %b9.27
  %b9.29 = add nsw i64 %b9.28, %head7.i
  %b9.30 = getelementptr float, ptr %b.2, i64 %b9.29
  %b9.31 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.30, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.32 = fadd <16 x float> %b9.26, %b9.31
  %b9.33 = fadd <16 x float> %b9.21, %b9.32
  %b9.34 = mul nsw i64 %head1.i, 39
  %b9.35 = add nsw i64 %b9.34, %head7.i
  %b9.36 = getelementptr float, ptr %b.4, i64 %b9.35
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b9.33, ptr %b9.36, i32 4, <16 x i1> %b9.7)
  %b8.1 = add nsw i64 %head7.i, 16
  br label %head7
done7:
  %b2.6 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
