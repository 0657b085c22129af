; ModuleID = 'heads'
source_filename = "heads"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@0 = private unnamed_addr constant <8 x i32> splat (i32 1266679808)

; Function Attrs: nounwind
define void @wrapped_broadcast(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load ptr, ptr %0, align 8
  %5 = shl i64 %2, 15
  %6 = shl i64 %1, 15
  %7 = icmp slt i64 %6, %5
  br i1 %7, label %loop, label %done

loop:                                             ; preds = %loop, %entry
  %8 = phi i64 [ %6, %entry ], [ %13, %loop ]
  %9 = call i64 @llvm.expect.i64(i64 %8, i64 %8)
  %10 = getelementptr float, ptr %4, i64 %9
  store <8 x float> zeroinitializer, ptr %10, align 4
  %11 = getelementptr i8, ptr %4, i64 32
  %12 = getelementptr float, ptr %11, i64 %9
  store <8 x float> zeroinitializer, ptr %12, align 4
  %13 = add nsw i64 %9, 16
  %14 = icmp slt i64 %13, %5
  br i1 %14, label %loop, label %done

done:                                             ; preds = %loop, %entry
  ret void
}

; Function Attrs: nounwind
define void @wrapped_compare(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load ptr, ptr %0, align 8
  %5 = load i32, ptr %4, align 4
  %6 = icmp slt i32 %5, 3
  %7 = getelementptr i8, ptr %0, i64 8
  %8 = load ptr, ptr %7, align 8
  %9 = zext i1 %6 to i8
  store i8 %9, ptr %8, align 1
  ret void
}

; Function Attrs: nounwind
define void @fusion_5(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load ptr, ptr %0, align 8
  %5 = getelementptr i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %0, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = shl i64 %2, 14
  %10 = load i32, ptr %4, align 4
  %11 = shl i32 %10, 2
  %12 = call i32 @llvm.smax.i32(i32 %11, i32 0)
  %13 = call i32 @llvm.smin.i32(i32 %12, i32 8)
  %14 = shl nuw nsw i32 %13, 15
  %15 = zext nneg i32 %14 to i64
  %16 = getelementptr float, ptr %6, i64 %15
  %17 = shl i64 %1, 14
  %18 = icmp slt i64 %17, %9
  br i1 %18, label %loop, label %done

loop:                                             ; preds = %loop, %entry
  %19 = phi i64 [ %17, %entry ], [ %24, %loop ]
  %20 = call i64 @llvm.expect.i64(i64 %19, i64 %19)
  %21 = getelementptr float, ptr %16, i64 %20
  %22 = load <8 x float>, ptr %21, align 4
  %23 = getelementptr float, ptr %8, i64 %20
  store <8 x float> %22, ptr %23, align 4
  %24 = add nsw i64 %20, 8
  %25 = icmp slt i64 %24, %9
  br i1 %25, label %loop, label %done

done:                                             ; preds = %loop, %entry
  ret void
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smin.i32(i32, i32) #1

; Function Attrs: nounwind
define void @fusion_3(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load <8 x i32>, ptr @0, align 32
  %5 = alloca [8 x <8 x float>], align 32
  %6 = load ptr, ptr %0, align 8
  %7 = getelementptr i8, ptr %0, i64 8
  %8 = load ptr, ptr %7, align 8
  %9 = icmp slt i64 %1, %2
  br i1 %9, label %loop, label %done

loop:                                             ; preds = %done2, %entry
  %10 = phi i64 [ %1, %entry ], [ %23, %done2 ]
  %11 = call i64 @llvm.expect.i64(i64 %10, i64 %10)
  %12 = and i64 %11, 7
  %13 = lshr i64 %11, 3
  %14 = shl nuw nsw i64 %12, 6
  %15 = shl nuw nsw i64 %12, 6
  %16 = add nuw nsw i64 %15, 64
  %17 = and i64 %13, 3
  br label %loop1

done:                                             ; preds = %done2, %entry
  ret void

loop1:                                            ; preds = %loop, %done5
  %18 = phi i64 [ %17, %loop ], [ %30, %done5 ]
  %19 = call i64 @llvm.expect.i64(i64 %18, i64 %18)
  %20 = shl nsw i64 %19, 18
  %21 = getelementptr float, ptr %6, i64 %20
  %22 = getelementptr float, ptr %8, i64 %20
  br label %loop4

done2:                                            ; preds = %done5
  %23 = add nsw i64 %11, 1
  %24 = icmp slt i64 %23, %2
  br i1 %24, label %loop, label %done

loop4:                                            ; preds = %loop1, %done12
  %25 = phi i64 [ %14, %loop1 ], [ %209, %done12 ]
  %26 = call i64 @llvm.expect.i64(i64 %25, i64 %25)
  %27 = trunc i64 %26 to i32
  %28 = shl nsw i64 %26, 9
  %29 = getelementptr float, ptr %21, i64 %28
  br label %loop7

done5:                                            ; preds = %done12
  %30 = add nuw nsw i64 %19, 1
  %31 = icmp samesign ult i64 %19, %17
  br i1 %31, label %loop1, label %done2

loop7:                                            ; preds = %loop7, %loop4
  %.034 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %99, %loop7 ]
  %.033 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %101, %loop7 ]
  %.032 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %103, %loop7 ]
  %.031 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %105, %loop7 ]
  %.030 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %107, %loop7 ]
  %.029 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %109, %loop7 ]
  %.028 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %111, %loop7 ]
  %.0 = phi <8 x float> [ splat (float 0xFFF0000000000000), %loop4 ], [ %113, %loop7 ]
  %32 = phi i64 [ 0, %loop4 ], [ %114, %loop7 ]
  %33 = call i64 @llvm.expect.i64(i64 %32, i64 %32)
  %34 = trunc i64 %33 to i32
  %35 = insertelement <8 x i32> poison, i32 %34, i64 0
  %36 = shufflevector <8 x i32> %35, <8 x i32> poison, <8 x i32> zeroinitializer
  %37 = or disjoint <8 x i32> %36, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %38 = trunc i64 %33 to i32
  %39 = or disjoint i32 %38, 8
  %40 = insertelement <8 x i32> poison, i32 %39, i64 0
  %41 = shufflevector <8 x i32> %40, <8 x i32> poison, <8 x i32> zeroinitializer
  %42 = or disjoint <8 x i32> %41, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %43 = trunc i64 %33 to i32
  %44 = or disjoint i32 %43, 16
  %45 = insertelement <8 x i32> poison, i32 %44, i64 0
  %46 = shufflevector <8 x i32> %45, <8 x i32> poison, <8 x i32> zeroinitializer
  %47 = or disjoint <8 x i32> %46, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %48 = trunc i64 %33 to i32
  %49 = or disjoint i32 %48, 24
  %50 = insertelement <8 x i32> poison, i32 %49, i64 0
  %51 = shufflevector <8 x i32> %50, <8 x i32> poison, <8 x i32> zeroinitializer
  %52 = or disjoint <8 x i32> %51, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %53 = trunc i64 %33 to i32
  %54 = or disjoint i32 %53, 32
  %55 = insertelement <8 x i32> poison, i32 %54, i64 0
  %56 = shufflevector <8 x i32> %55, <8 x i32> poison, <8 x i32> zeroinitializer
  %57 = or disjoint <8 x i32> %56, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %58 = trunc i64 %33 to i32
  %59 = or disjoint i32 %58, 40
  %60 = insertelement <8 x i32> poison, i32 %59, i64 0
  %61 = shufflevector <8 x i32> %60, <8 x i32> poison, <8 x i32> zeroinitializer
  %62 = or disjoint <8 x i32> %61, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %63 = trunc i64 %33 to i32
  %64 = or disjoint i32 %63, 48
  %65 = insertelement <8 x i32> poison, i32 %64, i64 0
  %66 = shufflevector <8 x i32> %65, <8 x i32> poison, <8 x i32> zeroinitializer
  %67 = or disjoint <8 x i32> %66, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %68 = trunc i64 %33 to i32
  %69 = or disjoint i32 %68, 56
  %70 = insertelement <8 x i32> poison, i32 %69, i64 0
  %71 = shufflevector <8 x i32> %70, <8 x i32> poison, <8 x i32> zeroinitializer
  %72 = or disjoint <8 x i32> %71, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %73 = insertelement <8 x i32> poison, i32 %27, i64 0
  %74 = shufflevector <8 x i32> %73, <8 x i32> poison, <8 x i32> zeroinitializer
  %.not = icmp slt <8 x i32> %74, %37
  %.not35 = icmp slt <8 x i32> %74, %42
  %.not36 = icmp slt <8 x i32> %74, %47
  %.not37 = icmp slt <8 x i32> %74, %52
  %.not38 = icmp slt <8 x i32> %74, %57
  %.not39 = icmp slt <8 x i32> %74, %62
  %.not40 = icmp slt <8 x i32> %74, %67
  %.not41 = icmp slt <8 x i32> %74, %72
  %75 = getelementptr float, ptr %29, i64 %33
  %76 = load <8 x float>, ptr %75, align 4
  %77 = getelementptr i8, ptr %29, i64 32
  %78 = getelementptr float, ptr %77, i64 %33
  %79 = load <8 x float>, ptr %78, align 4
  %80 = getelementptr i8, ptr %29, i64 64
  %81 = getelementptr float, ptr %80, i64 %33
  %82 = load <8 x float>, ptr %81, align 4
  %83 = getelementptr i8, ptr %29, i64 96
  %84 = getelementptr float, ptr %83, i64 %33
  %85 = load <8 x float>, ptr %84, align 4
  %86 = getelementptr i8, ptr %29, i64 128
  %87 = getelementptr float, ptr %86, i64 %33
  %88 = load <8 x float>, ptr %87, align 4
  %89 = getelementptr i8, ptr %29, i64 160
  %90 = getelementptr float, ptr %89, i64 %33
  %91 = load <8 x float>, ptr %90, align 4
  %92 = getelementptr i8, ptr %29, i64 192
  %93 = getelementptr float, ptr %92, i64 %33
  %94 = load <8 x float>, ptr %93, align 4
  %95 = getelementptr i8, ptr %29, i64 224
  %96 = getelementptr float, ptr %95, i64 %33
  %97 = load <8 x float>, ptr %96, align 4
  %98 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.034, <8 x float> %76)
  %99 = select <8 x i1> %.not, <8 x float> %.034, <8 x float> %98
  %100 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.033, <8 x float> %79)
  %101 = select <8 x i1> %.not35, <8 x float> %.033, <8 x float> %100
  %102 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.032, <8 x float> %82)
  %103 = select <8 x i1> %.not36, <8 x float> %.032, <8 x float> %102
  %104 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.031, <8 x float> %85)
  %105 = select <8 x i1> %.not37, <8 x float> %.031, <8 x float> %104
  %106 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.030, <8 x float> %88)
  %107 = select <8 x i1> %.not38, <8 x float> %.030, <8 x float> %106
  %108 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.029, <8 x float> %91)
  %109 = select <8 x i1> %.not39, <8 x float> %.029, <8 x float> %108
  %110 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.028, <8 x float> %94)
  %111 = select <8 x i1> %.not40, <8 x float> %.028, <8 x float> %110
  %112 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %.0, <8 x float> %97)
  %113 = select <8 x i1> %.not41, <8 x float> %.0, <8 x float> %112
  %114 = add nuw nsw i64 %33, 64
  %115 = icmp samesign ult i64 %33, 448
  br i1 %115, label %loop7, label %done8

done8:                                            ; preds = %loop7
  %116 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %99, <8 x float> %107)
  %117 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %101, <8 x float> %109)
  %118 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %103, <8 x float> %111)
  %119 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %105, <8 x float> %113)
  %120 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %116, <8 x float> %118)
  %121 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %117, <8 x float> %119)
  %122 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %120, <8 x float> %121)
  %123 = shufflevector <8 x float> %122, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %124 = shufflevector <8 x float> %122, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %125 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %124, <4 x float> %123)
  %126 = shufflevector <4 x float> %125, <4 x float> poison, <4 x i32> <i32 2, i32 3, i32 2, i32 3>
  %127 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %125, <4 x float> %126)
  %128 = shufflevector <4 x float> %127, <4 x float> poison, <4 x i32> <i32 1, i32 1, i32 1, i32 1>
  %129 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %127, <4 x float> %128)
  store <8 x float> splat (float -0.000000e+00), ptr %5, align 32
  %130 = getelementptr inbounds nuw i8, ptr %5, i64 32
  store <8 x float> splat (float -0.000000e+00), ptr %130, align 32
  %131 = getelementptr inbounds nuw i8, ptr %5, i64 64
  store <8 x float> splat (float -0.000000e+00), ptr %131, align 32
  %132 = getelementptr inbounds nuw i8, ptr %5, i64 96
  store <8 x float> splat (float -0.000000e+00), ptr %132, align 32
  %133 = getelementptr inbounds nuw i8, ptr %5, i64 128
  store <8 x float> splat (float -0.000000e+00), ptr %133, align 32
  %134 = getelementptr inbounds nuw i8, ptr %5, i64 160
  store <8 x float> splat (float -0.000000e+00), ptr %134, align 32
  %135 = getelementptr inbounds nuw i8, ptr %5, i64 192
  store <8 x float> splat (float -0.000000e+00), ptr %135, align 32
  %136 = getelementptr inbounds nuw i8, ptr %5, i64 224
  store <8 x float> splat (float -0.000000e+00), ptr %136, align 32
  br label %loop9

loop9:                                            ; preds = %loop9, %done8
  %137 = phi i64 [ 0, %done8 ], [ %172, %loop9 ]
  %138 = call i64 @llvm.expect.i64(i64 %137, i64 %137)
  %139 = trunc i64 %138 to i32
  %140 = insertelement <8 x i32> poison, i32 %139, i64 0
  %141 = shufflevector <8 x i32> %140, <8 x i32> poison, <8 x i32> zeroinitializer
  %142 = or disjoint <8 x i32> %141, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %.not42 = icmp slt <8 x i32> %74, %142
  %143 = getelementptr float, ptr %29, i64 %138
  %144 = load <8 x float>, ptr %143, align 4
  %145 = select <8 x i1> %.not42, <8 x float> splat (float 0xFFF0000000000000), <8 x float> %144
  %146 = shufflevector <4 x float> %129, <4 x float> poison, <8 x i32> zeroinitializer
  %147 = fsub <8 x float> %145, %146
  %148 = fcmp olt <8 x float> %147, splat (float -1.045000e+02)
  %149 = select <8 x i1> %148, <8 x float> splat (float -1.045000e+02), <8 x float> %147
  %150 = call <8 x float> @llvm.fma.v8f32(<8 x float> %149, <8 x float> splat (float 0x3FF7154760000000), <8 x float> splat (float 0x4168000000000000))
  %151 = bitcast <8 x float> %150 to <8 x i32>
  %152 = fadd <8 x float> %150, splat (float 0xC168000000000000)
  %153 = call <8 x float> @llvm.fma.v8f32(<8 x float> %152, <8 x float> splat (float 0xBFE62E4300000000), <8 x float> %149)
  %154 = call <8 x float> @llvm.fma.v8f32(<8 x float> %152, <8 x float> splat (float 0x3E205C6100000000), <8 x float> %153)
  %155 = call <8 x float> @llvm.fma.v8f32(<8 x float> %154, <8 x float> splat (float 0x3F56AD7180000000), <8 x float> splat (float 0x3F8123F4E0000000))
  %156 = call <8 x float> @llvm.fma.v8f32(<8 x float> %155, <8 x float> %154, <8 x float> splat (float 0x3FA55584C0000000))
  %157 = call <8 x float> @llvm.fma.v8f32(<8 x float> %156, <8 x float> %154, <8 x float> splat (float 0x3FC55548A0000000))
  %158 = call <8 x float> @llvm.fma.v8f32(<8 x float> %157, <8 x float> %154, <8 x float> splat (float 0x3FDFFFFFC0000000))
  %159 = fmul <8 x float> %154, %154
  %160 = call <8 x float> @llvm.fma.v8f32(<8 x float> %159, <8 x float> %158, <8 x float> %154)
  %161 = call <8 x i32> @llvm.x86.avx2.pslli.d(<8 x i32> %151, i32 23)
  %162 = add <8 x i32> %161, %4
  %163 = bitcast <8 x i32> %162 to <8 x float>
  %164 = call <8 x float> @llvm.fma.v8f32(<8 x float> %160, <8 x float> %163, <8 x float> %163)
  %165 = fmul <8 x float> %164, splat (float 0x3E70000000000000)
  %166 = getelementptr float, ptr %3, i64 %138
  store <8 x float> %165, ptr %166, align 4
  %167 = lshr exact i64 %138, 3
  %168 = and i64 %167, 7
  %169 = getelementptr <8 x float>, ptr %5, i64 %168
  %170 = load <8 x float>, ptr %169, align 32
  %171 = fadd <8 x float> %170, %165
  store <8 x float> %171, ptr %169, align 32
  %172 = add nuw nsw i64 %138, 8
  %173 = icmp samesign ult i64 %138, 504
  br i1 %173, label %loop9, label %done10

done10:                                           ; preds = %loop9
  %174 = load <8 x float>, ptr %5, align 32
  %175 = load <8 x float>, ptr %130, align 32
  %176 = load <8 x float>, ptr %131, align 32
  %177 = load <8 x float>, ptr %132, align 32
  %178 = load <8 x float>, ptr %133, align 32
  %179 = load <8 x float>, ptr %134, align 32
  %180 = load <8 x float>, ptr %135, align 32
  %181 = load <8 x float>, ptr %136, align 32
  %182 = fadd <8 x float> %174, %178
  %183 = fadd <8 x float> %175, %179
  %184 = fadd <8 x float> %176, %180
  %185 = fadd <8 x float> %177, %181
  %186 = fadd <8 x float> %182, %184
  %187 = fadd <8 x float> %183, %185
  %188 = fadd <8 x float> %186, %187
  %189 = shufflevector <8 x float> %188, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %190 = shufflevector <8 x float> %188, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %191 = fadd <4 x float> %190, %189
  %192 = shufflevector <4 x float> %191, <4 x float> poison, <4 x i32> <i32 2, i32 3, i32 2, i32 3>
  %193 = fadd <4 x float> %191, %192
  %194 = shufflevector <4 x float> %193, <4 x float> poison, <4 x i32> <i32 1, i32 poison, i32 poison, i32 poison>
  %195 = fadd <4 x float> %193, %194
  %196 = extractelement <4 x float> %195, i64 0
  %197 = fadd float %196, 0x43D0000000000000
  %198 = getelementptr float, ptr %22, i64 %28
  br label %loop11

loop11:                                           ; preds = %loop11, %done10
  %199 = phi i64 [ 0, %done10 ], [ %207, %loop11 ]
  %200 = call i64 @llvm.expect.i64(i64 %199, i64 %199)
  %201 = getelementptr float, ptr %3, i64 %200
  %202 = load <8 x float>, ptr %201, align 4
  %203 = insertelement <8 x float> poison, float %197, i64 0
  %204 = shufflevector <8 x float> %203, <8 x float> poison, <8 x i32> zeroinitializer
  %205 = fdiv <8 x float> %202, %204
  %206 = getelementptr float, ptr %198, i64 %200
  store <8 x float> %205, ptr %206, align 4
  %207 = add nuw nsw i64 %200, 8
  %208 = icmp samesign ult i64 %200, 504
  br i1 %208, label %loop11, label %done12

done12:                                           ; preds = %loop11
  %209 = add nuw nsw i64 %26, 1
  %210 = icmp samesign ult i64 %209, %16
  br i1 %210, label %loop4, label %done5
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <8 x float> @llvm.maximum.v8f32(<8 x float>, <8 x float>) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>) #1

; Function Attrs: nounwind
define void @fusion_2(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load ptr, ptr %0, align 8
  %5 = getelementptr i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %0, i64 24
  %8 = load ptr, ptr %7, align 8
  %9 = shl i64 %2, 14
  %10 = load i32, ptr %4, align 4
  %11 = shl i32 %10, 2
  %12 = call i32 @llvm.smax.i32(i32 %11, i32 0)
  %13 = call i32 @llvm.smin.i32(i32 %12, i32 8)
  %14 = shl nuw nsw i32 %13, 15
  %15 = zext nneg i32 %14 to i64
  %16 = getelementptr float, ptr %8, i64 %15
  %17 = shl i64 %1, 14
  %18 = icmp slt i64 %17, %9
  br i1 %18, label %loop, label %done

loop:                                             ; preds = %loop, %entry
  %19 = phi i64 [ %17, %entry ], [ %24, %loop ]
  %20 = call i64 @llvm.expect.i64(i64 %19, i64 %19)
  %21 = getelementptr float, ptr %6, i64 %20
  %22 = load <8 x float>, ptr %21, align 4
  %23 = getelementptr float, ptr %16, i64 %20
  store <8 x float> %22, ptr %23, align 4
  %24 = add nsw i64 %20, 8
  %25 = icmp slt i64 %24, %9
  br i1 %25, label %loop, label %done

done:                                             ; preds = %loop, %entry
  ret void
}

; Function Attrs: nounwind
define void @wrapped_add(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = load ptr, ptr %0, align 8
  %5 = load i32, ptr %4, align 4
  %6 = add i32 %5, 1
  %7 = getelementptr i8, ptr %0, i64 8
  %8 = load ptr, ptr %7, align 8
  store i32 %6, ptr %8, align 4
  ret void
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(none)
declare <8 x i32> @llvm.x86.avx2.pslli.d(<8 x i32>, i32) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(none)
declare i64 @llvm.expect.i64(i64, i64) #2

attributes #0 = { nounwind }
attributes #1 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(none) }
