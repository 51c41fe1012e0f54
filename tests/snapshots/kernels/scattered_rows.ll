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
  %b.9 = alloca i64, i64 364, align 64
  %b.10 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.10, align 64
  %b.11 = sub nsw i64 %end, %begin
  %b.12 = and i64 %b.11, -32
  %b.13 = add nsw i64 %begin, %b.12
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.1, %body1 ]
  %head1.more = icmp slt i64 %head1.i, %b.13
  br i1 %head1.more, label %body1, label %done1
body1:
  %b3.1 = getelementptr float, ptr %b.2, i64 %head1.i
  %b3.2 = load <16 x float>, ptr %b3.1, align 4
  %b3.3 = getelementptr float, ptr %b.8, i64 %head1.i
  store <16 x float> %b3.2, ptr %b3.3, align 4
  %b4.1 = add nsw i64 %head1.i, 16
  %b4.2 = getelementptr float, ptr %b.2, i64 %b4.1
  %b4.3 = load <16 x float>, ptr %b4.2, align 4
  %b4.4 = getelementptr float, ptr %b.8, i64 %b4.1
  store <16 x float> %b4.3, ptr %b4.4, align 4
  %b2.1 = add nsw i64 %head1.i, 32
  br label %head1
done1:
  br label %head5
head5:
  %head5.i = phi i64 [ %b.13, %done1 ], [ %b6.1, %body5 ]
  %head5.more = icmp slt i64 %head5.i, %end
  br i1 %head5.more, label %body5, label %done5
body5:
  %b7.1 = sub nsw i64 %end, %head5.i
  %b7.2 = icmp slt i64 %b7.1, 16
  %b7.3 = select i1 %b7.2, i64 %b7.1, i64 16
  %b7.4 = trunc i64 %b7.3 to i32
  %b7.5 = insertelement <16 x i32> poison, i32 %b7.4, i64 0
  %b7.6 = shufflevector <16 x i32> %b7.5, <16 x i32> poison, <16 x i32> zeroinitializer
  %b7.7 = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %b7.6
  %b7.8 = getelementptr float, ptr %b.2, i64 %head5.i
  %b7.9 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b7.8, i32 4, <16 x i1> %b7.7, <16 x float> zeroinitializer)
  %b7.10 = getelementptr float, ptr %b.8, i64 %head5.i
  call void @llvm.masked.store.v16f32.p0(<16 x float> %b7.9, ptr %b7.10, i32 4, <16 x i1> %b7.7)
  %b6.1 = add nsw i64 %head5.i, 16
  br label %head5
done5:
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
  %b.9 = alloca i64, i64 364, align 64
  %b.10 = alloca [64 x i8], align 64
  store <64 x i8> zeroinitializer, ptr %b.10, align 64
  %b.11 = icmp eq i64 %begin, 0
  %b.12 = icmp eq i64 %end, 70
  %b.13 = and i1 %b.11, %b.12
  %b.14 = select i1 %b.13, i64 1, i64 0
  br i1 %b.13, label %body1, label %done1
body1:
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.8, %done5 ]
  %head3.more = icmp slt i64 %head3.i, 300
  br i1 %head3.more, label %body3, label %done3
body3:
  %b4.1 = getelementptr i32, ptr %b.4, i64 %head3.i
  %b4.2 = load i32, ptr %b4.1, align 4
  %b4.3 = sext i32 %b4.2 to i64
  %b4.4 = icmp sge i64 %b4.3, %begin
  %b4.5 = icmp slt i64 %b4.3, %end
  %b4.6 = and i1 %b4.4, %b4.5
  %b4.7 = select i1 %b4.6, i64 1, i64 0
  br i1 %b4.6, label %body5, label %done5
body5:
  %b6.1 = insertelement <16 x i64> poison, i64 %head3.i, i64 0
  %b6.2 = shufflevector <16 x i64> %b6.1, <16 x i64> poison, <16 x i32> zeroinitializer
  %b6.3 = insertelement <16 x i32> poison, i32 %b4.2, i64 0
  %b6.4 = shufflevector <16 x i32> %b6.3, <16 x i32> poison, <16 x i32> zeroinitializer
  %b6.5 = insertelement <16 x i64> poison, i64 %b4.3, i64 0
  %b6.6 = shufflevector <16 x i64> %b6.5, <16 x i64> poison, <16 x i32> zeroinitializer
  %b7.1 = mul nsw i64 %b4.3, 16
  %b7.2 = add nsw i64 %b7.1, 0
  %b7.3 = getelementptr float, ptr %b.8, i64 %b7.2
  %b7.4 = load <16 x float>, ptr %b7.3, align 4
  %b7.5 = mul nsw i64 %head3.i, 16
  %b7.6 = add nsw i64 %b7.5, 0
  %b7.7 = getelementptr float, ptr %b.6, i64 %b7.6
  %b7.8 = load <16 x float>, ptr %b7.7, align 4
  %b7.9 = fadd <16 x float> %b7.4, %b7.8
  store <16 x float> %b7.9, ptr %b7.3, align 4
  br label %done5
done5:
  %b4.8 = add nsw i64 %head3.i, 1
  br label %head3
done3:
  br label %done1
done1:
  %b.15 = xor i1 %b.13, true
  %b.16 = select i1 %b.15, i64 1, i64 0
  br i1 %b.15, label %body8, label %done8
body8:
  br label %head10
head10:
  %head10.i = phi i64 [ 0, %body8 ], [ %b11.4, %done14 ]
  %head10.more = icmp slt i64 %head10.i, 1
  br i1 %head10.more, label %body10, label %done10
body10:
  %b11.1 = mul i64 %head10.i, 1024
  br label %head12
head12:
  %head12.i = phi i64 [ 0, %body10 ], [ %b13.13, %body12 ]
  %head12.c0 = phi i64 [ 0, %body10 ], [ %b13.12, %body12 ]
  %head12.more = icmp slt i64 %head12.i, 300
  br i1 %head12.more, label %body12, label %done12
body12:
  %b13.1 = add i64 %head12.i, %b11.1
  %b13.2 = getelementptr i64, ptr %b.9, i64 %head12.c0
  store i64 %b13.1, ptr %b13.2, align 8
  %b13.3 = mul nsw i64 %head10.i, 1024
  %b13.4 = add nsw i64 %head12.i, %b13.3
  %b13.5 = getelementptr i32, ptr %b.4, i64 %b13.4
  %b13.6 = load i32, ptr %b13.5, align 4
  %b13.7 = sext i32 %b13.6 to i64
  %b13.8 = icmp sge i64 %b13.7, %begin
  %b13.9 = icmp slt i64 %b13.7, %end
  %b13.10 = and i1 %b13.8, %b13.9
  %b13.11 = zext i1 %b13.10 to i64
  %b13.12 = add i64 %head12.c0, %b13.11
  %b13.13 = add nsw i64 %head12.i, 1
  br label %head12
done12:
  %b11.2 = icmp slt i64 %head12.c0, 300
  %b11.3 = select i1 %b11.2, i64 %head12.c0, i64 300
  br label %head14
head14:
  %head14.i = phi i64 [ 0, %done12 ], [ %b15.14, %body14 ]
  %head14.more = icmp slt i64 %head14.i, %b11.3
  br i1 %head14.more, label %body14, label %done14
body14:
  %b15.1 = getelementptr i64, ptr %b.9, i64 %head14.i
  %b15.2 = load i64, ptr %b15.1, align 8
  %b15.3 = getelementptr i32, ptr %b.4, i64 %b15.2
  %b15.4 = load i32, ptr %b15.3, align 4
  %b15.5 = sext i32 %b15.4 to i64
  %b15.6 = insertelement <16 x i64> poison, i64 %head14.i, i64 0
  %b15.7 = shufflevector <16 x i64> %b15.6, <16 x i64> poison, <16 x i32> zeroinitializer
  %b15.8 = insertelement <16 x i64> poison, i64 %b15.2, i64 0
  %b15.9 = shufflevector <16 x i64> %b15.8, <16 x i64> poison, <16 x i32> zeroinitializer
  %b15.10 = insertelement <16 x i32> poison, i32 %b15.4, i64 0
  %b15.11 = shufflevector <16 x i32> %b15.10, <16 x i32> poison, <16 x i32> zeroinitializer
  %b15.12 = insertelement <16 x i64> poison, i64 %b15.5, i64 0
  %b15.13 = shufflevector <16 x i64> %b15.12, <16 x i64> poison, <16 x i32> zeroinitializer
  %b16.1 = mul nsw i64 %b15.5, 16
  %b16.2 = add nsw i64 %b16.1, 0
  %b16.3 = getelementptr float, ptr %b.8, i64 %b16.2
  %b16.4 = load <16 x float>, ptr %b16.3, align 4
  %b16.5 = mul nsw i64 %b15.2, 16
  %b16.6 = add nsw i64 %b16.5, 0
  %b16.7 = getelementptr float, ptr %b.6, i64 %b16.6
  %b16.8 = load <16 x float>, ptr %b16.7, align 4
  %b16.9 = fadd <16 x float> %b16.4, %b16.8
  store <16 x float> %b16.9, ptr %b16.3, align 4
  %b15.14 = add nsw i64 %head14.i, 1
  br label %head14
done14:
  %b11.4 = add nsw i64 %head10.i, 1
  br label %head10
done10:
  br label %done8
done8:
  ret void
}
