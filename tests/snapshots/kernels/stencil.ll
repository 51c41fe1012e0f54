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
  %b5.1 = mul nsw i64 %head1.i, 41
  %b5.2 = add nsw i64 %b5.1, %head3.i
  %b5.3 = getelementptr float, ptr %b.2, i64 %b5.2
  %b5.4 = getelementptr float, ptr %b5.3, i64 1
  %b5.5 = load <16 x float>, ptr %b5.4, align 4
  %b5.6 = getelementptr float, ptr %b5.3, i64 83
  %b5.7 = load <16 x float>, ptr %b5.6, align 4
  %b5.8 = fadd <16 x float> %b5.5, %b5.7
  %b5.9 = getelementptr float, ptr %b5.3, i64 41
  %b5.10 = load <16 x float>, ptr %b5.9, align 4
  %b5.11 = getelementptr float, ptr %b5.3, i64 43
  %b5.12 = load <16 x float>, ptr %b5.11, align 4
  %b5.13 = fadd <16 x float> %b5.10, %b5.12
  %b5.14 = fadd <16 x float> %b5.8, %b5.13
  %b5.15 = mul nsw i64 %head1.i, 39
  %b5.16 = add nsw i64 %b5.15, %head3.i
  %b5.17 = getelementptr float, ptr %b.4, i64 %b5.16
  store <16 x float> %b5.14, ptr %b5.17, align 4
  %b6.1 = add nsw i64 %head3.i, 16
  %b6.2 = mul nsw i64 %head1.i, 41
  %b6.3 = add nsw i64 %b6.2, %b6.1
  %b6.4 = getelementptr float, ptr %b.2, i64 %b6.3
  %b6.5 = getelementptr float, ptr %b6.4, i64 1
  %b6.6 = load <16 x float>, ptr %b6.5, align 4
  %b6.7 = getelementptr float, ptr %b6.4, i64 83
  %b6.8 = load <16 x float>, ptr %b6.7, align 4
  %b6.9 = fadd <16 x float> %b6.6, %b6.8
  %b6.10 = getelementptr float, ptr %b6.4, i64 41
  %b6.11 = load <16 x float>, ptr %b6.10, align 4
  %b6.12 = getelementptr float, ptr %b6.4, i64 43
  %b6.13 = load <16 x float>, ptr %b6.12, align 4
  %b6.14 = fadd <16 x float> %b6.11, %b6.13
  %b6.15 = fadd <16 x float> %b6.9, %b6.14
  %b6.16 = mul nsw i64 %head1.i, 39
  %b6.17 = add nsw i64 %b6.16, %b6.1
  %b6.18 = getelementptr float, ptr %b.4, i64 %b6.17
  store <16 x float> %b6.15, ptr %b6.18, align 4
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
  %b9.8 = mul nsw i64 %head1.i, 41
  %b9.9 = add nsw i64 %b9.8, %head7.i
  %b9.10 = getelementptr float, ptr %b.2, i64 %b9.9
  %b9.11 = getelementptr float, ptr %b9.10, i64 1
  %b9.12 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.11, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.13 = getelementptr float, ptr %b9.10, i64 83
  %b9.14 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.13, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.15 = fadd <16 x float> %b9.12, %b9.14
  %b9.16 = getelementptr float, ptr %b9.10, i64 41
  %b9.17 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.16, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.18 = getelementptr float, ptr %b9.10, i64 43
  %b9.19 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.18, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.20 = fadd <16 x float> %b9.17, %b9.19
  %b9.21 = fadd <16 x float> %b9.15, %b9.20
  %b9.22 = mul nsw i64 %head1.i, 39
  %b9.23 = add nsw i64 %b9.22, %head7.i
  %b9.24 = getelementptr float, ptr %b.4, i64 %b9.23
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b9.21, ptr %b9.24, i32 4, <16 x i1> %b9.7)
  %b8.1 = add nsw i64 %head7.i, 16
  br label %head7
done7:
  %b2.6 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
