declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.14, %done7 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.2 = shufflevector <16 x i64> %b2.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.3 = sub nsw i64 31, 0
  %b2.4 = and i64 %b2.3, -16
  %b2.5 = add nsw i64 0, %b2.4
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %body3 ]
  %head3.a0.0.0 = phi <16 x i32> [ splat (i32 -2147483648), %body1 ], [ %c6.2, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.5
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = insertelement <16 x i64> poison, i64 %head3.i, i64 0
  %b5.2 = shufflevector <16 x i64> %b5.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b5.3 = add <16 x i64> %b5.2, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b5.4 = mul nsw i64 %head1.i, 31
  %b5.5 = add nsw i64 %b5.4, %head3.i
  %b5.6 = getelementptr float, ptr %b.2, i64 %b5.5
  %b5.7 = load <16 x float>, ptr %b5.6, align 4
  %b5.8 = fcmp ogt <16 x float> %b5.7, splat (float 0x0000000000000000)
  %b5.9 = trunc <16 x i64> %b5.3 to <16 x i32>
  %b5.10 = select <16 x i1> %b5.8, <16 x i32> %b5.9, <16 x i32> splat (i32 -1)
  %c6.1 = icmp sgt <16 x i32> %head3.a0.0.0, %b5.10
  %c6.2 = select <16 x i1> %c6.1, <16 x i32> %head3.a0.0.0, <16 x i32> %b5.10
  %b4.1 = add nsw i64 %head3.i, 16
  br label %head3
done3:
  br label %head7
head7:
  %head7.i = phi i64 [ %b2.5, %done3 ], [ %b8.1, %body7 ]
  %head7.a0.0.0 = phi <16 x i32> [ %head3.a0.0.0, %done3 ], [ %b9.18, %body7 ]
  %head7.more = icmp slt i64 %head7.i, 31
  br i1 %head7.more, label %body7, label %done7
body7:
  %b9.1 = sub nsw i64 31, %head7.i
  %b9.2 = icmp slt i64 %b9.1, 16
  %b9.3 = select i1 %b9.2, i64 %b9.1, i64 16
  %b9.4 = trunc i64 %b9.3 to i32
  %b9.5 = insertelement <16 x i32> poison, i32 %b9.4, i64 0
  %b9.6 = shufflevector <16 x i32> %b9.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b9.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b9.6
  %b9.8 = insertelement <16 x i64> poison, i64 %head7.i, i64 0
  %b9.9 = shufflevector <16 x i64> %b9.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b9.10 = add <16 x i64> %b9.9, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %b9.11 = mul nsw i64 %head1.i, 31
  %b9.12 = add nsw i64 %b9.11, %head7.i
  %b9.13 = getelementptr float, ptr %b.2, i64 %b9.12
  %b9.14 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b9.13, i32 4, <16 x i1> %b9.7, <16 x float> zeroinitializer)
  %b9.15 = fcmp ogt <16 x float> %b9.14, splat (float 0x0000000000000000)
  %b9.16 = trunc <16 x i64> %b9.10 to <16 x i32>
  %b9.17 = select <16 x i1> %b9.15, <16 x i32> %b9.16, <16 x i32> splat (i32 -1)
  %c10.1 = icmp sgt <16 x i32> %head7.a0.0.0, %b9.17
  %c10.2 = select <16 x i1> %c10.1, <16 x i32> %head7.a0.0.0, <16 x i32> %b9.17
  %b9.18 = select <16 x i1> %b9.7, <16 x i32> %c10.2, <16 x i32> %head7.a0.0.0
  %b8.1 = add nsw i64 %head7.i, 16
  br label %head7
done7:
  %b2.6 = shufflevector <16 x i32> %head7.a0.0.0, <16 x i32> poison, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %c11.1 = icmp sgt <16 x i32> %head7.a0.0.0, %b2.6
  %c11.2 = select <16 x i1> %c11.1, <16 x i32> %head7.a0.0.0, <16 x i32> %b2.6
  %b2.7 = shufflevector <16 x i32> %c11.2, <16 x i32> poison, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3>
  %c12.1 = icmp sgt <16 x i32> %c11.2, %b2.7
  %c12.2 = select <16 x i1> %c12.1, <16 x i32> %c11.2, <16 x i32> %b2.7
  %b2.8 = shufflevector <16 x i32> %c12.2, <16 x i32> poison, <16 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1>
  %c13.1 = icmp sgt <16 x i32> %c12.2, %b2.8
  %c13.2 = select <16 x i1> %c13.1, <16 x i32> %c12.2, <16 x i32> %b2.8
  %b2.9 = shufflevector <16 x i32> %c13.2, <16 x i32> poison, <16 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0>
  %c14.1 = icmp sgt <16 x i32> %c13.2, %b2.9
  %c14.2 = select <16 x i1> %c14.1, <16 x i32> %c13.2, <16 x i32> %b2.9
  %b2.10 = extractelement <16 x i32> %c14.2, i64 0
  %b2.11 = icmp sgt i32 -1, %b2.10
  %b2.12 = select i1 %b2.11, i32 -1, i32 %b2.10
  %b2.13 = getelementptr i32, ptr %b.4, i64 %head1.i
  store i32 %b2.12, ptr %b2.13, align 4
  %b2.14 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
