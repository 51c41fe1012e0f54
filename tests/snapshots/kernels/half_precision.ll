declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare <16 x half> @llvm.masked.load.v16f16.p0(ptr, i32, <16 x i1>, <16 x half>)
declare void @llvm.masked.store.v16f16.p0(<16 x half>, ptr, i32, <16 x i1>)
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
  %b.8 = sub nsw i64 %end, %begin
  %b.9 = and i64 %b.8, -32
  %b.10 = add nsw i64 %begin, %b.9
  br label %head1
head1:
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.1, %body1 ]
  %head1.more = icmp slt i64 %head1.i, %b.10
  br i1 %head1.more, label %body1, label %done1
body1:
  %b3.1 = getelementptr half, ptr %b.2, i64 %head1.i
  %b3.2 = load <16 x half>, ptr %b3.1, align 2
  %b3.3 = fpext <16 x half> %b3.2 to <16 x float>
  %b3.4 = getelementptr float, ptr %b.4, i64 %head1.i
  %b3.5 = load <16 x float>, ptr %b3.4, align 4
  %b3.6 = fdiv <16 x float> %b3.3, %b3.5
  %b3.7 = fptrunc <16 x float> %b3.6 to <16 x half>
  %b3.8 = getelementptr half, ptr %b.6, i64 %head1.i
  store <16 x half> %b3.7, ptr %b3.8, align 2
  %b4.1 = add nsw i64 %head1.i, 16
  %b4.2 = getelementptr half, ptr %b.2, i64 %b4.1
  %b4.3 = load <16 x half>, ptr %b4.2, align 2
  %b4.4 = fpext <16 x half> %b4.3 to <16 x float>
  %b4.5 = getelementptr float, ptr %b.4, i64 %b4.1
  %b4.6 = load <16 x float>, ptr %b4.5, align 4
  %b4.7 = fdiv <16 x float> %b4.4, %b4.6
  %b4.8 = fptrunc <16 x float> %b4.7 to <16 x half>
  %b4.9 = getelementptr half, ptr %b.6, i64 %b4.1
  store <16 x half> %b4.8, ptr %b4.9, align 2
  %b2.1 = add nsw i64 %head1.i, 32
  br label %head1
done1:
  br label %head5
head5:
  %head5.i = phi i64 [ %b.10, %done1 ], [ %b6.1, %body5 ]
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
  %b7.8 = getelementptr half, ptr %b.2, i64 %head5.i
  %b7.9 = call <16 x half> @llvm.masked.load.v16f16.p0(ptr %b7.8, i32 2, <16 x i1> %b7.7, <16 x half> zeroinitializer)
  %b7.10 = fpext <16 x half> %b7.9 to <16 x float>
  %b7.11 = getelementptr float, ptr %b.4, i64 %head5.i
  %b7.12 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %b7.11, i32 4, <16 x i1> %b7.7, <16 x float> zeroinitializer)
  %b7.13 = fdiv <16 x float> %b7.10, %b7.12
  %b7.14 = fptrunc <16 x float> %b7.13 to <16 x half>
  %b7.15 = getelementptr half, ptr %b.6, i64 %head5.i
  call void @llvm.masked.store.v16f16.p0(<16 x half> %b7.14, ptr %b7.15, i32 2, <16 x i1> %b7.7)
  %b6.1 = add nsw i64 %head5.i, 16
  br label %head5
done5:
  ret void
}
