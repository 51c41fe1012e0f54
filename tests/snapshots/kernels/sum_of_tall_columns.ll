declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)
define void @phase0(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b.6 = load ptr, ptr %b.5, align 8
  %b.7 = getelementptr inbounds ptr, ptr %buffers, i64 3
  %b.8 = load ptr, ptr %b.7, align 8
  %b.9 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.9, align 64
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.21, %done9 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = mul i64 %head1.i, 2520
  %b2.2 = mul i64 %b2.1, -1
  %b2.3 = add i64 %b2.2, 9001
  %b2.4 = icmp slt i64 %b2.3, 2520
  %b2.5 = select i1 %b2.4, i64 %b2.3, i64 2520
  %b2.6 = insertelement <16 x i64> poison, i64 %head1.i, i64 0
  %b2.7 = shufflevector <16 x i64> %b2.6, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.8 = insertelement <16 x i64> poison, i64 %b2.1, i64 0
  %b2.9 = shufflevector <16 x i64> %b2.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.10 = insertelement <16 x i64> poison, i64 %b2.2, i64 0
  %b2.11 = shufflevector <16 x i64> %b2.10, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.12 = insertelement <16 x i64> poison, i64 %b2.3, i64 0
  %b2.13 = shufflevector <16 x i64> %b2.12, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.14 = insertelement <16 x i1> poison, i1 %b2.4, i64 0
  %b2.15 = shufflevector <16 x i1> %b2.14, <16 x i1> poison, <16 x i32> zeroinitializer
  %b2.16 = insertelement <16 x i64> poison, i64 %b2.5, i64 0
  %b2.17 = shufflevector <16 x i64> %b2.16, <16 x i64> poison, <16 x i32> zeroinitializer
  %b2.18 = sub nsw i64 13, 0
  %b2.19 = and i64 %b2.18, -16
  %b2.20 = add nsw i64 0, %b2.19
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %done6 ]
  %head3.more = icmp slt i64 %head3.i, %b2.20
  br i1 %head3.more, label %body3, label %done3
body3:
  br label %head6
head6:
  %head6.i = phi i64 [ 0, %body3 ], [ %b7.7, %body6 ]
  %head6.a0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body3 ], [ %c8.1, %body6 ]
  %head6.more = icmp slt i64 %head6.i, %b2.5
  br i1 %head6.more, label %body6, label %done6
body6:
  %b7.1 = mul nsw i64 %head6.i, 13
  %b7.2 = mul nsw i64 %head1.i, 32760
  %b7.3 = add nsw i64 %b7.1, %b7.2
  %b7.4 = add nsw i64 %b7.3, %head3.i
  %b7.5 = getelementptr float, ptr %b.2, i64 %b7.4
  %b7.6 = load <16 x float>, ptr %b7.5, align 4
  %c8.1 = fadd <16 x float> %head6.a0.0, %b7.6
  %b7.7 = add nsw i64 %head6.i, 1
  br label %head6
done6:
  %b5.1 = mul nsw i64 %head1.i, 13
  %b5.2 = add nsw i64 %b5.1, %head3.i
  %b5.3 = getelementptr float, ptr %b.6, i64 %b5.2
  store <16 x float> %head6.a0.0, ptr %b5.3, align 4
  %b4.1 = add nsw i64 %head3.i, 16
  br label %head3
done3:
  br label %head9
head9:
  %head9.i = phi i64 [ %b2.20, %done3 ], [ %b10.1, %done12 ]
  %head9.more = icmp slt i64 %head9.i, 13
  br i1 %head9.more, label %body9, label %done9
body9:
  %b11.1 = sub nsw i64 13, %head9.i
  %b11.2 = icmp slt i64 %b11.1, 16
  %b11.3 = select i1 %b11.2, i64 %b11.1, i64 16
  %b11.4 = trunc i64 %b11.3 to i32
  %b11.5 = insertelement <16 x i32> poison, i32 %b11.4, i64 0
  %b11.6 = shufflevector <16 x i32> %b11.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b11.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b11.6
  br label %head12
head12:
  %head12.i = phi i64 [ 0, %body9 ], [ %b13.7, %body12 ]
  %head12.a0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body9 ], [ %c14.1, %body12 ]
  %head12.more = icmp slt i64 %head12.i, %b2.5
  br i1 %head12.more, label %body12, label %done12
body12:
  %b13.1 = mul nsw i64 %head12.i, 13
  %b13.2 = mul nsw i64 %head1.i, 32760
  %b13.3 = add nsw i64 %b13.1, %b13.2
  %b13.4 = add nsw i64 %b13.3, %head9.i
  %b13.5 = getelementptr float, ptr %b.2, i64 %b13.4
  %b13.6 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b13.5, i32 4, <16 x i1> %b11.7, <16 x float> zeroinitializer)
  %c14.1 = fadd <16 x float> %head12.a0.0, %b13.6
  %b13.7 = add nsw i64 %head12.i, 1
  br label %head12
done12:
  %b11.8 = mul nsw i64 %head1.i, 13
  %b11.9 = add nsw i64 %b11.8, %head9.i
  %b11.10 = getelementptr float, ptr %b.6, i64 %b11.9
  call void @llvm.masked.store.v16f32.p0(<16 x float> %head12.a0.0, ptr %b11.10, i32 4, <16 x i1> %b11.7)
  %b10.1 = add nsw i64 %head9.i, 16
  br label %head9
done9:
  %b2.21 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
define void @phase1(ptr %buffers, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" {
entry:
  %b.1 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b.2 = load ptr, ptr %b.1, align 8
  %b.3 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b.4 = load ptr, ptr %b.3, align 8
  %b.5 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b.6 = load ptr, ptr %b.5, align 8
  %b.7 = getelementptr inbounds ptr, ptr %buffers, i64 3
  %b.8 = load ptr, ptr %b.7, align 8
  %b.9 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.9, align 64
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.4, %done9 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = sub nsw i64 13, 0
  %b2.2 = and i64 %b2.1, -16
  %b2.3 = add nsw i64 0, %b2.2
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %done6 ]
  %head3.more = icmp slt i64 %head3.i, %b2.3
  br i1 %head3.more, label %body3, label %done3
body3:
  br label %head6
head6:
  %head6.i = phi i64 [ 0, %body3 ], [ %b7.5, %body6 ]
  %head6.a0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body3 ], [ %c8.1, %body6 ]
  %head6.more = icmp slt i64 %head6.i, 4
  br i1 %head6.more, label %body6, label %done6
body6:
  %b7.1 = mul nsw i64 %head6.i, 13
  %b7.2 = add nsw i64 %b7.1, %head3.i
  %b7.3 = getelementptr float, ptr %b.6, i64 %b7.2
  %b7.4 = load <16 x float>, ptr %b7.3, align 4
  %c8.1 = fadd <16 x float> %head6.a0.0, %b7.4
  %b7.5 = add nsw i64 %head6.i, 1
  br label %head6
done6:
  %b5.1 = fadd <16 x float> splat (float 0x0000000000000000), %head6.a0.0
  %b5.2 = getelementptr float, ptr %b.8, i64 %head3.i
  store <16 x float> %b5.1, ptr %b5.2, align 4
  %b5.3 = getelementptr float, ptr %b.4, i64 %head3.i
  store <16 x float> %b5.1, ptr %b5.3, align 4
  %b4.1 = add nsw i64 %head3.i, 16
  br label %head3
done3:
  br label %head9
head9:
  %head9.i = phi i64 [ %b2.3, %done3 ], [ %b10.1, %done12 ]
  %head9.more = icmp slt i64 %head9.i, 13
  br i1 %head9.more, label %body9, label %done9
body9:
  %b11.1 = sub nsw i64 13, %head9.i
  %b11.2 = icmp slt i64 %b11.1, 16
  %b11.3 = select i1 %b11.2, i64 %b11.1, i64 16
  %b11.4 = trunc i64 %b11.3 to i32
  %b11.5 = insertelement <16 x i32> poison, i32 %b11.4, i64 0
  %b11.6 = shufflevector <16 x i32> %b11.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b11.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b11.6
  br label %head12
head12:
  %head12.i = phi i64 [ 0, %body9 ], [ %b13.5, %body12 ]
  %head12.a0.0 = phi <16 x float> [ splat (float 0x8000000000000000), %body9 ], [ %c14.1, %body12 ]
  %head12.more = icmp slt i64 %head12.i, 4
  br i1 %head12.more, label %body12, label %done12
body12:
  %b13.1 = mul nsw i64 %head12.i, 13
  %b13.2 = add nsw i64 %b13.1, %head9.i
  %b13.3 = getelementptr float, ptr %b.6, i64 %b13.2
  %b13.4 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b13.3, i32 4, <16 x i1> %b11.7, <16 x float> zeroinitializer)
  %c14.1 = fadd <16 x float> %head12.a0.0, %b13.4
  %b13.5 = add nsw i64 %head12.i, 1
  br label %head12
done12:
  %b11.8 = fadd <16 x float> splat (float 0x0000000000000000), %head12.a0.0
  %b11.9 = getelementptr float, ptr %b.8, i64 %head9.i
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b11.8, ptr %b11.9, i32 4, <16 x i1> %b11.7)
  %b11.10 = getelementptr float, ptr %b.4, i64 %head9.i
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b11.8, ptr %b11.10, i32 4, <16 x i1> %b11.7)
  %b10.1 = add nsw i64 %head9.i, 16
  br label %head9
done9:
  %b2.4 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
