declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)
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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.26, %done22 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = mul i64 %head1.i, 32768
  %b2.2 = mul i64 %b2.1, -1
  %b2.3 = add i64 %b2.2, 300001
  %b2.4 = icmp slt i64 %b2.3, 32768
  %b2.5 = select i1 %b2.4, i64 %b2.3, i64 32768
  %b2.6 = insertelement <8 x i64> poison, i64 %head1.i, i64 0
  %b2.7 = shufflevector <8 x i64> %b2.6, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.8 = insertelement <8 x i64> poison, i64 %b2.1, i64 0
  %b2.9 = shufflevector <8 x i64> %b2.8, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.10 = insertelement <8 x i64> poison, i64 %b2.2, i64 0
  %b2.11 = shufflevector <8 x i64> %b2.10, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.12 = insertelement <8 x i64> poison, i64 %b2.3, i64 0
  %b2.13 = shufflevector <8 x i64> %b2.12, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.14 = insertelement <8 x i1> poison, i1 %b2.4, i64 0
  %b2.15 = shufflevector <8 x i1> %b2.14, <8 x i1> poison, <8 x i32> zeroinitializer
  %b2.16 = insertelement <8 x i64> poison, i64 %b2.5, i64 0
  %b2.17 = shufflevector <8 x i64> %b2.16, <8 x i64> poison, <8 x i32> zeroinitializer
  %b2.18 = sub nsw i64 %b2.5, 0
  %b2.19 = and i64 %b2.18, -32
  %b2.20 = add nsw i64 0, %b2.19
  br label %chunk3
chunk3:
  %chunk3.i = phi i64 [ 0, %body1 ], [ %b4.1, %done5 ]
  %chunk3.a0.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %body1 ], [ %c15.1, %done5 ]
  %chunk3.a1.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %body1 ], [ %c16.1, %done5 ]
  %chunk3.a2.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %body1 ], [ %c17.1, %done5 ]
  %chunk3.a3.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %body1 ], [ %c18.1, %done5 ]
  %chunk3.more = icmp slt i64 %chunk3.i, %b2.20
  br i1 %chunk3.more, label %inside3, label %after3
inside3:
  %b4.1 = add nsw i64 %chunk3.i, 2048
  %b4.2 = icmp slt i64 %b4.1, %b2.20
  %b4.3 = select i1 %b4.2, i64 %b4.1, i64 %b2.20
  br label %head5
head5:
  %head5.i = phi i64 [ %chunk3.i, %inside3 ], [ %b6.1, %body5 ]
  %head5.a0.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %inside3 ], [ %c8.1, %body5 ]
  %head5.a1.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %inside3 ], [ %c10.1, %body5 ]
  %head5.a2.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %inside3 ], [ %c12.1, %body5 ]
  %head5.a3.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %inside3 ], [ %c14.1, %body5 ]
  %head5.more = icmp slt i64 %head5.i, %b4.3
  br i1 %head5.more, label %body5, label %done5
body5:
  %b7.1 = mul nsw i64 %head1.i, 32768
  %b7.2 = add nsw i64 %head5.i, %b7.1
  %b7.3 = getelementptr double, ptr %b.2, i64 %b7.2
  %b7.4 = load <8 x double>, ptr %b7.3, align 8
  %c8.1 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b7.4, <8 x double> %b7.4, <8 x double> %head5.a0.0.0)
  %b9.1 = add nsw i64 %head5.i, 8
  %b9.2 = mul nsw i64 %head1.i, 32768
  %b9.3 = add nsw i64 %b9.1, %b9.2
  %b9.4 = getelementptr double, ptr %b.2, i64 %b9.3
  %b9.5 = load <8 x double>, ptr %b9.4, align 8
  %c10.1 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b9.5, <8 x double> %b9.5, <8 x double> %head5.a1.0.0)
  %b11.1 = add nsw i64 %head5.i, 16
  %b11.2 = mul nsw i64 %head1.i, 32768
  %b11.3 = add nsw i64 %b11.1, %b11.2
  %b11.4 = getelementptr double, ptr %b.2, i64 %b11.3
  %b11.5 = load <8 x double>, ptr %b11.4, align 8
  %c12.1 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b11.5, <8 x double> %b11.5, <8 x double> %head5.a2.0.0)
  %b13.1 = add nsw i64 %head5.i, 24
  %b13.2 = mul nsw i64 %head1.i, 32768
  %b13.3 = add nsw i64 %b13.1, %b13.2
  %b13.4 = getelementptr double, ptr %b.2, i64 %b13.3
  %b13.5 = load <8 x double>, ptr %b13.4, align 8
  %c14.1 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b13.5, <8 x double> %b13.5, <8 x double> %head5.a3.0.0)
  %b6.1 = add nsw i64 %head5.i, 32
  br label %head5
done5:
  %c15.1 = fadd <8 x double> %chunk3.a0.0.0, %head5.a0.0.0
  %c16.1 = fadd <8 x double> %chunk3.a1.0.0, %head5.a1.0.0
  %c17.1 = fadd <8 x double> %chunk3.a2.0.0, %head5.a2.0.0
  %c18.1 = fadd <8 x double> %chunk3.a3.0.0, %head5.a3.0.0
  br label %chunk3
after3:
  %c19.1 = fadd <8 x double> %chunk3.a0.0.0, %chunk3.a1.0.0
  %c20.1 = fadd <8 x double> %c19.1, %chunk3.a2.0.0
  %c21.1 = fadd <8 x double> %c20.1, %chunk3.a3.0.0
  br label %head22
head22:
  %head22.i = phi i64 [ %b2.20, %after3 ], [ %b23.1, %body22 ]
  %head22.a0.0.0 = phi <8 x double> [ %c21.1, %after3 ], [ %b24.11, %body22 ]
  %head22.more = icmp slt i64 %head22.i, %b2.5
  br i1 %head22.more, label %body22, label %done22
body22:
  %b24.1 = sub nsw i64 %b2.5, %head22.i
  %b24.2 = icmp slt i64 %b24.1, 8
  %b24.3 = select i1 %b24.2, i64 %b24.1, i64 8
  %b24.4 = insertelement <8 x i64> poison, i64 %b24.3, i64 0
  %b24.5 = shufflevector <8 x i64> %b24.4, <8 x i64> poison, <8 x i32> zeroinitializer
  %b24.6 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %b24.5
  %b24.7 = mul nsw i64 %head1.i, 32768
  %b24.8 = add nsw i64 %head22.i, %b24.7
  %b24.9 = getelementptr double, ptr %b.2, i64 %b24.8
  %b24.10 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %b24.9, i32 8, <8 x i1> %b24.6, <8 x double> zeroinitializer)
  %c25.1 = call <8 x double> @llvm.fma.v8f64(<8 x double> %b24.10, <8 x double> %b24.10, <8 x double> %head22.a0.0.0)
  %b24.11 = select <8 x i1> %b24.6, <8 x double> %c25.1, <8 x double> %head22.a0.0.0
  %b23.1 = add nsw i64 %head22.i, 8
  br label %head22
done22:
  %b2.21 = shufflevector <8 x double> %head22.a0.0.0, <8 x double> poison, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3>
  %c26.1 = fadd <8 x double> %head22.a0.0.0, %b2.21
  %b2.22 = shufflevector <8 x double> %c26.1, <8 x double> poison, <8 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 0, i32 1>
  %c27.1 = fadd <8 x double> %c26.1, %b2.22
  %b2.23 = shufflevector <8 x double> %c27.1, <8 x double> poison, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 0>
  %c28.1 = fadd <8 x double> %c27.1, %b2.23
  %b2.24 = extractelement <8 x double> %c28.1, i64 0
  %b2.25 = getelementptr double, ptr %b.6, i64 %head1.i
  store double %b2.24, ptr %b2.25, align 8
  %b2.26 = add nsw i64 %head1.i, 1
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
  %head1.i = phi i64 [ %begin, %entry ], [ %b2.9, %done7 ]
  %head1.more = icmp slt i64 %head1.i, %end
  br i1 %head1.more, label %body1, label %done1
body1:
  %b2.1 = sub nsw i64 10, 0
  %b2.2 = and i64 %b2.1, -8
  %b2.3 = add nsw i64 0, %b2.2
  br label %head3
head3:
  %head3.i = phi i64 [ 0, %body1 ], [ %b4.1, %body3 ]
  %head3.a0.0.0 = phi <8 x double> [ splat (double 0x8000000000000000), %body1 ], [ %c6.1, %body3 ]
  %head3.more = icmp slt i64 %head3.i, %b2.3
  br i1 %head3.more, label %body3, label %done3
body3:
  %b5.1 = getelementptr double, ptr %b.6, i64 %head3.i
  %b5.2 = load <8 x double>, ptr %b5.1, align 8
  %c6.1 = fadd <8 x double> %head3.a0.0.0, %b5.2
  %b4.1 = add nsw i64 %head3.i, 8
  br label %head3
done3:
  br label %head7
head7:
  %head7.i = phi i64 [ %b2.3, %done3 ], [ %b8.1, %body7 ]
  %head7.a0.0.0 = phi <8 x double> [ %head3.a0.0.0, %done3 ], [ %b9.9, %body7 ]
  %head7.more = icmp slt i64 %head7.i, 10
  br i1 %head7.more, label %body7, label %done7
body7:
  %b9.1 = sub nsw i64 10, %head7.i
  %b9.2 = icmp slt i64 %b9.1, 8
  %b9.3 = select i1 %b9.2, i64 %b9.1, i64 8
  %b9.4 = insertelement <8 x i64> poison, i64 %b9.3, i64 0
  %b9.5 = shufflevector <8 x i64> %b9.4, <8 x i64> poison, <8 x i32> zeroinitializer
  %b9.6 = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, %b9.5
  %b9.7 = getelementptr double, ptr %b.6, i64 %head7.i
  %b9.8 = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %b9.7, i32 8, <8 x i1> %b9.6, <8 x double> zeroinitializer)
  %c10.1 = fadd <8 x double> %head7.a0.0.0, %b9.8
  %b9.9 = select <8 x i1> %b9.6, <8 x double> %c10.1, <8 x double> %head7.a0.0.0
  %b8.1 = add nsw i64 %head7.i, 8
  br label %head7
done7:
  %b2.4 = shufflevector <8 x double> %head7.a0.0.0, <8 x double> poison, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3>
  %c11.1 = fadd <8 x double> %head7.a0.0.0, %b2.4
  %b2.5 = shufflevector <8 x double> %c11.1, <8 x double> poison, <8 x i32> <i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 0, i32 1>
  %c12.1 = fadd <8 x double> %c11.1, %b2.5
  %b2.6 = shufflevector <8 x double> %c12.1, <8 x double> poison, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 0>
  %c13.1 = fadd <8 x double> %c12.1, %b2.6
  %b2.7 = extractelement <8 x double> %c13.1, i64 0
  %b2.8 = fadd double 0x0000000000000000, %b2.7
  store double %b2.8, ptr %b.8, align 8
  store double %b2.8, ptr %b.4, align 8
  %b2.9 = add nsw i64 %head1.i, 1
  br label %head1
done1:
  ret void
}
