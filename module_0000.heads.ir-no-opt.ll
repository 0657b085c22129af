; ModuleID = 'heads'
source_filename = "heads"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define void @wrapped_broadcast(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  br label %start

start:                                            ; preds = %entry
  %4 = getelementptr ptr, ptr %0, i64 0
  %5 = load ptr, ptr %4, align 8
  %6 = mul i64 %1, 32768
  %7 = mul i64 %2, 32768
  %8 = sub i64 %7, %6
  %9 = and i64 %8, -16
  %10 = add i64 %6, %9
  br label %enter

loop:                                             ; preds = %loop, %enter
  %11 = phi i64 [ %6, %enter ], [ %17, %loop ]
  %12 = add nsw i64 0, %11
  %13 = getelementptr float, ptr %5, i64 %12
  store <8 x float> zeroinitializer, ptr %13, align 4
  %14 = add nsw i64 0, %11
  %15 = getelementptr float, ptr %5, i64 8
  %16 = getelementptr float, ptr %15, i64 %14
  store <8 x float> zeroinitializer, ptr %16, align 4
  %17 = add nsw i64 %11, 16
  %18 = icmp slt i64 %17, %10
  br i1 %18, label %loop, label %done

done:                                             ; preds = %loop, %enter
  ret void

enter:                                            ; preds = %start
  %19 = icmp slt i64 %6, %10
  br i1 %19, label %loop, label %done
}

; Function Attrs: nounwind
define void @wrapped_compare(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  br label %start

start:                                            ; preds = %entry
  %4 = getelementptr ptr, ptr %0, i64 0
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr ptr, ptr %0, i64 1
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr i32, ptr %5, i64 0
  %9 = load i32, ptr %8, align 4
  %10 = icmp slt i32 %9, 3
  br label %loop

loop:                                             ; preds = %start
  %11 = getelementptr i8, ptr %7, i64 0
  %12 = zext i1 %10 to i8
  store i8 %12, ptr %11, align 1
  br label %done

done:                                             ; preds = %loop
  ret void
}

; Function Attrs: nounwind
define void @fusion_5(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  br label %start

start:                                            ; preds = %entry
  %4 = getelementptr ptr, ptr %0, i64 0
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr ptr, ptr %0, i64 1
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr ptr, ptr %0, i64 2
  %9 = load ptr, ptr %8, align 8
  %10 = mul i64 %1, 16384
  %11 = mul i64 %2, 16384
  %12 = sub i64 %11, %10
  %13 = and i64 %12, -8
  %14 = add i64 %10, %13
  %15 = getelementptr i32, ptr %5, i64 0
  %16 = load i32, ptr %15, align 4
  %17 = mul i32 %16, 4
  %18 = call i32 @llvm.smax.i32(i32 0, i32 %17)
  %19 = call i32 @llvm.smin.i32(i32 %18, i32 8)
  %20 = sext i32 %19 to i64
  %21 = mul nsw i64 %20, 32768
  %22 = getelementptr float, ptr %7, i64 %21
  br label %enter

loop:                                             ; preds = %loop, %enter
  %23 = phi i64 [ %10, %enter ], [ %29, %loop ]
  %24 = add nsw i64 0, %23
  %25 = getelementptr float, ptr %22, i64 %24
  %26 = load <8 x float>, ptr %25, align 4
  %27 = add nsw i64 0, %23
  %28 = getelementptr float, ptr %9, i64 %27
  store <8 x float> %26, ptr %28, align 4
  %29 = add nsw i64 %23, 8
  %30 = icmp slt i64 %29, %14
  br i1 %30, label %loop, label %done

done:                                             ; preds = %loop, %enter
  ret void

enter:                                            ; preds = %start
  %31 = icmp slt i64 %10, %14
  br i1 %31, label %loop, label %done
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smax.i32(i32, i32) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.smin.i32(i32, i32) #1

; Function Attrs: nounwind
define void @fusion_3(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  %4 = alloca <8 x float>, align 32
  %5 = alloca <8 x float>, align 32
  %6 = alloca <8 x float>, align 32
  %7 = alloca <8 x float>, align 32
  %8 = alloca <8 x float>, align 32
  %9 = alloca <8 x float>, align 32
  %10 = alloca <8 x float>, align 32
  %11 = alloca <8 x float>, align 32
  %12 = alloca [8 x <8 x float>], align 32
  br label %start

start:                                            ; preds = %entry
  %13 = getelementptr ptr, ptr %0, i64 0
  %14 = load ptr, ptr %13, align 8
  %15 = getelementptr ptr, ptr %0, i64 1
  %16 = load ptr, ptr %15, align 8
  br label %enter

loop:                                             ; preds = %done2, %enter
  %17 = phi i64 [ %1, %enter ], [ %41, %done2 ]
  %18 = urem i64 %17, 8
  %19 = udiv i64 %17, 8
  %20 = add i64 %18, 1
  %21 = mul i64 %18, 64
  %22 = mul i64 %20, 64
  %23 = urem i64 %19, 4
  %24 = udiv i64 %19, 4
  %25 = add i64 %23, 1
  %26 = mul i64 %23, 1
  %27 = mul i64 %25, 1
  br label %enter3

done:                                             ; preds = %done2, %enter
  ret void

enter:                                            ; preds = %start
  %28 = icmp slt i64 %1, %2
  br i1 %28, label %loop, label %done

loop1:                                            ; preds = %done5, %enter3
  %29 = phi i64 [ %26, %enter3 ], [ %55, %done5 ]
  %30 = mul nsw i64 %29, 262144
  %31 = getelementptr float, ptr %14, i64 %30
  %32 = getelementptr float, ptr %14, i64 %30
  %33 = getelementptr float, ptr %14, i64 %30
  %34 = getelementptr float, ptr %14, i64 %30
  %35 = getelementptr float, ptr %14, i64 %30
  %36 = getelementptr float, ptr %14, i64 %30
  %37 = getelementptr float, ptr %14, i64 %30
  %38 = getelementptr float, ptr %14, i64 %30
  %39 = getelementptr float, ptr %14, i64 %30
  %40 = getelementptr float, ptr %16, i64 %30
  br label %enter6

done2:                                            ; preds = %done5, %enter3
  %41 = add nsw i64 %17, 1
  %42 = icmp slt i64 %41, %2
  br i1 %42, label %loop, label %done

enter3:                                           ; preds = %loop
  %43 = icmp slt i64 %26, %27
  br i1 %43, label %loop1, label %done2

loop4:                                            ; preds = %done12, %enter6
  %44 = phi i64 [ %21, %enter6 ], [ %286, %done12 ]
  store <8 x float> splat (float 0xFFF0000000000000), ptr %4, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %5, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %6, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %7, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %8, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %9, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %10, align 32
  store <8 x float> splat (float 0xFFF0000000000000), ptr %11, align 32
  %45 = trunc i64 %44 to i32
  %46 = mul nsw i64 %44, 512
  %47 = getelementptr float, ptr %31, i64 %46
  %48 = getelementptr float, ptr %32, i64 %46
  %49 = getelementptr float, ptr %33, i64 %46
  %50 = getelementptr float, ptr %34, i64 %46
  %51 = getelementptr float, ptr %35, i64 %46
  %52 = getelementptr float, ptr %36, i64 %46
  %53 = getelementptr float, ptr %37, i64 %46
  %54 = getelementptr float, ptr %38, i64 %46
  br label %loop7

done5:                                            ; preds = %done12, %enter6
  %55 = add nsw i64 %29, 1
  %56 = icmp slt i64 %55, %27
  br i1 %56, label %loop1, label %done2

enter6:                                           ; preds = %loop1
  %57 = icmp slt i64 %21, %22
  br i1 %57, label %loop4, label %done5

loop7:                                            ; preds = %loop7, %loop4
  %58 = phi i64 [ 0, %loop4 ], [ %178, %loop7 ]
  %59 = icmp eq i64 %58, 0
  %60 = trunc i64 %58 to i32
  %61 = insertelement <8 x i32> poison, i32 %60, i32 0
  %62 = shufflevector <8 x i32> %61, <8 x i32> poison, <8 x i32> zeroinitializer
  %63 = add nsw <8 x i32> %62, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %64 = add nsw i64 %58, 8
  %65 = trunc i64 %64 to i32
  %66 = insertelement <8 x i32> poison, i32 %65, i32 0
  %67 = shufflevector <8 x i32> %66, <8 x i32> poison, <8 x i32> zeroinitializer
  %68 = add nsw <8 x i32> %67, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %69 = add nsw i64 %58, 16
  %70 = trunc i64 %69 to i32
  %71 = insertelement <8 x i32> poison, i32 %70, i32 0
  %72 = shufflevector <8 x i32> %71, <8 x i32> poison, <8 x i32> zeroinitializer
  %73 = add nsw <8 x i32> %72, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %74 = add nsw i64 %58, 24
  %75 = trunc i64 %74 to i32
  %76 = insertelement <8 x i32> poison, i32 %75, i32 0
  %77 = shufflevector <8 x i32> %76, <8 x i32> poison, <8 x i32> zeroinitializer
  %78 = add nsw <8 x i32> %77, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %79 = add nsw i64 %58, 32
  %80 = trunc i64 %79 to i32
  %81 = insertelement <8 x i32> poison, i32 %80, i32 0
  %82 = shufflevector <8 x i32> %81, <8 x i32> poison, <8 x i32> zeroinitializer
  %83 = add nsw <8 x i32> %82, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %84 = add nsw i64 %58, 40
  %85 = trunc i64 %84 to i32
  %86 = insertelement <8 x i32> poison, i32 %85, i32 0
  %87 = shufflevector <8 x i32> %86, <8 x i32> poison, <8 x i32> zeroinitializer
  %88 = add nsw <8 x i32> %87, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %89 = add nsw i64 %58, 48
  %90 = trunc i64 %89 to i32
  %91 = insertelement <8 x i32> poison, i32 %90, i32 0
  %92 = shufflevector <8 x i32> %91, <8 x i32> poison, <8 x i32> zeroinitializer
  %93 = add nsw <8 x i32> %92, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %94 = add nsw i64 %58, 56
  %95 = trunc i64 %94 to i32
  %96 = insertelement <8 x i32> poison, i32 %95, i32 0
  %97 = shufflevector <8 x i32> %96, <8 x i32> poison, <8 x i32> zeroinitializer
  %98 = add nsw <8 x i32> %97, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %99 = insertelement <8 x i32> poison, i32 %45, i32 0
  %100 = shufflevector <8 x i32> %99, <8 x i32> poison, <8 x i32> zeroinitializer
  %101 = icmp sge <8 x i32> %100, %63
  %102 = insertelement <8 x i32> poison, i32 %45, i32 0
  %103 = shufflevector <8 x i32> %102, <8 x i32> poison, <8 x i32> zeroinitializer
  %104 = icmp sge <8 x i32> %103, %68
  %105 = insertelement <8 x i32> poison, i32 %45, i32 0
  %106 = shufflevector <8 x i32> %105, <8 x i32> poison, <8 x i32> zeroinitializer
  %107 = icmp sge <8 x i32> %106, %73
  %108 = insertelement <8 x i32> poison, i32 %45, i32 0
  %109 = shufflevector <8 x i32> %108, <8 x i32> poison, <8 x i32> zeroinitializer
  %110 = icmp sge <8 x i32> %109, %78
  %111 = insertelement <8 x i32> poison, i32 %45, i32 0
  %112 = shufflevector <8 x i32> %111, <8 x i32> poison, <8 x i32> zeroinitializer
  %113 = icmp sge <8 x i32> %112, %83
  %114 = insertelement <8 x i32> poison, i32 %45, i32 0
  %115 = shufflevector <8 x i32> %114, <8 x i32> poison, <8 x i32> zeroinitializer
  %116 = icmp sge <8 x i32> %115, %88
  %117 = insertelement <8 x i32> poison, i32 %45, i32 0
  %118 = shufflevector <8 x i32> %117, <8 x i32> poison, <8 x i32> zeroinitializer
  %119 = icmp sge <8 x i32> %118, %93
  %120 = insertelement <8 x i32> poison, i32 %45, i32 0
  %121 = shufflevector <8 x i32> %120, <8 x i32> poison, <8 x i32> zeroinitializer
  %122 = icmp sge <8 x i32> %121, %98
  %123 = add nsw i64 0, %58
  %124 = getelementptr float, ptr %47, i64 %123
  %125 = load <8 x float>, ptr %124, align 4
  %126 = add nsw i64 0, %58
  %127 = getelementptr float, ptr %48, i64 8
  %128 = getelementptr float, ptr %127, i64 %126
  %129 = load <8 x float>, ptr %128, align 4
  %130 = add nsw i64 0, %58
  %131 = getelementptr float, ptr %49, i64 16
  %132 = getelementptr float, ptr %131, i64 %130
  %133 = load <8 x float>, ptr %132, align 4
  %134 = add nsw i64 0, %58
  %135 = getelementptr float, ptr %50, i64 24
  %136 = getelementptr float, ptr %135, i64 %134
  %137 = load <8 x float>, ptr %136, align 4
  %138 = add nsw i64 0, %58
  %139 = getelementptr float, ptr %51, i64 32
  %140 = getelementptr float, ptr %139, i64 %138
  %141 = load <8 x float>, ptr %140, align 4
  %142 = add nsw i64 0, %58
  %143 = getelementptr float, ptr %52, i64 40
  %144 = getelementptr float, ptr %143, i64 %142
  %145 = load <8 x float>, ptr %144, align 4
  %146 = add nsw i64 0, %58
  %147 = getelementptr float, ptr %53, i64 48
  %148 = getelementptr float, ptr %147, i64 %146
  %149 = load <8 x float>, ptr %148, align 4
  %150 = add nsw i64 0, %58
  %151 = getelementptr float, ptr %54, i64 56
  %152 = getelementptr float, ptr %151, i64 %150
  %153 = load <8 x float>, ptr %152, align 4
  %154 = select <8 x i1> %101, <8 x float> %125, <8 x float> splat (float 0xFFF0000000000000)
  %155 = select <8 x i1> %104, <8 x float> %129, <8 x float> splat (float 0xFFF0000000000000)
  %156 = select <8 x i1> %107, <8 x float> %133, <8 x float> splat (float 0xFFF0000000000000)
  %157 = select <8 x i1> %110, <8 x float> %137, <8 x float> splat (float 0xFFF0000000000000)
  %158 = select <8 x i1> %113, <8 x float> %141, <8 x float> splat (float 0xFFF0000000000000)
  %159 = select <8 x i1> %116, <8 x float> %145, <8 x float> splat (float 0xFFF0000000000000)
  %160 = select <8 x i1> %119, <8 x float> %149, <8 x float> splat (float 0xFFF0000000000000)
  %161 = select <8 x i1> %122, <8 x float> %153, <8 x float> splat (float 0xFFF0000000000000)
  %162 = load <8 x float>, ptr %4, align 32
  %163 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %162, <8 x float> %154)
  store <8 x float> %163, ptr %4, align 32
  %164 = load <8 x float>, ptr %5, align 32
  %165 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %164, <8 x float> %155)
  store <8 x float> %165, ptr %5, align 32
  %166 = load <8 x float>, ptr %6, align 32
  %167 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %166, <8 x float> %156)
  store <8 x float> %167, ptr %6, align 32
  %168 = load <8 x float>, ptr %7, align 32
  %169 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %168, <8 x float> %157)
  store <8 x float> %169, ptr %7, align 32
  %170 = load <8 x float>, ptr %8, align 32
  %171 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %170, <8 x float> %158)
  store <8 x float> %171, ptr %8, align 32
  %172 = load <8 x float>, ptr %9, align 32
  %173 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %172, <8 x float> %159)
  store <8 x float> %173, ptr %9, align 32
  %174 = load <8 x float>, ptr %10, align 32
  %175 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %174, <8 x float> %160)
  store <8 x float> %175, ptr %10, align 32
  %176 = load <8 x float>, ptr %11, align 32
  %177 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %176, <8 x float> %161)
  store <8 x float> %177, ptr %11, align 32
  %178 = add nsw i64 %58, 64
  %179 = icmp slt i64 %178, 512
  br i1 %179, label %loop7, label %done8

done8:                                            ; preds = %loop7
  %180 = load <8 x float>, ptr %4, align 32
  %181 = load <8 x float>, ptr %5, align 32
  %182 = load <8 x float>, ptr %6, align 32
  %183 = load <8 x float>, ptr %7, align 32
  %184 = load <8 x float>, ptr %8, align 32
  %185 = load <8 x float>, ptr %9, align 32
  %186 = load <8 x float>, ptr %10, align 32
  %187 = load <8 x float>, ptr %11, align 32
  %188 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %180, <8 x float> %184)
  %189 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %181, <8 x float> %185)
  %190 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %182, <8 x float> %186)
  %191 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %183, <8 x float> %187)
  %192 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %188, <8 x float> %190)
  %193 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %189, <8 x float> %191)
  %194 = call <8 x float> @llvm.maximum.v8f32(<8 x float> %192, <8 x float> %193)
  %195 = shufflevector <8 x float> %194, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %196 = shufflevector <8 x float> %194, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %197 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %196, <4 x float> %195)
  %198 = shufflevector <4 x float> %197, <4 x float> poison, <4 x i32> <i32 2, i32 3, i32 2, i32 3>
  %199 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %197, <4 x float> %198)
  %200 = shufflevector <4 x float> %199, <4 x float> poison, <4 x i32> <i32 1, i32 1, i32 1, i32 1>
  %201 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %199, <4 x float> %200)
  %202 = extractelement <4 x float> %201, i32 0
  %203 = getelementptr <8 x float>, ptr %12, i64 0
  store <8 x float> splat (float -0.000000e+00), ptr %203, align 32
  %204 = getelementptr <8 x float>, ptr %12, i64 1
  store <8 x float> splat (float -0.000000e+00), ptr %204, align 32
  %205 = getelementptr <8 x float>, ptr %12, i64 2
  store <8 x float> splat (float -0.000000e+00), ptr %205, align 32
  %206 = getelementptr <8 x float>, ptr %12, i64 3
  store <8 x float> splat (float -0.000000e+00), ptr %206, align 32
  %207 = getelementptr <8 x float>, ptr %12, i64 4
  store <8 x float> splat (float -0.000000e+00), ptr %207, align 32
  %208 = getelementptr <8 x float>, ptr %12, i64 5
  store <8 x float> splat (float -0.000000e+00), ptr %208, align 32
  %209 = getelementptr <8 x float>, ptr %12, i64 6
  store <8 x float> splat (float -0.000000e+00), ptr %209, align 32
  %210 = getelementptr <8 x float>, ptr %12, i64 7
  store <8 x float> splat (float -0.000000e+00), ptr %210, align 32
  %211 = getelementptr float, ptr %39, i64 %46
  br label %loop9

loop9:                                            ; preds = %loop9, %done8
  %212 = phi i64 [ 0, %done8 ], [ %238, %loop9 ]
  %213 = icmp eq i64 %212, 0
  %214 = trunc i64 %212 to i32
  %215 = insertelement <8 x i32> poison, i32 %214, i32 0
  %216 = shufflevector <8 x i32> %215, <8 x i32> poison, <8 x i32> zeroinitializer
  %217 = add nsw <8 x i32> %216, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %218 = insertelement <8 x i32> poison, i32 %45, i32 0
  %219 = shufflevector <8 x i32> %218, <8 x i32> poison, <8 x i32> zeroinitializer
  %220 = icmp sge <8 x i32> %219, %217
  %221 = add nsw i64 0, %212
  %222 = getelementptr float, ptr %211, i64 %221
  %223 = load <8 x float>, ptr %222, align 4
  %224 = select <8 x i1> %220, <8 x float> %223, <8 x float> splat (float 0xFFF0000000000000)
  %225 = insertelement <8 x float> poison, float %202, i32 0
  %226 = shufflevector <8 x float> %225, <8 x float> poison, <8 x i32> zeroinitializer
  %227 = fsub <8 x float> %224, %226
  %228 = call <8 x float> @dl_exp_down_f32_x8(<8 x float> %227)
  %229 = add i64 0, %212
  %230 = getelementptr i8, ptr %3, i64 0
  %231 = getelementptr float, ptr %230, i64 %229
  store <8 x float> %228, ptr %231, align 4
  %232 = udiv i64 %212, 8
  %233 = and i64 %232, 7
  %234 = getelementptr <8 x float>, ptr %12, i64 %233
  %235 = load <8 x float>, ptr %234, align 32
  %236 = fadd <8 x float> %235, %228
  %237 = getelementptr <8 x float>, ptr %12, i64 %233
  store <8 x float> %236, ptr %237, align 32
  %238 = add nsw i64 %212, 8
  %239 = icmp slt i64 %238, 512
  br i1 %239, label %loop9, label %done10

done10:                                           ; preds = %loop9
  %240 = getelementptr <8 x float>, ptr %12, i64 0
  %241 = load <8 x float>, ptr %240, align 32
  %242 = getelementptr <8 x float>, ptr %12, i64 1
  %243 = load <8 x float>, ptr %242, align 32
  %244 = getelementptr <8 x float>, ptr %12, i64 2
  %245 = load <8 x float>, ptr %244, align 32
  %246 = getelementptr <8 x float>, ptr %12, i64 3
  %247 = load <8 x float>, ptr %246, align 32
  %248 = getelementptr <8 x float>, ptr %12, i64 4
  %249 = load <8 x float>, ptr %248, align 32
  %250 = getelementptr <8 x float>, ptr %12, i64 5
  %251 = load <8 x float>, ptr %250, align 32
  %252 = getelementptr <8 x float>, ptr %12, i64 6
  %253 = load <8 x float>, ptr %252, align 32
  %254 = getelementptr <8 x float>, ptr %12, i64 7
  %255 = load <8 x float>, ptr %254, align 32
  %256 = fadd <8 x float> %241, %249
  %257 = fadd <8 x float> %243, %251
  %258 = fadd <8 x float> %245, %253
  %259 = fadd <8 x float> %247, %255
  %260 = fadd <8 x float> %256, %258
  %261 = fadd <8 x float> %257, %259
  %262 = fadd <8 x float> %260, %261
  %263 = shufflevector <8 x float> %262, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %264 = shufflevector <8 x float> %262, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %265 = fadd <4 x float> %264, %263
  %266 = shufflevector <4 x float> %265, <4 x float> poison, <4 x i32> <i32 2, i32 3, i32 2, i32 3>
  %267 = fadd <4 x float> %265, %266
  %268 = shufflevector <4 x float> %267, <4 x float> poison, <4 x i32> <i32 1, i32 1, i32 1, i32 1>
  %269 = fadd <4 x float> %267, %268
  %270 = extractelement <4 x float> %269, i32 0
  %271 = fadd float 0x43D0000000000000, %270
  %272 = getelementptr float, ptr %40, i64 %46
  br label %loop11

loop11:                                           ; preds = %loop11, %done10
  %273 = phi i64 [ 0, %done10 ], [ %284, %loop11 ]
  %274 = icmp eq i64 %273, 0
  %275 = add i64 0, %273
  %276 = getelementptr i8, ptr %3, i64 0
  %277 = getelementptr float, ptr %276, i64 %275
  %278 = load <8 x float>, ptr %277, align 4
  %279 = insertelement <8 x float> poison, float %271, i32 0
  %280 = shufflevector <8 x float> %279, <8 x float> poison, <8 x i32> zeroinitializer
  %281 = fdiv <8 x float> %278, %280
  %282 = add nsw i64 0, %273
  %283 = getelementptr float, ptr %272, i64 %282
  store <8 x float> %281, ptr %283, align 4
  %284 = add nsw i64 %273, 8
  %285 = icmp slt i64 %284, 512
  br i1 %285, label %loop11, label %done12

done12:                                           ; preds = %loop11
  %286 = add nsw i64 %44, 1
  %287 = icmp slt i64 %286, %22
  br i1 %287, label %loop4, label %done5
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <8 x float> @llvm.maximum.v8f32(<8 x float>, <8 x float>) #1

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>) #1

; Function Attrs: alwaysinline nofree nosync nounwind willreturn memory(none)
define internal <8 x float> @dl_exp_down_f32_x8(<8 x float> noundef %0) unnamed_addr #2 {
  %2 = fcmp olt <8 x float> %0, splat (float -1.045000e+02)
  %3 = select <8 x i1> %2, <8 x float> splat (float -1.045000e+02), <8 x float> %0
  %4 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %3, <8 x float> splat (float 0x3FF7154760000000), <8 x float> splat (float 0x4168000000000000))
  %5 = bitcast <8 x float> %4 to <8 x i32>
  %6 = fadd <8 x float> %4, splat (float 0xC168000000000000)
  %7 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %6, <8 x float> splat (float 0xBFE62E4300000000), <8 x float> %3)
  %8 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %6, <8 x float> splat (float 0x3E205C6100000000), <8 x float> %7)
  %9 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %8, <8 x float> splat (float 0x3F56AD7180000000), <8 x float> splat (float 0x3F8123F4E0000000))
  %10 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %9, <8 x float> %8, <8 x float> splat (float 0x3FA55584C0000000))
  %11 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %10, <8 x float> %8, <8 x float> splat (float 0x3FC55548A0000000))
  %12 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %11, <8 x float> %8, <8 x float> splat (float 0x3FDFFFFFC0000000))
  %13 = fmul <8 x float> %8, %8
  %14 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %13, <8 x float> %12, <8 x float> %8)
  %15 = shl <8 x i32> %5, splat (i32 23)
  %16 = add <8 x i32> %15, splat (i32 1266679808)
  %17 = bitcast <8 x i32> %16 to <8 x float>
  %18 = tail call <8 x float> @llvm.fma.v8f32(<8 x float> %14, <8 x float> %17, <8 x float> %17)
  %19 = fmul <8 x float> %18, splat (float 0x3E70000000000000)
  ret <8 x float> %19
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>) #1

; Function Attrs: nounwind
define void @fusion_2(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  br label %start

start:                                            ; preds = %entry
  %4 = getelementptr ptr, ptr %0, i64 0
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr ptr, ptr %0, i64 1
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr ptr, ptr %0, i64 2
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr ptr, ptr %0, i64 3
  %11 = load ptr, ptr %10, align 8
  %12 = mul i64 %1, 16384
  %13 = mul i64 %2, 16384
  %14 = sub i64 %13, %12
  %15 = and i64 %14, -8
  %16 = add i64 %12, %15
  %17 = getelementptr i32, ptr %5, i64 0
  %18 = load i32, ptr %17, align 4
  %19 = mul i32 %18, 4
  %20 = call i32 @llvm.smax.i32(i32 0, i32 %19)
  %21 = call i32 @llvm.smin.i32(i32 %20, i32 8)
  %22 = sext i32 %21 to i64
  %23 = mul nsw i64 %22, 32768
  %24 = getelementptr float, ptr %11, i64 %23
  br label %enter

loop:                                             ; preds = %loop, %enter
  %25 = phi i64 [ %12, %enter ], [ %31, %loop ]
  %26 = add nsw i64 0, %25
  %27 = getelementptr float, ptr %7, i64 %26
  %28 = load <8 x float>, ptr %27, align 4
  %29 = add nsw i64 0, %25
  %30 = getelementptr float, ptr %24, i64 %29
  store <8 x float> %28, ptr %30, align 4
  %31 = add nsw i64 %25, 8
  %32 = icmp slt i64 %31, %16
  br i1 %32, label %loop, label %done

done:                                             ; preds = %loop, %enter
  ret void

enter:                                            ; preds = %start
  %33 = icmp slt i64 %12, %16
  br i1 %33, label %loop, label %done
}

; Function Attrs: nounwind
define void @wrapped_add(ptr %0, i64 %1, i64 %2, ptr %3) #0 {
entry:
  br label %start

start:                                            ; preds = %entry
  %4 = getelementptr ptr, ptr %0, i64 0
  %5 = load ptr, ptr %4, align 8
  %6 = getelementptr ptr, ptr %0, i64 1
  %7 = load ptr, ptr %6, align 8
  %8 = getelementptr i32, ptr %5, i64 0
  %9 = load i32, ptr %8, align 4
  %10 = add i32 %9, 1
  br label %loop

loop:                                             ; preds = %start
  %11 = getelementptr i32, ptr %7, i64 0
  store i32 %10, ptr %11, align 4
  br label %done

done:                                             ; preds = %loop
  ret void
}

attributes #0 = { nounwind }
attributes #1 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { alwaysinline nofree nosync nounwind willreturn memory(none) }
