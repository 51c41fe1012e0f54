define void @phase0(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b.6 = load ptr, ptr %b.5, align 8
  %b.7 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.7, align 64
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.22, %body1 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = getelementptr i32, ptr %b.4, i64 %head1.i
  %b2.2 = load i32, ptr %b2.1, align 4
  %b2.3 = sext i32 %b2.2 to i64
  %b2.4 = icmp slt i64 %b2.3, 0
  %b2.5 = select i1 %b2.4, i64 0, i64 %b2.3
  %b2.6 = icmp sgt i64 %b2.5, 19
  %b2.7 = select i1 %b2.6, i64 19, i64 %b2.5
  %b2.8 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.9 = shufflevector <16 x i64> %b2.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.10 = insertelement <16 x i32> poison, i32 %b2.2, i64 0
  %b2.11 = shufflevector <16 x i32> %b2.10, <16 x i32> poison, <16 x i32> zeroinitializer
  %b2.12 = insertelement <16 x i64> poison, i64 %b2.3, i64 0
  %b2.13 = shufflevector <16 x i64> %b2.12, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.14 = insertelement <16 x i1> poison, i1 %b2.4, i64 0
  %b2.15 = shufflevector <16 x i1> %b2.14, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.16 = insertelement <16 x i64> poison, i64 %b2.5, i64 0
  %b2.17 = shufflevector <16 x i64> %b2.16, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.18 = insertelement <16 x i1> poison, i1 %b2.6, i64 0
  %b2.19 = shufflevector <16 x i1> %b2.18, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.20 = insertelement <16 x i64> poison, i64 %b2.7, i64 0
  %b2.21 = shufflevector <16 x i64> %b2.20, <16 x i64> poison, <16 x i32> zeroinitializer
  %b3.1 = mul nsw i64 %b2.7, 16
  %b3.2 = add nsw i64 %b3.1, 0
  %b3.3 = getelementptr float, ptr %b.2, i64 %b3.2
  %b3.4 = load <16 x float>, ptr %b3.3, align 4
  %b3.5 = fmul <16 x float> %b3.4, splat (float 0x4000000000000000)
  %b3.6 = mul nsw i64 %head1.i, 16
  %b3.7 = add nsw i64 %b3.6, 0
  %b3.8 = getelementptr float, ptr %b.6, i64 %b3.7
  store <16 x float> %b3.5, ptr %b3.8, align 4
  %b2.22 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
