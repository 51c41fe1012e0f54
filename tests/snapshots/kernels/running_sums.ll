declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0(<8 x double>, ptr, i32, <8 x i1>)
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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.6, %done10 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = insertelement <8 x i64> poison, i64 %head1.i, i64 0
  %b2.2 = shufflevector <8 x i64> %b2.1, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.3 = sub nsw i64 53, 0
  %b2.4 = and i64 %b2.3, -8
  %b2.5 = add nsw i64 0, %b2.4
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.16, %body3 ]
  %head3.p0 = phi <8 x double> [ splat (double 0x0000000000000000), %body1 ], [ %c9.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.5
  br i1 %head3.more, label %body3, label %done3
body3:
  %b4.1 = mul nsw i64 %head1.i, 53
  %b4.2 = add nsw i64 %b4.1, %head3.i
  %b4.3 = getelementptr double, ptr %b.2, i64 %b4.2
  %b4.4 = load <8 x double>, ptr %b4.3, align 8
  %b4.5 = shufflevector <8 x double> %b4.4, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6>
  %c5.1 = fadd <8 x double> %b4.5, %b4.4
  %b4.6 = select <8 x i1> <i1 false, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c5.1, <8 x double> %b4.4
  %b4.7 = shufflevector <8 x double> %b4.6, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5>
  %c6.1 = fadd <8 x double> %b4.7, %b4.6
  %b4.8 = select <8 x i1> <i1 false, i1 false, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c6.1, <8 x double> %b4.6
  %b4.9 = shufflevector <8 x double> %b4.8, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 1, i32 2, i32 3>
  %c7.1 = fadd <8 x double> %b4.9, %b4.8
  %b4.10 = select <8 x i1> <i1 false, i1 false, i1 false, i1 false, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c7.1, <8 x double> %b4.8
  %c8.1 = fadd <8 x double> %head3.p0, %b4.10
  %b4.11 = shufflevector <8 x double> %b4.10, <8 x double> poison, <8 x i32> <i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
  %c9.1 = fadd <8 x double> %head3.p0, %b4.11
  %b4.12 = fdiv <8 x double> %c8.1, splat (double 0x4008000000000000)
  %b4.13 = mul nsw i64 %head1.i, 53
  %b4.14 = add nsw i64 %b4.13, %head3.i
  %b4.15 = getelementptr double, ptr %b.4, i64 %b4.14
  store <8 x double> %b4.12, ptr %b4.15, align 8
  %b4.16 = add nsw i64 %head3.i, 8
  br label %head3
done3:
  br label %head10
head10:
  %head10.i = phi i64 [ %b2.5, %done3 ], [ %b11.22, %body10 ]
  %head10.p0 = phi <8 x double> [ %head3.p0, %done3 ], [ %c16.1, %body10 ]
  %head10.more = icmp slt i64 %head10.i, 53
  br i1 %head10.more, label %body10, label %done10
body10:
  %b11.1 = sub nsw i64 53, %head10.i
  %b11.2 = icmp slt i64 %b11.1, 8
  %b11.3 = select i1 %b11.2, i64 %b11.1, i64 8
  %b11.4 = insertelement <8 x i64> poison, i64 %b11.3, i64 0
  %b11.5 = shufflevector <8 x i64> %b11.4, <8 x i64> poison, <8 x i32> zeroinitializer
  %b11.6 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %b11.5
  %b11.7 = mul nsw i64 %head1.i, 53
  %b11.8 = add nsw i64 %b11.7, %head10.i
  %b11.9 = getelementptr double, ptr %b.2, i64 %b11.8
  %b11.10 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %b11.9, i32 8, <8 x i1> %b11.6, <8 x double> zeroinitializer)
  %b11.11 = shufflevector <8 x double> %b11.10, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6>
  %c12.1 = fadd <8 x double> %b11.11, %b11.10
  %b11.12 = select <8 x i1> <i1 false, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c12.1, <8 x double> %b11.10
  %b11.13 = shufflevector <8 x double> %b11.12, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5>
  %c13.1 = fadd <8 x double> %b11.13, %b11.12
  %b11.14 = select <8 x i1> <i1 false, i1 false, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c13.1, <8 x double> %b11.12
  %b11.15 = shufflevector <8 x double> %b11.14, <8 x double> poison, <8 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 1, i32 2, i32 3>
  %c14.1 = fadd <8 x double> %b11.15, %b11.14
  %b11.16 = select <8 x i1> <i1 false, i1 false, i1 false, i1 false, i1 true, i1 true, i1 true, i1 true>, <8 x double> %c14.1, <8 x double> %b11.14
  %c15.1 = fadd <8 x double> %head10.p0, %b11.16
  %b11.17 = shufflevector <8 x double> %b11.16, <8 x double> poison, <8 x i32> <i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
  %c16.1 = fadd <8 x double> %head10.p0, %b11.17
  %b11.18 = fdiv <8 x double> %c15.1, splat (double 0x4008000000000000)
  %b11.19 = mul nsw i64 %head1.i, 53
  %b11.20 = add nsw i64 %b11.19, %head10.i
  %b11.21 = getelementptr double, ptr %b.4, i64 %b11.20
  call void @llvm.masked.store.v8f64.p0(<8 x double> %b11.18, ptr %b11.21, i32 8, <8 x i1> %b11.6)
  %b11.22 = add nsw i64 %head10.i, 8
  br label %head10
done10:
  %b2.6 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
