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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.13, %done10 ]
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
  %head3.a0.0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body1 ], [ %c6.1, %body3 ]
  %head3.a1.0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body1 ], [ %c8.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.5
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = mul nsw i64 %head1.i, 53
  %b5.2 = add nsw i64 %b5.1, %head3.i
  %b5.3 = getelementptr float, ptr %b.2, i64 %b5.2
  %b5.4 = load <16 x float>, ptr %b5.3, align 4
  %c6.1 = fadd <16 x float> %head3.a0.0.0, %b5.4
  %b7.1 = add nsw i64 %head3.i, 16
  %b7.2 = mul nsw i64 %head1.i, 53
  %b7.3 = add nsw i64 %b7.2, %b7.1
  %b7.4 = getelementptr float, ptr %b.2, i64 %b7.3
  %b7.5 = load <16 x float>, ptr %b7.4, align 4
  %c8.1 = fadd <16 x float> %head3.a1.0.0, %b7.5
  %b4.1 = add nsw i64 %head3.i, 32
  br label %head3
done3:
  %c9.1 = fadd <16 x float> %head3.a0.0.0, %head3.a1.0.0
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
  %c13.1 = fadd <16 x float> %head10.a0.0.0, %b12.11
  %b12.12 = select <16 x i1> %b12.7, <16 x float> %c13.1, <16 x float> %head10.a0.0.0
  %b11.1 = add nsw i64 %head10.i, 16
  br label %head10
done10:
  %b2.6 = shufflevector <16 x float> %head10.a0.0.0, <16 x float> poison, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %c14.1 = fadd <16 x float> %head10.a0.0.0, %b2.6
  %b2.7 = shufflevector <16 x float> %c14.1, <16 x float> poison, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3>
  %c15.1 = fadd <16 x float> %c14.1, %b2.7
  %b2.8 = shufflevector <16 x float> %c15.1, <16 x float> poison, <16 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1>
  %c16.1 = fadd <16 x float> %c15.1, %b2.8
  %b2.9 = shufflevector <16 x float> %c16.1, <16 x float> poison, <16 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0>
  %c17.1 = fadd <16 x float> %c16.1, %b2.9
  %b2.10 = extractelement <16 x float> %c17.1, i64 0
  %b2.11 = fadd float 0x0000000000000000, %b2.10
  %b2.12 = getelementptr float, ptr %b.4, i64 %head1.i
  store float %b2.11, ptr %b2.12, align 4
  %b2.13 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
