; Generated from native_dispatch.c by scripts/compile_native.py.

%struct.DLTensor = type { i64, i32, i32, i32, i32, ptr, ptr, i64 }
%struct.Call = type { ptr, ptr, ptr, i64, ptr, i64, i64, [64 x ptr], [64 x ptr], i64, [67 x ptr], [64 x i64], [64 x i64], [3 x i32], [72 x ptr], [65 x %struct.ArgumentDescriptor] }
%struct.ArgumentDescriptor = type { ptr, ptr, i64 }
%struct.GlobalCheck = type { ptr, ptr, ptr, ptr }
%struct.GridCheck = type { i64, ptr, ptr, ptr }
%struct.GridStep = type { i64, ptr, ptr }
%struct.OverlapPair = type { i64, i64, i64, i64, i64, ptr }

@object_bytes = external constant i64, align 8

define ptr @tw_dispatch(ptr %0, ptr %1, i64 %2, ptr %3) nounwind {
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = alloca ptr, align 8
  %10 = alloca ptr, align 8
  %11 = alloca i32, align 4
  %12 = alloca i32, align 4
  %13 = alloca i32, align 4
  %14 = alloca ptr, align 8
  %15 = alloca [16 x i64], align 16
  %16 = alloca ptr, align 8
  %17 = alloca %struct.DLTensor, align 8
  %18 = alloca i32, align 4
  %19 = alloca %struct.Call, align 8
  %20 = call ptr @PyLong_AsVoidPtr(ptr %0)
  store ptr %20, ptr %19, align 8
  %21 = load ptr, ptr %20, align 8
  %22 = getelementptr inbounds nuw i8, ptr %19, i64 8
  store ptr %21, ptr %22, align 8
  %23 = getelementptr inbounds nuw i8, ptr %19, i64 16
  store ptr %1, ptr %23, align 8
  %24 = getelementptr inbounds nuw i8, ptr %19, i64 24
  store i64 %2, ptr %24, align 8
  %25 = getelementptr inbounds nuw i8, ptr %19, i64 32
  store ptr %3, ptr %25, align 8
  %26 = icmp eq ptr %3, null
  br i1 %26, label %29, label %27

27:
  %28 = call i64 @PyTuple_Size(ptr %3)
  br label %29

29:
  %30 = phi i64 [ %28, %27 ], [ 0, %4 ]
  %31 = add i64 %2, -1
  %32 = add i64 %30, %31
  %33 = getelementptr inbounds nuw i8, ptr %19, i64 40
  store i64 %32, ptr %33, align 8
  %34 = getelementptr inbounds nuw i8, ptr %20, i64 32
  %35 = load i64, ptr %34, align 8
  %36 = icmp ule i64 %31, %35
  %37 = icmp ult i64 %32, 65
  %38 = select i1 %36, i1 %37, i1 false
  br i1 %38, label %39, label %448

39:
  %40 = getelementptr inbounds nuw i8, ptr %19, i64 1080
  store i64 0, ptr %40, align 8
  %41 = getelementptr inbounds nuw i8, ptr %19, i64 48
  store i64 0, ptr %41, align 8
  %42 = icmp eq i64 %32, 0
  br i1 %42, label %480, label %43

43:
  %44 = load i64, ptr @object_bytes, align 8
  %45 = getelementptr inbounds nuw i8, ptr %19, i64 3240
  %46 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %47 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %48 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  %49 = getelementptr inbounds nuw i8, ptr %17, i64 32
  %50 = getelementptr inbounds nuw i8, ptr %17, i64 24
  %51 = getelementptr inbounds nuw i8, ptr %17, i64 16
  %52 = getelementptr inbounds nuw i8, ptr %19, i64 1088
  br label %53

53:
  %54 = phi i64 [ 0, %43 ], [ %445, %444 ]
  %55 = load ptr, ptr %19, align 8
  %56 = load ptr, ptr %23, align 8
  %57 = getelementptr ptr, ptr %56, i64 %54
  %58 = getelementptr i8, ptr %57, i64 8
  %59 = load ptr, ptr %58, align 8
  %60 = load i64, ptr %24, align 8
  %61 = add i64 %60, -1
  %62 = icmp ult i64 %54, %61
  br i1 %62, label %63, label %68

63:
  %64 = getelementptr inbounds nuw i8, ptr %55, i64 40
  %65 = load ptr, ptr %64, align 8
  %66 = getelementptr inbounds nuw i64, ptr %65, i64 %54
  %67 = load i64, ptr %66, align 8
  br label %102

68:
  %69 = load ptr, ptr %25, align 8
  %70 = sub nuw i64 %54, %61
  %71 = call ptr @PyTuple_GetItem(ptr %69, i64 %70)
  %72 = getelementptr inbounds nuw i8, ptr %55, i64 56
  %73 = load ptr, ptr %72, align 8
  %74 = getelementptr inbounds nuw i8, ptr %55, i64 40
  %75 = load ptr, ptr %74, align 8
  %76 = getelementptr inbounds nuw i8, ptr %55, i64 32
  %77 = load i64, ptr %76, align 8
  %78 = icmp ult i64 %54, %77
  br i1 %78, label %82, label %79

79:
  %80 = call i64 @llvm.umin.i64(i64 %54, i64 %77)
  %81 = icmp eq i64 %80, 0
  br i1 %81, label %102, label %90

82:
  %83 = phi i64 [ %88, %87 ], [ %54, %68 ]
  %84 = getelementptr inbounds nuw ptr, ptr %73, i64 %83
  %85 = load ptr, ptr %84, align 8
  %86 = icmp eq ptr %85, %71
  br i1 %86, label %98, label %87

87:
  %88 = add i64 %83, 1
  %89 = icmp eq i64 %88, %77
  br i1 %89, label %79, label %82

90:
  %91 = phi i64 [ %96, %95 ], [ 0, %79 ]
  %92 = getelementptr inbounds nuw ptr, ptr %73, i64 %91
  %93 = load ptr, ptr %92, align 8
  %94 = icmp eq ptr %93, %71
  br i1 %94, label %98, label %95

95:
  %96 = add nuw i64 %91, 1
  %97 = icmp eq i64 %96, %80
  br i1 %97, label %102, label %90

98:
  %99 = phi i64 [ %91, %90 ], [ %83, %82 ]
  %100 = getelementptr inbounds nuw i64, ptr %75, i64 %99
  %101 = load i64, ptr %100, align 8
  br label %102

102:
  %103 = phi ptr [ null, %63 ], [ %71, %79 ], [ %71, %98 ], [ %71, %95 ]
  %104 = phi i64 [ %67, %63 ], [ 1, %79 ], [ %101, %98 ], [ 1, %95 ]
  %105 = getelementptr inbounds i8, ptr %59, i64 %44
  %106 = getelementptr inbounds i8, ptr %105, i64 -8
  %107 = load ptr, ptr %106, align 8
  %108 = load ptr, ptr %22, align 8
  %109 = getelementptr inbounds nuw i8, ptr %108, i64 136
  %110 = load ptr, ptr %109, align 8
  %111 = icmp eq ptr %107, %110
  %112 = and i64 %104, 1
  %113 = icmp eq i64 %112, 0
  %114 = select i1 %111, i1 %113, i1 false
  br i1 %114, label %115, label %203

115:
  %116 = getelementptr inbounds nuw i8, ptr %108, i64 104
  %117 = load ptr, ptr %116, align 8
  %118 = call ptr @PyObject_GetAttr(ptr %59, ptr %117)
  %119 = load ptr, ptr %22, align 8
  %120 = getelementptr inbounds nuw i8, ptr %119, i64 112
  %121 = load ptr, ptr %120, align 8
  %122 = call ptr @PyObject_GetAttr(ptr %59, ptr %121)
  %123 = load ptr, ptr %22, align 8
  %124 = getelementptr inbounds nuw i8, ptr %123, i64 120
  %125 = load ptr, ptr %124, align 8
  %126 = call ptr @PyObject_GetAttr(ptr %59, ptr %125)
  %127 = icmp ne ptr %118, null
  %128 = icmp ne ptr %122, null
  %129 = and i1 %127, %128
  %130 = icmp ne ptr %126, null
  %131 = and i1 %129, %130
  br i1 %131, label %132, label %201

132:
  %133 = call i64 @PySequence_Size(ptr %118)
  %134 = call i64 @PySequence_Size(ptr %122)
  %135 = icmp eq i64 %133, %134
  br i1 %135, label %136, label %201

136:
  %137 = call i64 @PySequence_Size(ptr %126)
  %138 = icmp eq i64 %133, %137
  %139 = add i64 %133, -1
  %140 = icmp ult i64 %139, 5
  %141 = and i1 %140, %138
  br i1 %141, label %142, label %201

142:
  %143 = load i64, ptr %41, align 8
  %144 = icmp ult i64 %143, 64
  br i1 %144, label %145, label %201

145:
  %146 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %143
  %147 = load ptr, ptr %106, align 8
  store ptr %103, ptr %146, align 8
  %148 = getelementptr inbounds nuw i8, ptr %146, i64 8
  store ptr %147, ptr %148, align 8
  %149 = getelementptr inbounds nuw i8, ptr %146, i64 16
  store i64 0, ptr %149, align 8
  %150 = getelementptr inbounds nuw ptr, ptr %46, i64 %143
  store ptr %59, ptr %150, align 8
  %151 = getelementptr inbounds nuw ptr, ptr %47, i64 %143
  store ptr null, ptr %151, align 8
  %152 = getelementptr inbounds nuw i64, ptr %48, i64 %143
  store i64 0, ptr %152, align 8
  %153 = load ptr, ptr %22, align 8
  %154 = getelementptr inbounds nuw i8, ptr %153, i64 128
  %155 = load ptr, ptr %154, align 8
  %156 = call ptr @PyObject_GetAttr(ptr %59, ptr %155)
  %157 = icmp eq ptr %156, null
  br i1 %157, label %201, label %158

158:
  %159 = ptrtoint ptr %156 to i64
  %160 = or i64 %133, %159
  %161 = load i64, ptr %41, align 8
  %162 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %19, i64 %161
  %163 = getelementptr inbounds nuw i8, ptr %162, i64 3256
  store i64 %160, ptr %163, align 8
  %164 = getelementptr inbounds nuw ptr, ptr %47, i64 %161
  store ptr %156, ptr %164, align 8
  %165 = add i64 %161, 1
  store i64 %165, ptr %41, align 8
  %166 = load ptr, ptr %22, align 8
  %167 = getelementptr inbounds nuw i8, ptr %166, i64 96
  %168 = load ptr, ptr %167, align 8
  %169 = call ptr @PyObject_GetAttr(ptr %59, ptr %168)
  %170 = icmp eq ptr %169, null
  br i1 %170, label %201, label %171

171:
  %172 = load i64, ptr %41, align 8
  %173 = icmp ult i64 %172, 64
  br i1 %173, label %174, label %185

174:
  %175 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %172
  %176 = getelementptr inbounds i8, ptr %169, i64 %44
  %177 = getelementptr inbounds i8, ptr %176, i64 -8
  %178 = load ptr, ptr %177, align 8
  store ptr null, ptr %175, align 8
  %179 = getelementptr inbounds nuw i8, ptr %175, i64 8
  store ptr %178, ptr %179, align 8
  %180 = getelementptr inbounds nuw i8, ptr %175, i64 16
  store i64 0, ptr %180, align 8
  %181 = getelementptr inbounds nuw ptr, ptr %46, i64 %172
  store ptr %169, ptr %181, align 8
  %182 = getelementptr inbounds nuw ptr, ptr %47, i64 %172
  store ptr null, ptr %182, align 8
  %183 = getelementptr inbounds nuw i64, ptr %48, i64 %172
  store i64 0, ptr %183, align 8
  %184 = call fastcc zeroext i1 @describe_array(ptr %19, ptr %169, i64 0)
  br i1 %184, label %186, label %185

185:
  call void @Py_DecRef(ptr %169)
  br label %201

186:
  %187 = load i64, ptr %41, align 8
  %188 = add i64 %187, 1
  store i64 %188, ptr %41, align 8
  %189 = load i64, ptr %40, align 8
  %190 = add i64 %189, 1
  store i64 %190, ptr %40, align 8
  %191 = getelementptr inbounds nuw ptr, ptr %52, i64 %189
  store ptr %169, ptr %191, align 8
  %192 = call fastcc zeroext i1 @describe_numbers(ptr %19, ptr %118, i64 0, i64 %139, i32 0)
  br i1 %192, label %193, label %201

193:
  %194 = call fastcc zeroext i1 @describe_numbers(ptr %19, ptr %118, i64 %139, i64 %133, i32 1)
  br i1 %194, label %195, label %201

195:
  %196 = call fastcc zeroext i1 @describe_numbers(ptr %19, ptr %122, i64 0, i64 %139, i32 2)
  br i1 %196, label %197, label %201

197:
  %198 = call fastcc zeroext i1 @describe_numbers(ptr %19, ptr %122, i64 %139, i64 %133, i32 3)
  br i1 %198, label %199, label %201

199:
  %200 = call fastcc zeroext i1 @describe_numbers(ptr %19, ptr %126, i64 0, i64 %133, i32 3)
  call void @Py_DecRef(ptr %118)
  call void @Py_DecRef(ptr %122)
  call void @Py_DecRef(ptr %126)
  br i1 %200, label %444, label %202

201:
  call void @Py_DecRef(ptr %118)
  call void @Py_DecRef(ptr %122)
  call void @Py_DecRef(ptr %126)
  br label %202

202:
  call void @PyErr_Clear()
  br label %418

203:
  %204 = load i64, ptr %41, align 8
  %205 = icmp ult i64 %204, 64
  br i1 %205, label %206, label %421

206:
  %207 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %204
  store ptr %103, ptr %207, align 8
  %208 = getelementptr inbounds nuw i8, ptr %207, i64 8
  store ptr %107, ptr %208, align 8
  %209 = getelementptr inbounds nuw i8, ptr %207, i64 16
  store i64 0, ptr %209, align 8
  %210 = getelementptr inbounds nuw ptr, ptr %46, i64 %204
  store ptr %59, ptr %210, align 8
  %211 = getelementptr inbounds nuw ptr, ptr %47, i64 %204
  store ptr null, ptr %211, align 8
  %212 = getelementptr inbounds nuw i64, ptr %48, i64 %204
  store i64 0, ptr %212, align 8
  %213 = load ptr, ptr %106, align 8
  %214 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %19, i64 %204
  %215 = getelementptr inbounds nuw i8, ptr %214, i64 3256
  %216 = load ptr, ptr %108, align 8
  %217 = icmp eq ptr %213, %216
  br i1 %217, label %218, label %297

218:
  %219 = call i64 @PyLong_AsLongLongAndOverflow(ptr %59, ptr %18)
  %220 = load i32, ptr %18, align 4
  %221 = icmp eq i32 %220, 0
  br i1 %221, label %222, label %295

222:
  %223 = lshr i64 %104, 8
  %224 = and i64 %223, 63
  %225 = icmp eq i64 %224, 0
  br i1 %225, label %235, label %226

226:
  %227 = and i64 %104, 32
  %228 = icmp eq i64 %227, 0
  %229 = add nsw i64 %224, -1
  %230 = shl nuw nsw i64 1, %229
  %231 = select i1 %228, i64 0, i64 %230
  %232 = add i64 %219, %231
  %233 = lshr i64 %232, %224
  %234 = icmp eq i64 %233, 0
  br i1 %234, label %235, label %295

235:
  %236 = lshr i64 %104, 32
  %237 = icmp eq i64 %236, 0
  br i1 %237, label %241, label %238

238:
  %239 = srem i64 %219, %236
  %240 = icmp eq i64 %239, 0
  br i1 %240, label %241, label %295

241:
  %242 = and i64 %104, 9
  %243 = icmp eq i64 %242, 0
  br i1 %243, label %244, label %288

244:
  %245 = icmp eq i64 %219, 1
  %246 = and i64 %104, 2
  %247 = icmp eq i64 %246, 0
  %248 = and i1 %247, %245
  br i1 %248, label %267, label %249

249:
  %250 = add i64 %219, 2147483648
  %251 = icmp ult i64 %250, 4294967296
  %252 = select i1 %251, i64 2, i64 5
  %253 = and i64 %219, 7
  %254 = and i64 %104, 6
  %255 = or i64 %253, %254
  %256 = icmp eq i64 %255, 0
  %257 = zext i1 %256 to i64
  %258 = and i64 %219, 15
  %259 = or i64 %258, %254
  %260 = icmp eq i64 %259, 0
  %261 = zext i1 %260 to i64
  %262 = lshr i64 %219, 60
  %263 = and i64 %262, 8
  %264 = or disjoint i64 %252, %263
  %265 = add nuw nsw i64 %264, %257
  %266 = add nuw nsw i64 %265, %261
  br label %267

267:
  %268 = phi i64 [ %266, %249 ], [ 1, %244 ]
  %269 = and i64 %104, 128
  %270 = icmp eq i64 %269, 0
  br i1 %270, label %285, label %271

271:
  %272 = load ptr, ptr %19, align 8
  %273 = getelementptr inbounds nuw i8, ptr %272, i64 48
  %274 = load ptr, ptr %273, align 8
  %275 = lshr i64 %104, 15
  %276 = and i64 %275, 126
  %277 = getelementptr inbounds nuw i64, ptr %274, i64 %276
  %278 = load i64, ptr %277, align 8
  %279 = icmp sgt i64 %278, %219
  br i1 %279, label %285, label %280

280:
  %281 = getelementptr inbounds nuw i8, ptr %277, i64 8
  %282 = load i64, ptr %281, align 8
  %283 = icmp slt i64 %219, %282
  %284 = select i1 %283, i64 0, i64 16
  br label %285

285:
  %286 = phi i64 [ 0, %267 ], [ 16, %271 ], [ %284, %280 ]
  %287 = add nuw nsw i64 %286, %268
  br label %288

288:
  %289 = phi i64 [ %287, %285 ], [ %219, %241 ]
  store i64 %289, ptr %215, align 8
  store i64 %219, ptr %212, align 8
  %290 = and i64 %104, 16
  %291 = icmp eq i64 %290, 0
  br i1 %291, label %296, label %292

292:
  %293 = sitofp i64 %219 to double
  %294 = call ptr @PyFloat_FromDouble(double %293)
  store ptr %294, ptr %211, align 8
  br label %296

295:
  br label %418

296:
  br label %319

297:
  %298 = getelementptr inbounds nuw i8, ptr %108, i64 8
  %299 = load ptr, ptr %298, align 8
  %300 = icmp eq ptr %213, %299
  br i1 %300, label %301, label %306

301:
  %302 = call double @PyFloat_AsDouble(ptr %59)
  %303 = and i64 %104, 9
  %304 = icmp eq i64 %303, 0
  br i1 %304, label %319, label %305

305:
  store double %302, ptr %215, align 8
  br label %319

306:
  br i1 %113, label %307, label %315

307:
  %308 = getelementptr inbounds nuw i8, ptr %108, i64 16
  %309 = load ptr, ptr %308, align 8
  %310 = icmp eq ptr %213, %309
  br i1 %310, label %315, label %311

311:
  %312 = getelementptr inbounds nuw i8, ptr %108, i64 40
  %313 = load ptr, ptr %312, align 8
  %314 = icmp eq ptr %59, %313
  br i1 %314, label %315, label %317

315:
  %316 = ptrtoint ptr %59 to i64
  store i64 %316, ptr %215, align 8
  br label %319

317:
  %318 = call fastcc zeroext i1 @describe_array(ptr %19, ptr %59, i64 %104)
  br i1 %318, label %319, label %418

319:
  %320 = load i64, ptr %41, align 8
  %321 = add i64 %320, 1
  store i64 %321, ptr %41, align 8
  %322 = and i64 %104, 64
  %323 = icmp eq i64 %322, 0
  br i1 %323, label %444, label %324

324:
  %325 = load ptr, ptr %22, align 8
  %326 = load ptr, ptr %106, align 8
  %327 = getelementptr inbounds nuw i8, ptr %325, i64 160
  %328 = load ptr, ptr %327, align 8
  %329 = icmp eq ptr %326, %328
  br i1 %329, label %330, label %338

330:
  %331 = getelementptr inbounds nuw i8, ptr %105, i64 8
  %332 = load i32, ptr %331, align 8
  %333 = sext i32 %332 to i64
  %334 = getelementptr inbounds nuw i8, ptr %105, i64 16
  %335 = load ptr, ptr %334, align 8
  %336 = getelementptr inbounds nuw i8, ptr %105, i64 24
  %337 = load ptr, ptr %336, align 8
  br label %375

338:
  %339 = getelementptr inbounds nuw i8, ptr %325, i64 232
  br label %340

340:
  %341 = phi ptr [ %339, %338 ], [ %346, %340 ]
  %342 = load ptr, ptr %341, align 8
  %343 = icmp ne ptr %342, null
  %344 = icmp ne ptr %342, %326
  %345 = and i1 %344, %343
  %346 = getelementptr inbounds nuw i8, ptr %341, i64 8
  br i1 %345, label %340, label %347

347:
  br i1 %343, label %348, label %414

348:
  %349 = getelementptr inbounds nuw i8, ptr %325, i64 304
  %350 = load i64, ptr %349, align 8
  %351 = getelementptr inbounds nuw i8, ptr %59, i64 %350
  %352 = load ptr, ptr %351, align 8
  %353 = getelementptr inbounds nuw i8, ptr %325, i64 312
  %354 = load i64, ptr %353, align 8
  %355 = getelementptr inbounds nuw i8, ptr %352, i64 %354
  %356 = load i64, ptr %355, align 8
  %357 = getelementptr inbounds nuw i8, ptr %325, i64 320
  %358 = load i64, ptr %357, align 8
  %359 = and i64 %358, %356
  %360 = icmp eq i64 %359, 0
  br i1 %360, label %361, label %366

361:
  %362 = getelementptr inbounds nuw i8, ptr %325, i64 296
  %363 = load ptr, ptr %362, align 8
  %364 = call i32 %363(ptr %59, ptr %17)
  %365 = icmp eq i32 %364, 0
  br i1 %365, label %367, label %366

366:
  call void @PyErr_Clear()
  br label %412

367:
  %368 = load ptr, ptr %49, align 8
  %369 = icmp eq ptr %368, null
  br i1 %369, label %412, label %370

370:
  %371 = load ptr, ptr %50, align 8
  %372 = load i32, ptr %51, align 8
  %373 = zext i32 %372 to i64
  %374 = load i64, ptr %41, align 8
  br label %375

375:
  %376 = phi i64 [ %321, %330 ], [ %374, %370 ]
  %377 = phi ptr [ %335, %330 ], [ %371, %370 ]
  %378 = phi ptr [ %337, %330 ], [ %368, %370 ]
  %379 = phi i64 [ %333, %330 ], [ %373, %370 ]
  %380 = icmp ult i64 %376, 64
  br i1 %380, label %381, label %412

381:
  %382 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %376
  store ptr null, ptr %382, align 8
  %383 = getelementptr inbounds nuw i8, ptr %382, i64 8
  %384 = getelementptr inbounds nuw i8, ptr %382, i64 16
  %385 = getelementptr inbounds nuw ptr, ptr %46, i64 %376
  store ptr %59, ptr %385, align 8
  %386 = getelementptr inbounds nuw ptr, ptr %47, i64 %376
  store ptr null, ptr %386, align 8
  %387 = getelementptr inbounds nuw i64, ptr %48, i64 %376
  store i64 0, ptr %387, align 8
  %388 = inttoptr i64 %379 to ptr
  store ptr %388, ptr %383, align 8
  store i64 0, ptr %384, align 8
  %389 = add nuw nsw i64 %376, 1
  store i64 %389, ptr %41, align 8
  %390 = icmp eq i64 %379, 0
  br i1 %390, label %413, label %391

391:
  %392 = sub nuw nsw i64 63, %376
  br label %393

393:
  %394 = phi i64 [ %409, %397 ], [ %389, %391 ]
  %395 = phi i64 [ %410, %397 ], [ 0, %391 ]
  %396 = icmp eq i64 %395, %392
  br i1 %396, label %412, label %397

397:
  %398 = getelementptr inbounds nuw i64, ptr %378, i64 %395
  %399 = load i64, ptr %398, align 8
  %400 = getelementptr inbounds nuw i64, ptr %377, i64 %395
  %401 = load i64, ptr %400, align 8
  %402 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %394
  store ptr null, ptr %402, align 8
  %403 = getelementptr inbounds nuw i8, ptr %402, i64 8
  %404 = getelementptr inbounds nuw i8, ptr %402, i64 16
  %405 = getelementptr inbounds nuw ptr, ptr %46, i64 %394
  store ptr %59, ptr %405, align 8
  %406 = getelementptr inbounds nuw ptr, ptr %47, i64 %394
  store ptr null, ptr %406, align 8
  %407 = getelementptr inbounds nuw i64, ptr %48, i64 %394
  store i64 0, ptr %407, align 8
  %408 = inttoptr i64 %401 to ptr
  store ptr %408, ptr %403, align 8
  store i64 %399, ptr %404, align 8
  %409 = add nuw nsw i64 %394, 1
  store i64 %409, ptr %41, align 8
  %410 = add nuw nsw i64 %395, 1
  %411 = icmp eq i64 %410, %379
  br i1 %411, label %413, label %393

412:
  br label %418

413:
  br label %444

414:
  %415 = getelementptr inbounds nuw i8, ptr %325, i64 40
  %416 = load ptr, ptr %415, align 8
  %417 = icmp eq ptr %59, %416
  br i1 %417, label %444, label %418

418:
  %419 = load i64, ptr %41, align 8
  %420 = icmp eq i64 %419, 0
  br i1 %420, label %432, label %421

421:
  %422 = phi i64 [ %419, %418 ], [ %204, %203 ]
  br label %423

423:
  %424 = phi i64 [ %430, %429 ], [ 0, %421 ]
  %425 = getelementptr inbounds nuw ptr, ptr %47, i64 %424
  %426 = load ptr, ptr %425, align 8
  %427 = icmp eq ptr %426, null
  br i1 %427, label %429, label %428

428:
  call void @Py_DecRef(ptr %426)
  br label %429

429:
  %430 = add nuw i64 %424, 1
  %431 = icmp eq i64 %430, %422
  br i1 %431, label %432, label %423

432:
  %433 = load i64, ptr %40, align 8
  %434 = icmp eq i64 %433, 0
  br i1 %434, label %448, label %435

435:
  %436 = phi i64 [ %442, %441 ], [ 0, %432 ]
  %437 = getelementptr inbounds nuw ptr, ptr %52, i64 %436
  %438 = load ptr, ptr %437, align 8
  %439 = icmp eq ptr %438, null
  br i1 %439, label %441, label %440

440:
  call void @Py_DecRef(ptr %438)
  br label %441

441:
  %442 = add nuw i64 %436, 1
  %443 = icmp eq i64 %442, %433
  br i1 %443, label %448, label %435

444:
  %445 = add nuw i64 %54, 1
  %446 = load i64, ptr %33, align 8
  %447 = icmp ult i64 %445, %446
  br i1 %447, label %53, label %456

448:
  %449 = load ptr, ptr %23, align 8
  %450 = load ptr, ptr %19, align 8
  %451 = getelementptr inbounds nuw i8, ptr %450, i64 16
  %452 = load ptr, ptr %451, align 8
  %453 = load i64, ptr %24, align 8
  %454 = load ptr, ptr %25, align 8
  %455 = call ptr @PyObject_Vectorcall(ptr %452, ptr %449, i64 %453, ptr %454)
  br label %1415

456:
  %457 = load i64, ptr %41, align 8
  %458 = icmp eq i64 %457, 0
  br i1 %458, label %480, label %459

459:
  %460 = phi i64 [ %475, %459 ], [ 0, %456 ]
  %461 = phi i64 [ %476, %459 ], [ 0, %456 ]
  %462 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %461
  %463 = load ptr, ptr %462, align 8
  %464 = ptrtoint ptr %463 to i64
  %465 = getelementptr inbounds nuw i8, ptr %462, i64 8
  %466 = load ptr, ptr %465, align 8
  %467 = ptrtoint ptr %466 to i64
  %468 = call i64 @llvm.fshl.i64(i64 %467, i64 %467, i64 21)
  %469 = add i64 %468, %464
  %470 = getelementptr inbounds nuw i8, ptr %462, i64 16
  %471 = load i64, ptr %470, align 8
  %472 = call i64 @llvm.fshl.i64(i64 %471, i64 %471, i64 42)
  %473 = add i64 %469, %472
  %474 = xor i64 %473, %460
  %475 = mul i64 %474, -7046029254386353131
  %476 = add nuw i64 %461, 1
  %477 = icmp eq i64 %476, %457
  br i1 %477, label %478, label %459

478:
  %479 = lshr i64 %475, 56
  br label %480

480:
  %481 = phi i64 [ 0, %456 ], [ 0, %39 ], [ %457, %478 ]
  %482 = phi i64 [ 0, %456 ], [ 0, %39 ], [ %479, %478 ]
  %483 = load ptr, ptr %19, align 8
  %484 = getelementptr inbounds nuw i8, ptr %483, i64 8
  %485 = load ptr, ptr %484, align 8
  %486 = mul i64 %481, 3
  %487 = getelementptr inbounds nuw i8, ptr %19, i64 3240
  %488 = mul i64 %481, 24
  %489 = add nuw nsw i64 %482, 7
  br label %490

490:
  %491 = phi i64 [ %482, %480 ], [ %504, %503 ]
  %492 = getelementptr inbounds nuw ptr, ptr %485, i64 %491
  %493 = load ptr, ptr %492, align 8
  %494 = icmp eq ptr %493, null
  br i1 %494, label %1386, label %495

495:
  %496 = load i64, ptr %493, align 8
  %497 = icmp eq i64 %496, %486
  br i1 %497, label %498, label %503

498:
  %499 = getelementptr inbounds nuw i8, ptr %493, i64 8
  %500 = load ptr, ptr %499, align 8
  %501 = call i32 @memcmp(ptr %500, ptr %487, i64 %488)
  %502 = icmp eq i32 %501, 0
  br i1 %502, label %506, label %503

503:
  %504 = add nuw nsw i64 %491, 1
  %505 = icmp eq i64 %491, %489
  br i1 %505, label %1386, label %490

506:
  %507 = getelementptr inbounds nuw ptr, ptr %485, i64 %491
  %508 = load ptr, ptr %507, align 8
  %509 = icmp eq ptr %508, null
  br i1 %509, label %1386, label %510

510:
  %511 = getelementptr inbounds nuw i8, ptr %508, i64 192
  %512 = load ptr, ptr %511, align 8
  call void @Py_IncRef(ptr %512)
  %513 = load ptr, ptr %19, align 8
  %514 = getelementptr inbounds nuw i8, ptr %513, i64 104
  %515 = load ptr, ptr %514, align 8
  %516 = load i64, ptr %515, align 8
  %517 = add i64 %516, 1
  store i64 %517, ptr %515, align 8
  %518 = getelementptr inbounds nuw i8, ptr %508, i64 200
  store i64 %517, ptr %518, align 8
  %519 = load ptr, ptr %19, align 8
  %520 = getelementptr inbounds nuw i8, ptr %519, i64 64
  %521 = load ptr, ptr %520, align 8
  %522 = call i64 @PyDict_Size(ptr %521)
  %523 = getelementptr inbounds nuw i8, ptr %519, i64 72
  %524 = load ptr, ptr %523, align 8
  %525 = call i64 @PyList_Size(ptr %524)
  %526 = or i64 %525, %522
  %527 = getelementptr inbounds nuw i8, ptr %519, i64 80
  %528 = load ptr, ptr %527, align 8
  %529 = call i64 @PyList_Size(ptr %528)
  %530 = or i64 %526, %529
  %531 = getelementptr inbounds nuw i8, ptr %519, i64 88
  %532 = load ptr, ptr %531, align 8
  %533 = call i64 @PyList_Size(ptr %532)
  %534 = or i64 %530, %533
  %535 = icmp eq i64 %534, 0
  br i1 %535, label %536, label %546

536:
  %537 = getelementptr inbounds nuw i8, ptr %508, i64 136
  %538 = load ptr, ptr %537, align 8
  %539 = icmp eq ptr %538, null
  br i1 %539, label %554, label %540

540:
  store ptr null, ptr %16, align 8
  %541 = call i32 %538(ptr %16)
  %542 = load ptr, ptr %16, align 8
  %543 = getelementptr inbounds nuw i8, ptr %508, i64 144
  %544 = load ptr, ptr %543, align 8
  %545 = icmp eq ptr %542, %544
  br i1 %545, label %554, label %546

546:
  %547 = load ptr, ptr %23, align 8
  %548 = load ptr, ptr %19, align 8
  %549 = getelementptr inbounds nuw i8, ptr %548, i64 16
  %550 = load ptr, ptr %549, align 8
  %551 = load i64, ptr %24, align 8
  %552 = load ptr, ptr %25, align 8
  %553 = call ptr @PyObject_Vectorcall(ptr %550, ptr %547, i64 %551, ptr %552)
  br label %1384

554:
  %555 = getelementptr inbounds nuw i8, ptr %508, i64 112
  %556 = load ptr, ptr %555, align 8
  %557 = getelementptr inbounds nuw i8, ptr %508, i64 104
  %558 = load i64, ptr %557, align 8
  %559 = icmp eq i64 %558, 0
  br i1 %559, label %587, label %564

560:
  %561 = add nuw i64 %565, 1
  %562 = load i64, ptr %557, align 8
  %563 = icmp ult i64 %561, %562
  br i1 %563, label %564, label %587

564:
  %565 = phi i64 [ %561, %560 ], [ 0, %554 ]
  %566 = getelementptr inbounds nuw %struct.GlobalCheck, ptr %556, i64 %565
  %567 = load ptr, ptr %566, align 8
  %568 = icmp eq ptr %567, null
  br i1 %568, label %573, label %569

569:
  %570 = getelementptr inbounds nuw i8, ptr %566, i64 16
  %571 = load ptr, ptr %570, align 8
  %572 = call ptr @PyDict_GetItemWithError(ptr %567, ptr %571)
  br label %578

573:
  %574 = getelementptr inbounds nuw i8, ptr %566, i64 8
  %575 = load ptr, ptr %574, align 8
  %576 = getelementptr inbounds nuw i8, ptr %566, i64 16
  %577 = call ptr @PyObject_Vectorcall(ptr %575, ptr %576, i64 1, ptr null)
  call void @Py_DecRef(ptr %577)
  br label %578

578:
  %579 = phi ptr [ %572, %569 ], [ %577, %573 ]
  %580 = getelementptr inbounds nuw i8, ptr %566, i64 24
  %581 = load ptr, ptr %580, align 8
  %582 = icmp eq ptr %579, %581
  br i1 %582, label %560, label %583

583:
  call void @PyErr_Clear()
  %584 = getelementptr inbounds nuw i8, ptr %508, i64 208
  %585 = load i64, ptr %584, align 8
  %586 = call fastcc ptr @launch_new(ptr %19, i64 %585)
  br label %1384

587:
  %588 = getelementptr inbounds nuw i8, ptr %508, i64 96
  %589 = load ptr, ptr %588, align 8
  %590 = icmp eq ptr %589, null
  br i1 %590, label %591, label %594

591:
  %592 = load ptr, ptr %23, align 8
  %593 = load ptr, ptr %592, align 8
  br label %594

594:
  %595 = phi ptr [ %593, %591 ], [ %589, %587 ]
  %596 = call fastcc zeroext i1 @read_grid(ptr %19, ptr %595)
  br i1 %596, label %943, label %597

597:
  store ptr %595, ptr %14, align 8
  %598 = load ptr, ptr %19, align 8
  %599 = load i64, ptr @object_bytes, align 8
  %600 = getelementptr inbounds i8, ptr %595, i64 %599
  %601 = getelementptr inbounds i8, ptr %600, i64 -8
  %602 = load ptr, ptr %601, align 8
  %603 = load ptr, ptr %22, align 8
  %604 = getelementptr inbounds nuw i8, ptr %603, i64 32
  %605 = load ptr, ptr %604, align 8
  %606 = icmp eq ptr %602, %605
  br i1 %606, label %607, label %628

607:
  %608 = call ptr @PyFunction_GetCode(ptr %595)
  %609 = getelementptr inbounds nuw i8, ptr %598, i64 112
  %610 = load ptr, ptr %609, align 8
  %611 = load ptr, ptr %610, align 8
  %612 = icmp eq ptr %611, null
  br i1 %612, label %622, label %617

613:
  %614 = getelementptr inbounds nuw i8, ptr %619, i64 8
  %615 = load ptr, ptr %614, align 8
  %616 = icmp eq ptr %615, null
  br i1 %616, label %622, label %617

617:
  %618 = phi ptr [ %615, %613 ], [ %611, %607 ]
  %619 = phi ptr [ %614, %613 ], [ %610, %607 ]
  %620 = load ptr, ptr %618, align 8
  %621 = icmp eq ptr %620, %608
  br i1 %621, label %629, label %613

622:
  %623 = getelementptr inbounds nuw i8, ptr %598, i64 120
  %624 = load ptr, ptr %623, align 8
  %625 = icmp eq ptr %624, null
  br i1 %625, label %628, label %626

626:
  %627 = call ptr @PyObject_Vectorcall(ptr %624, ptr %14, i64 1, ptr null)
  call void @Py_DecRef(ptr %627)
  call void @PyErr_Clear()
  br label %628

628:
  br label %879

629:
  %630 = getelementptr inbounds nuw i8, ptr %618, i64 48
  %631 = load i64, ptr %630, align 8
  %632 = icmp eq i64 %631, 0
  br i1 %632, label %879, label %633

633:
  %634 = getelementptr inbounds nuw i8, ptr %618, i64 40
  %635 = load ptr, ptr %634, align 8
  %636 = getelementptr inbounds i8, ptr %15, i64 -8
  %637 = call ptr @PyFunction_GetGlobals(ptr %595)
  %638 = getelementptr inbounds nuw i8, ptr %618, i64 8
  %639 = load ptr, ptr %638, align 8
  %640 = icmp eq ptr %637, %639
  br i1 %640, label %641, label %879

641:
  %642 = getelementptr inbounds nuw i8, ptr %618, i64 24
  %643 = load ptr, ptr %642, align 8
  %644 = getelementptr inbounds nuw i8, ptr %618, i64 16
  %645 = load i64, ptr %644, align 8
  %646 = icmp eq i64 %645, 0
  br i1 %646, label %679, label %651

647:
  %648 = add nuw i64 %652, 1
  %649 = load i64, ptr %644, align 8
  %650 = icmp ult i64 %648, %649
  br i1 %650, label %651, label %679

651:
  %652 = phi i64 [ %648, %647 ], [ 0, %641 ]
  %653 = getelementptr inbounds nuw %struct.GridCheck, ptr %643, i64 %652
  %654 = load i64, ptr %653, align 8
  switch i64 %654, label %670 [
    i64 0, label %655
    i64 1, label %661
  ]

655:
  %656 = getelementptr inbounds nuw i8, ptr %653, i64 8
  %657 = load ptr, ptr %656, align 8
  %658 = getelementptr inbounds nuw i8, ptr %653, i64 16
  %659 = load ptr, ptr %658, align 8
  %660 = call ptr @PyDict_GetItemWithError(ptr %657, ptr %659)
  br label %674

661:
  %662 = getelementptr inbounds nuw i8, ptr %653, i64 16
  %663 = load ptr, ptr %662, align 8
  %664 = ptrtoint ptr %663 to i64
  %665 = call ptr @PyFunction_GetClosure(ptr %595)
  %666 = call ptr @PyTuple_GetItem(ptr %665, i64 %664)
  %667 = call ptr @PyCell_Get(ptr %666)
  %668 = icmp eq ptr %667, null
  br i1 %668, label %674, label %669

669:
  call void @Py_DecRef(ptr %667)
  br label %674

670:
  %671 = getelementptr inbounds nuw i8, ptr %653, i64 8
  %672 = load ptr, ptr %671, align 8
  %673 = call ptr @PyFunction_GetCode(ptr %672)
  br label %674

674:
  %675 = phi ptr [ %673, %670 ], [ %660, %655 ], [ null, %661 ], [ %667, %669 ]
  %676 = getelementptr inbounds nuw i8, ptr %653, i64 24
  %677 = load ptr, ptr %676, align 8
  %678 = icmp eq ptr %675, %677
  br i1 %678, label %647, label %879

679:
  %680 = getelementptr inbounds nuw i8, ptr %618, i64 32
  %681 = load i64, ptr %680, align 8
  %682 = icmp eq i64 %681, 0
  br i1 %682, label %861, label %683

683:
  %684 = getelementptr inbounds nuw i8, ptr %508, i64 152
  %685 = getelementptr inbounds nuw i8, ptr %508, i64 184
  br label %686

686:
  %687 = phi i64 [ undef, %683 ], [ %856, %855 ]
  %688 = phi i64 [ 0, %683 ], [ %858, %855 ]
  %689 = phi ptr [ %636, %683 ], [ %857, %855 ]
  %690 = getelementptr inbounds nuw %struct.GridStep, ptr %635, i64 %688
  %691 = load i64, ptr %690, align 8
  switch i64 %691, label %793 [
    i64 0, label %692
    i64 1, label %697
    i64 2, label %735
    i64 3, label %757
    i64 4, label %777
  ]

692:
  %693 = getelementptr inbounds nuw i8, ptr %690, i64 16
  %694 = load ptr, ptr %693, align 8
  %695 = ptrtoint ptr %694 to i64
  %696 = getelementptr inbounds nuw i8, ptr %689, i64 8
  store i64 %695, ptr %696, align 8
  br label %855

697:
  %698 = getelementptr inbounds nuw i8, ptr %690, i64 16
  %699 = load ptr, ptr %698, align 8
  %700 = load ptr, ptr %684, align 8
  %701 = load i64, ptr %33, align 8
  %702 = icmp eq i64 %701, 0
  br i1 %702, label %716, label %703

703:
  %704 = phi i64 [ %714, %713 ], [ 0, %697 ]
  %705 = getelementptr inbounds nuw ptr, ptr %700, i64 %704
  %706 = load ptr, ptr %705, align 8
  %707 = icmp eq ptr %706, %699
  br i1 %707, label %708, label %713

708:
  %709 = load ptr, ptr %23, align 8
  %710 = getelementptr ptr, ptr %709, i64 %704
  %711 = getelementptr i8, ptr %710, i64 8
  %712 = load ptr, ptr %711, align 8
  br label %719

713:
  %714 = add nuw i64 %704, 1
  %715 = icmp eq i64 %714, %701
  br i1 %715, label %716, label %703

716:
  %717 = load ptr, ptr %685, align 8
  %718 = call ptr @PyDict_GetItemWithError(ptr %717, ptr %699)
  br label %719

719:
  %720 = phi ptr [ %718, %716 ], [ %712, %708 ]
  %721 = getelementptr inbounds nuw i8, ptr %689, i64 8
  %722 = icmp eq ptr %720, null
  br i1 %722, label %730, label %723

723:
  %724 = getelementptr inbounds i8, ptr %720, i64 %599
  %725 = getelementptr inbounds i8, ptr %724, i64 -8
  %726 = load ptr, ptr %725, align 8
  %727 = load ptr, ptr %22, align 8
  %728 = load ptr, ptr %727, align 8
  %729 = icmp eq ptr %726, %728
  br i1 %729, label %731, label %730

730:
  br label %879

731:
  %732 = call i64 @PyLong_AsLongLongAndOverflow(ptr %720, ptr %13)
  store i64 %732, ptr %721, align 8
  %733 = load i32, ptr %13, align 4
  %734 = icmp eq i32 %733, 0
  br i1 %734, label %855, label %879

735:
  %736 = getelementptr inbounds nuw i8, ptr %690, i64 16
  %737 = load ptr, ptr %736, align 8
  %738 = ptrtoint ptr %737 to i64
  %739 = call ptr @PyFunction_GetClosure(ptr %595)
  %740 = call ptr @PyTuple_GetItem(ptr %739, i64 %738)
  %741 = call ptr @PyCell_Get(ptr %740)
  %742 = icmp eq ptr %741, null
  br i1 %742, label %743, label %744

743:
  br label %751

744:
  call void @Py_DecRef(ptr %741)
  %745 = getelementptr inbounds i8, ptr %741, i64 %599
  %746 = getelementptr inbounds i8, ptr %745, i64 -8
  %747 = load ptr, ptr %746, align 8
  %748 = load ptr, ptr %22, align 8
  %749 = load ptr, ptr %748, align 8
  %750 = icmp eq ptr %747, %749
  br i1 %750, label %752, label %751

751:
  br label %879

752:
  %753 = getelementptr inbounds nuw i8, ptr %689, i64 8
  %754 = call i64 @PyLong_AsLongLongAndOverflow(ptr %741, ptr %12)
  store i64 %754, ptr %753, align 8
  %755 = load i32, ptr %12, align 4
  %756 = icmp eq i32 %755, 0
  br i1 %756, label %855, label %879

757:
  %758 = getelementptr inbounds nuw i8, ptr %690, i64 8
  %759 = load ptr, ptr %758, align 8
  %760 = getelementptr inbounds nuw i8, ptr %690, i64 16
  %761 = load ptr, ptr %760, align 8
  %762 = call ptr @PyDict_GetItemWithError(ptr %759, ptr %761)
  %763 = getelementptr inbounds nuw i8, ptr %689, i64 8
  %764 = icmp eq ptr %762, null
  br i1 %764, label %772, label %765

765:
  %766 = getelementptr inbounds i8, ptr %762, i64 %599
  %767 = getelementptr inbounds i8, ptr %766, i64 -8
  %768 = load ptr, ptr %767, align 8
  %769 = load ptr, ptr %22, align 8
  %770 = load ptr, ptr %769, align 8
  %771 = icmp eq ptr %768, %770
  br i1 %771, label %773, label %772

772:
  br label %879

773:
  %774 = call i64 @PyLong_AsLongLongAndOverflow(ptr %762, ptr %11)
  store i64 %774, ptr %763, align 8
  %775 = load i32, ptr %11, align 4
  %776 = icmp eq i32 %775, 0
  br i1 %776, label %855, label %879

777:
  %778 = icmp slt i64 %687, 4611686018427387905
  br i1 %778, label %779, label %879

779:
  %780 = add i64 %687, -1
  br label %785

781:
  %782 = add i64 %790, 1
  %783 = icmp sgt i64 %687, 0
  %784 = select i1 %783, i64 %782, i64 0
  store i64 %784, ptr %689, align 8
  br label %855

785:
  %786 = phi i32 [ 1, %779 ], [ %791, %785 ]
  %787 = phi i64 [ %780, %779 ], [ %790, %785 ]
  %788 = zext nneg i32 %786 to i64
  %789 = lshr i64 %787, %788
  %790 = or i64 %789, %787
  %791 = shl i32 %786, 1
  %792 = icmp slt i32 %791, 64
  br i1 %792, label %785, label %781

793:
  %794 = getelementptr inbounds i8, ptr %689, i64 -8
  %795 = load i64, ptr %794, align 8
  switch i64 %691, label %849 [
    i64 5, label %851
    i64 6, label %796
    i64 7, label %800
    i64 8, label %804
    i64 9, label %816
    i64 10, label %827
    i64 11, label %847
  ]

796:
  %797 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %795, i64 %687)
  %798 = extractvalue { i64, i1 } %797, 1
  %799 = extractvalue { i64, i1 } %797, 0
  store i64 %799, ptr %794, align 8
  br i1 %798, label %879, label %855

800:
  %801 = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %795, i64 %687)
  %802 = extractvalue { i64, i1 } %801, 1
  %803 = extractvalue { i64, i1 } %801, 0
  store i64 %803, ptr %794, align 8
  br i1 %802, label %879, label %855

804:
  %805 = add i64 %687, -1
  %806 = icmp ult i64 %805, -2
  br i1 %806, label %807, label %879

807:
  %808 = srem i64 %795, %687
  %809 = icmp ne i64 %808, 0
  %810 = xor i64 %795, %687
  %811 = icmp slt i64 %810, 0
  %812 = and i1 %811, %809
  %813 = sdiv i64 %795, %687
  %814 = sext i1 %812 to i64
  %815 = add i64 %813, %814
  store i64 %815, ptr %794, align 8
  br label %855

816:
  %817 = add i64 %687, -1
  %818 = icmp ult i64 %817, -2
  br i1 %818, label %819, label %879

819:
  %820 = srem i64 %795, %687
  %821 = icmp ne i64 %820, 0
  %822 = xor i64 %795, %687
  %823 = icmp slt i64 %822, 0
  %824 = and i1 %823, %821
  %825 = select i1 %824, i64 %687, i64 0
  %826 = add i64 %825, %820
  store i64 %826, ptr %794, align 8
  br label %855

827:
  %828 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %795, i64 %687)
  %829 = extractvalue { i64, i1 } %828, 1
  br i1 %829, label %879, label %830

830:
  %831 = extractvalue { i64, i1 } %828, 0
  %832 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %831, i64 -1)
  %833 = extractvalue { i64, i1 } %832, 1
  %834 = add i64 %687, 1
  %835 = icmp ult i64 %834, 2
  %836 = or i1 %835, %833
  br i1 %836, label %879, label %837

837:
  %838 = extractvalue { i64, i1 } %832, 0
  %839 = srem i64 %838, %687
  %840 = icmp ne i64 %839, 0
  %841 = xor i64 %838, %687
  %842 = icmp slt i64 %841, 0
  %843 = and i1 %842, %840
  %844 = sdiv i64 %838, %687
  %845 = sext i1 %843 to i64
  %846 = add i64 %844, %845
  store i64 %846, ptr %794, align 8
  br label %855

847:
  %848 = call i64 @llvm.smin.i64(i64 %795, i64 %687)
  store i64 %848, ptr %794, align 8
  br label %855

849:
  %850 = call i64 @llvm.smax.i64(i64 %795, i64 %687)
  store i64 %850, ptr %794, align 8
  br label %855

851:
  %852 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %795, i64 %687)
  %853 = extractvalue { i64, i1 } %852, 1
  %854 = extractvalue { i64, i1 } %852, 0
  store i64 %854, ptr %794, align 8
  br i1 %853, label %879, label %855

855:
  %856 = phi i64 [ %732, %731 ], [ %854, %851 ], [ %803, %800 ], [ %799, %796 ], [ %774, %773 ], [ %754, %752 ], [ %850, %849 ], [ %848, %847 ], [ %846, %837 ], [ %826, %819 ], [ %815, %807 ], [ %695, %692 ], [ %784, %781 ]
  %857 = phi ptr [ %721, %731 ], [ %794, %851 ], [ %794, %800 ], [ %794, %796 ], [ %763, %773 ], [ %753, %752 ], [ %794, %849 ], [ %794, %847 ], [ %794, %837 ], [ %794, %819 ], [ %794, %807 ], [ %696, %692 ], [ %689, %781 ]
  %858 = add nuw i64 %688, 1
  %859 = load i64, ptr %680, align 8
  %860 = icmp ult i64 %858, %859
  br i1 %860, label %686, label %861

861:
  %862 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %863 = getelementptr inbounds nuw i8, ptr %19, i64 2656
  store i32 1, ptr %863, align 8
  %864 = getelementptr inbounds nuw i8, ptr %19, i64 2652
  store i32 1, ptr %864, align 4
  %865 = load i64, ptr %630, align 8
  %866 = icmp eq i64 %865, 0
  br i1 %866, label %878, label %867

867:
  %868 = phi i64 [ %875, %872 ], [ 0, %861 ]
  %869 = getelementptr inbounds nuw i64, ptr %15, i64 %868
  %870 = load i64, ptr %869, align 8
  %871 = icmp ult i64 %870, 2147483648
  br i1 %871, label %872, label %879

872:
  %873 = trunc nuw nsw i64 %870 to i32
  %874 = getelementptr inbounds nuw i32, ptr %862, i64 %868
  store i32 %873, ptr %874, align 4
  %875 = add nuw i64 %868, 1
  %876 = load i64, ptr %630, align 8
  %877 = icmp ult i64 %875, %876
  br i1 %877, label %867, label %878

878:
  br label %943

879:
  %880 = call i32 @PyCallable_Check(ptr %595)
  %881 = icmp eq i32 %880, 0
  br i1 %881, label %882, label %890

882:
  %883 = load ptr, ptr %23, align 8
  %884 = load ptr, ptr %19, align 8
  %885 = getelementptr inbounds nuw i8, ptr %884, i64 16
  %886 = load ptr, ptr %885, align 8
  %887 = load i64, ptr %24, align 8
  %888 = load ptr, ptr %25, align 8
  %889 = call ptr @PyObject_Vectorcall(ptr %886, ptr %883, i64 %887, ptr %888)
  br label %1384

890:
  %891 = getelementptr inbounds nuw i8, ptr %508, i64 184
  %892 = load ptr, ptr %891, align 8
  %893 = call ptr @PyDict_Copy(ptr %892)
  store ptr %893, ptr %10, align 8
  %894 = getelementptr inbounds nuw i8, ptr %508, i64 152
  %895 = load ptr, ptr %894, align 8
  %896 = load i64, ptr %33, align 8
  %897 = icmp eq i64 %896, 0
  br i1 %897, label %909, label %898

898:
  %899 = phi i64 [ %903, %898 ], [ 0, %890 ]
  %900 = getelementptr inbounds nuw ptr, ptr %895, i64 %899
  %901 = load ptr, ptr %900, align 8
  %902 = load ptr, ptr %23, align 8
  %903 = add nuw i64 %899, 1
  %904 = getelementptr inbounds nuw ptr, ptr %902, i64 %903
  %905 = load ptr, ptr %904, align 8
  %906 = call i32 @PyDict_SetItem(ptr %893, ptr %901, ptr %905)
  %907 = load i64, ptr %33, align 8
  %908 = icmp ult i64 %903, %907
  br i1 %908, label %898, label %909

909:
  %910 = call ptr @PyObject_Vectorcall(ptr %595, ptr %10, i64 1, ptr null)
  %911 = load ptr, ptr %10, align 8
  call void @Py_DecRef(ptr %911)
  %912 = icmp eq ptr %910, null
  br i1 %912, label %913, label %929

913:
  call void @PyErr_Fetch(ptr %7, ptr %8, ptr %9)
  %914 = load ptr, ptr %7, align 8
  %915 = load ptr, ptr %8, align 8
  %916 = load ptr, ptr %9, align 8
  call void @PyErr_Restore(ptr %914, ptr %915, ptr %916)
  %917 = load ptr, ptr %9, align 8
  %918 = icmp eq ptr %917, null
  br i1 %918, label %921, label %919

919:
  %920 = load ptr, ptr %22, align 8
  call fastcc void @strip_traceback(ptr %920)
  br label %1384

921:
  call void @PyErr_Clear()
  %922 = load ptr, ptr %23, align 8
  %923 = load ptr, ptr %19, align 8
  %924 = getelementptr inbounds nuw i8, ptr %923, i64 16
  %925 = load ptr, ptr %924, align 8
  %926 = load i64, ptr %24, align 8
  %927 = load ptr, ptr %25, align 8
  %928 = call ptr @PyObject_Vectorcall(ptr %925, ptr %922, i64 %926, ptr %927)
  br label %1384

929:
  %930 = call fastcc zeroext i1 @read_grid(ptr %19, ptr %910)
  br i1 %930, label %943, label %931

931:
  %932 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  %933 = load ptr, ptr %23, align 8
  %934 = load i64, ptr %33, align 8
  %935 = shl i64 %934, 3
  %936 = add i64 %935, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %932, ptr align 8 %933, i64 %936, i1 false)
  store ptr %910, ptr %932, align 8
  %937 = load ptr, ptr %19, align 8
  %938 = getelementptr inbounds nuw i8, ptr %937, i64 16
  %939 = load ptr, ptr %938, align 8
  %940 = load i64, ptr %24, align 8
  %941 = load ptr, ptr %25, align 8
  %942 = call ptr @PyObject_Vectorcall(ptr %939, ptr %932, i64 %940, ptr %941)
  call void @Py_DecRef(ptr %910)
  br label %1384

943:
  %944 = phi ptr [ null, %594 ], [ null, %878 ], [ %910, %929 ]
  %945 = load ptr, ptr %19, align 8
  %946 = getelementptr inbounds nuw i8, ptr %945, i64 96
  %947 = load ptr, ptr %946, align 8
  %948 = load i64, ptr %947, align 8
  %949 = icmp eq i64 %948, 0
  br i1 %949, label %1176, label %950

950:
  %951 = getelementptr inbounds nuw i8, ptr %508, i64 168
  %952 = load ptr, ptr %951, align 8
  %953 = getelementptr inbounds nuw i8, ptr %508, i64 160
  %954 = load i64, ptr %953, align 8
  %955 = icmp eq i64 %954, 0
  br i1 %955, label %1176, label %956

956:
  %957 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  %958 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %959 = load i64, ptr @object_bytes, align 8
  br label %960

960:
  %961 = phi i64 [ 0, %956 ], [ %1148, %1147 ]
  %962 = getelementptr inbounds nuw %struct.OverlapPair, ptr %952, i64 %961
  %963 = load i64, ptr %962, align 8
  %964 = getelementptr inbounds nuw i64, ptr %957, i64 %963
  %965 = load i64, ptr %964, align 8
  %966 = getelementptr inbounds nuw i8, ptr %962, i64 8
  %967 = load i64, ptr %966, align 8
  %968 = getelementptr inbounds nuw i64, ptr %957, i64 %967
  %969 = load i64, ptr %968, align 8
  %970 = icmp eq i64 %965, %969
  br i1 %970, label %971, label %1019

971:
  %972 = getelementptr inbounds nuw i8, ptr %962, i64 32
  %973 = load i64, ptr %972, align 8
  %974 = icmp eq i64 %973, 0
  br i1 %974, label %1111, label %975

975:
  %976 = getelementptr inbounds nuw i8, ptr %962, i64 40
  %977 = load ptr, ptr %976, align 8
  br label %982

978:
  %979 = phi ptr [ %1003, %988 ], [ %985, %982 ]
  %980 = add nuw i64 %983, 1
  %981 = icmp eq i64 %980, %973
  br i1 %981, label %1147, label %982

982:
  %983 = phi i64 [ 0, %975 ], [ %980, %978 ]
  %984 = phi ptr [ %977, %975 ], [ %979, %978 ]
  %985 = getelementptr inbounds nuw i8, ptr %984, i64 8
  %986 = load i64, ptr %984, align 8
  %987 = icmp eq i64 %986, 0
  br i1 %987, label %978, label %990

988:
  %989 = icmp eq i64 %1005, 0
  br i1 %989, label %978, label %1111

990:
  %991 = phi i64 [ %1006, %1002 ], [ %986, %982 ]
  %992 = phi i64 [ %1005, %1002 ], [ 0, %982 ]
  %993 = phi ptr [ %1003, %1002 ], [ %985, %982 ]
  %994 = getelementptr inbounds nuw i8, ptr %993, i64 8
  %995 = load i64, ptr %993, align 8
  %996 = getelementptr i8, ptr %993, i64 16
  %997 = load i64, ptr %994, align 8
  %998 = icmp eq i64 %997, 0
  br i1 %998, label %1002, label %1008

999:
  %1000 = shl i64 %997, 3
  %1001 = getelementptr i8, ptr %996, i64 %1000
  br label %1002

1002:
  %1003 = phi ptr [ %996, %990 ], [ %1001, %999 ]
  %1004 = phi i64 [ %995, %990 ], [ %1016, %999 ]
  %1005 = add i64 %1004, %992
  %1006 = add i64 %991, -1
  %1007 = icmp eq i64 %1006, 0
  br i1 %1007, label %988, label %990

1008:
  %1009 = phi i64 [ %1017, %1008 ], [ %997, %990 ]
  %1010 = phi i64 [ %1016, %1008 ], [ %995, %990 ]
  %1011 = phi ptr [ %1012, %1008 ], [ %996, %990 ]
  %1012 = getelementptr inbounds nuw i8, ptr %1011, i64 8
  %1013 = load i64, ptr %1011, align 8
  %1014 = getelementptr inbounds nuw i64, ptr %957, i64 %1013
  %1015 = load i64, ptr %1014, align 8
  %1016 = mul i64 %1015, %1010
  %1017 = add i64 %1009, -1
  %1018 = icmp eq i64 %1017, 0
  br i1 %1018, label %999, label %1008

1019:
  %1020 = icmp ult i64 %965, %969
  br i1 %1020, label %1021, label %1066

1021:
  %1022 = sub nuw i64 %969, %965
  %1023 = getelementptr inbounds nuw i8, ptr %962, i64 16
  %1024 = load i64, ptr %1023, align 8
  %1025 = call fastcc i64 @extent(ptr %19, i64 %963, i64 %1024)
  %1026 = icmp ult i64 %1022, %1025
  br i1 %1026, label %1111, label %1027

1027:
  %1028 = load i64, ptr %966, align 8
  %1029 = getelementptr inbounds nuw ptr, ptr %958, i64 %1028
  %1030 = load ptr, ptr %1029, align 8
  %1031 = getelementptr inbounds i8, ptr %1030, i64 %959
  %1032 = getelementptr inbounds i8, ptr %1031, i64 -8
  %1033 = load ptr, ptr %1032, align 8
  %1034 = load ptr, ptr %22, align 8
  %1035 = getelementptr inbounds nuw i8, ptr %1034, i64 160
  %1036 = load ptr, ptr %1035, align 8
  %1037 = icmp eq ptr %1033, %1036
  br i1 %1037, label %1038, label %1147

1038:
  %1039 = getelementptr inbounds nuw i8, ptr %1031, i64 24
  %1040 = getelementptr inbounds nuw i8, ptr %1031, i64 8
  %1041 = load i32, ptr %1040, align 8
  %1042 = icmp sgt i32 %1041, 0
  br i1 %1042, label %1043, label %1147

1043:
  %1044 = getelementptr inbounds nuw i8, ptr %1031, i64 16
  %1045 = load ptr, ptr %1044, align 8
  %1046 = zext nneg i32 %1041 to i64
  br label %1047

1047:
  %1048 = phi i64 [ 0, %1043 ], [ %1062, %1058 ]
  %1049 = phi i64 [ 1, %1043 ], [ %1061, %1058 ]
  %1050 = getelementptr inbounds nuw i64, ptr %1045, i64 %1048
  %1051 = load i64, ptr %1050, align 8
  %1052 = icmp eq i64 %1051, 0
  br i1 %1052, label %1147, label %1053

1053:
  %1054 = load ptr, ptr %1039, align 8
  %1055 = getelementptr inbounds nuw i64, ptr %1054, i64 %1048
  %1056 = load i64, ptr %1055, align 8
  %1057 = icmp slt i64 %1056, 0
  br i1 %1057, label %1111, label %1058

1058:
  %1059 = add i64 %1051, -1
  %1060 = mul i64 %1056, %1059
  %1061 = add i64 %1060, %1049
  %1062 = add nuw nsw i64 %1048, 1
  %1063 = icmp eq i64 %1062, %1046
  br i1 %1063, label %1064, label %1047

1064:
  %1065 = icmp eq i64 %1061, -1
  br i1 %1065, label %1111, label %1147

1066:
  %1067 = sub nuw i64 %965, %969
  %1068 = getelementptr inbounds nuw i8, ptr %962, i64 24
  %1069 = load i64, ptr %1068, align 8
  %1070 = call fastcc i64 @extent(ptr %19, i64 %967, i64 %1069)
  %1071 = icmp ult i64 %1067, %1070
  br i1 %1071, label %1111, label %1072

1072:
  %1073 = load i64, ptr %962, align 8
  %1074 = getelementptr inbounds nuw ptr, ptr %958, i64 %1073
  %1075 = load ptr, ptr %1074, align 8
  %1076 = getelementptr inbounds i8, ptr %1075, i64 %959
  %1077 = getelementptr inbounds i8, ptr %1076, i64 -8
  %1078 = load ptr, ptr %1077, align 8
  %1079 = load ptr, ptr %22, align 8
  %1080 = getelementptr inbounds nuw i8, ptr %1079, i64 160
  %1081 = load ptr, ptr %1080, align 8
  %1082 = icmp eq ptr %1078, %1081
  br i1 %1082, label %1083, label %1147

1083:
  %1084 = getelementptr inbounds nuw i8, ptr %1076, i64 24
  %1085 = getelementptr inbounds nuw i8, ptr %1076, i64 8
  %1086 = load i32, ptr %1085, align 8
  %1087 = icmp sgt i32 %1086, 0
  br i1 %1087, label %1088, label %1147

1088:
  %1089 = getelementptr inbounds nuw i8, ptr %1076, i64 16
  %1090 = load ptr, ptr %1089, align 8
  %1091 = zext nneg i32 %1086 to i64
  br label %1092

1092:
  %1093 = phi i64 [ 0, %1088 ], [ %1107, %1103 ]
  %1094 = phi i64 [ 1, %1088 ], [ %1106, %1103 ]
  %1095 = getelementptr inbounds nuw i64, ptr %1090, i64 %1093
  %1096 = load i64, ptr %1095, align 8
  %1097 = icmp eq i64 %1096, 0
  br i1 %1097, label %1147, label %1098

1098:
  %1099 = load ptr, ptr %1084, align 8
  %1100 = getelementptr inbounds nuw i64, ptr %1099, i64 %1093
  %1101 = load i64, ptr %1100, align 8
  %1102 = icmp slt i64 %1101, 0
  br i1 %1102, label %1111, label %1103

1103:
  %1104 = add i64 %1096, -1
  %1105 = mul i64 %1101, %1104
  %1106 = add i64 %1105, %1094
  %1107 = add nuw nsw i64 %1093, 1
  %1108 = icmp eq i64 %1107, %1091
  br i1 %1108, label %1109, label %1092

1109:
  %1110 = icmp eq i64 %1106, -1
  br i1 %1110, label %1111, label %1147

1111:
  %1112 = getelementptr inbounds nuw i8, ptr %508, i64 176
  %1113 = load ptr, ptr %1112, align 8
  %1114 = getelementptr inbounds nuw i8, ptr %1113, i64 24
  %1115 = load i64, ptr %1114, align 8
  store i64 %948, ptr %1114, align 8
  %1116 = xor i64 %1115, %948
  %1117 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  br label %1123

1118:
  %1119 = load i64, ptr %41, align 8
  %1120 = icmp eq i64 %1119, 0
  br i1 %1120, label %1151, label %1121

1121:
  %1122 = getelementptr inbounds nuw i8, ptr %1113, i64 32
  br label %1135

1123:
  %1124 = phi i64 [ 0, %1111 ], [ %1133, %1123 ]
  %1125 = phi i64 [ %1116, %1111 ], [ %1132, %1123 ]
  %1126 = getelementptr inbounds nuw i64, ptr %1113, i64 %1124
  %1127 = getelementptr inbounds nuw i32, ptr %1117, i64 %1124
  %1128 = load i32, ptr %1127, align 4
  %1129 = sext i32 %1128 to i64
  %1130 = load i64, ptr %1126, align 8
  store i64 %1129, ptr %1126, align 8
  %1131 = xor i64 %1130, %1129
  %1132 = or i64 %1131, %1125
  %1133 = add nuw nsw i64 %1124, 1
  %1134 = icmp eq i64 %1133, 3
  br i1 %1134, label %1118, label %1123

1135:
  %1136 = phi i64 [ 0, %1121 ], [ %1144, %1135 ]
  %1137 = phi i64 [ %1132, %1121 ], [ %1143, %1135 ]
  %1138 = getelementptr inbounds nuw i64, ptr %1122, i64 %1136
  %1139 = getelementptr inbounds nuw i64, ptr %957, i64 %1136
  %1140 = load i64, ptr %1139, align 8
  %1141 = load i64, ptr %1138, align 8
  store i64 %1140, ptr %1138, align 8
  %1142 = xor i64 %1141, %1140
  %1143 = or i64 %1142, %1137
  %1144 = add nuw i64 %1136, 1
  %1145 = load i64, ptr %41, align 8
  %1146 = icmp ult i64 %1144, %1145
  br i1 %1146, label %1135, label %1151

1147:
  %1148 = add nuw i64 %961, 1
  %1149 = load i64, ptr %953, align 8
  %1150 = icmp ult i64 %1148, %1149
  br i1 %1150, label %960, label %1176

1151:
  %1152 = phi i64 [ %1132, %1118 ], [ %1143, %1135 ]
  %1153 = icmp eq i64 %1152, 0
  br i1 %1153, label %1176, label %1154

1154:
  %1155 = icmp eq ptr %944, null
  br i1 %1155, label %1168, label %1156

1156:
  %1157 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  %1158 = load ptr, ptr %23, align 8
  %1159 = load i64, ptr %33, align 8
  %1160 = shl i64 %1159, 3
  %1161 = add i64 %1160, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1157, ptr align 8 %1158, i64 %1161, i1 false)
  store ptr %944, ptr %1157, align 8
  %1162 = load ptr, ptr %19, align 8
  %1163 = getelementptr inbounds nuw i8, ptr %1162, i64 16
  %1164 = load ptr, ptr %1163, align 8
  %1165 = load i64, ptr %24, align 8
  %1166 = load ptr, ptr %25, align 8
  %1167 = call ptr @PyObject_Vectorcall(ptr %1164, ptr %1157, i64 %1165, ptr %1166)
  call void @Py_DecRef(ptr %944)
  br label %1384

1168:
  %1169 = load ptr, ptr %23, align 8
  %1170 = load ptr, ptr %19, align 8
  %1171 = getelementptr inbounds nuw i8, ptr %1170, i64 16
  %1172 = load ptr, ptr %1171, align 8
  %1173 = load i64, ptr %24, align 8
  %1174 = load ptr, ptr %25, align 8
  %1175 = call ptr @PyObject_Vectorcall(ptr %1172, ptr %1169, i64 %1173, ptr %1174)
  br label %1384

1176:
  %1177 = getelementptr inbounds nuw i8, ptr %508, i64 216
  %1178 = load ptr, ptr %1177, align 8
  %1179 = icmp eq ptr %1178, null
  br i1 %1179, label %1183, label %1180

1180:
  %1181 = getelementptr inbounds nuw i8, ptr %508, i64 224
  %1182 = load i64, ptr %1181, align 8
  store i64 %1182, ptr %1178, align 8
  br label %1183

1183:
  %1184 = getelementptr inbounds nuw i8, ptr %508, i64 24
  %1185 = load ptr, ptr %1184, align 8
  %1186 = icmp eq ptr %1185, null
  %1187 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  br i1 %1186, label %1290, label %1188

1188:
  %1189 = getelementptr inbounds nuw i8, ptr %508, i64 80
  %1190 = load ptr, ptr %1189, align 8
  %1191 = getelementptr inbounds nuw i8, ptr %508, i64 40
  %1192 = load ptr, ptr %1191, align 8
  %1193 = getelementptr inbounds nuw i8, ptr %508, i64 88
  %1194 = load ptr, ptr %1193, align 8
  %1195 = getelementptr inbounds nuw i8, ptr %508, i64 72
  %1196 = load i64, ptr %1195, align 8
  %1197 = icmp eq i64 %1196, 0
  br i1 %1197, label %1204, label %1198

1198:
  %1199 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1200 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %1201 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  br label %1221

1202:
  %1203 = load ptr, ptr %1184, align 8
  br label %1204

1204:
  %1205 = phi ptr [ %1203, %1202 ], [ %1185, %1188 ]
  %1206 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %1207 = getelementptr inbounds nuw i8, ptr %508, i64 32
  %1208 = load ptr, ptr %1207, align 8
  %1209 = load i32, ptr %1206, align 8
  %1210 = getelementptr inbounds nuw i8, ptr %19, i64 2652
  %1211 = load i32, ptr %1210, align 4
  %1212 = getelementptr inbounds nuw i8, ptr %19, i64 2656
  %1213 = load i32, ptr %1212, align 8
  %1214 = call i32 %1205(ptr %1208, i32 %1209, i32 %1211, i32 %1213, ptr %1187)
  %1215 = getelementptr inbounds nuw i8, ptr %508, i64 56
  %1216 = load ptr, ptr %1215, align 8
  %1217 = call i64 @PyList_Size(ptr %1216)
  %1218 = icmp eq i64 %1217, 0
  %1219 = icmp eq i32 %1214, 0
  %1220 = select i1 %1218, i1 %1219, i1 false
  br i1 %1220, label %1276, label %1283

1221:
  %1222 = phi i64 [ 0, %1198 ], [ %1273, %1270 ]
  %1223 = getelementptr inbounds nuw i64, ptr %1190, i64 %1222
  %1224 = load i64, ptr %1223, align 8
  %1225 = icmp ult i64 %1224, 64
  br i1 %1225, label %1226, label %1267

1226:
  %1227 = getelementptr inbounds nuw i64, ptr %1192, i64 %1222
  %1228 = load i64, ptr %1227, align 8
  switch i64 %1228, label %1264 [
    i64 1, label %1229
    i64 2, label %1242
    i64 3, label %1253
  ]

1229:
  %1230 = getelementptr inbounds nuw ptr, ptr %1199, i64 %1224
  %1231 = load ptr, ptr %1230, align 8
  %1232 = icmp eq ptr %1231, null
  br i1 %1232, label %1233, label %1236

1233:
  %1234 = getelementptr inbounds nuw ptr, ptr %1200, i64 %1224
  %1235 = load ptr, ptr %1234, align 8
  br label %1236

1236:
  %1237 = phi ptr [ %1235, %1233 ], [ %1231, %1229 ]
  %1238 = call double @PyFloat_AsDouble(ptr %1237)
  %1239 = fptrunc double %1238 to float
  %1240 = bitcast float %1239 to i32
  %1241 = zext i32 %1240 to i64
  br label %1270

1242:
  %1243 = getelementptr inbounds nuw ptr, ptr %1199, i64 %1224
  %1244 = load ptr, ptr %1243, align 8
  %1245 = icmp eq ptr %1244, null
  br i1 %1245, label %1246, label %1249

1246:
  %1247 = getelementptr inbounds nuw ptr, ptr %1200, i64 %1224
  %1248 = load ptr, ptr %1247, align 8
  br label %1249

1249:
  %1250 = phi ptr [ %1248, %1246 ], [ %1244, %1242 ]
  %1251 = call double @PyFloat_AsDouble(ptr %1250)
  %1252 = bitcast double %1251 to i64
  br label %1270

1253:
  %1254 = getelementptr inbounds nuw ptr, ptr %1199, i64 %1224
  %1255 = load ptr, ptr %1254, align 8
  %1256 = icmp eq ptr %1255, null
  br i1 %1256, label %1257, label %1260

1257:
  %1258 = getelementptr inbounds nuw ptr, ptr %1200, i64 %1224
  %1259 = load ptr, ptr %1258, align 8
  br label %1260

1260:
  %1261 = phi ptr [ %1259, %1257 ], [ %1255, %1253 ]
  %1262 = call i32 @PyObject_IsTrue(ptr %1261)
  %1263 = zext i32 %1262 to i64
  br label %1270

1264:
  %1265 = getelementptr inbounds nuw i64, ptr %1201, i64 %1224
  %1266 = load i64, ptr %1265, align 8
  br label %1270

1267:
  %1268 = getelementptr inbounds nuw i64, ptr %1194, i64 %1222
  %1269 = load i64, ptr %1268, align 8
  br label %1270

1270:
  %1271 = phi i64 [ %1269, %1267 ], [ %1266, %1264 ], [ %1241, %1236 ], [ %1252, %1249 ], [ %1263, %1260 ]
  %1272 = getelementptr inbounds nuw i64, ptr %1187, i64 %1222
  store i64 %1271, ptr %1272, align 8
  %1273 = add nuw i64 %1222, 1
  %1274 = load i64, ptr %1195, align 8
  %1275 = icmp ult i64 %1273, %1274
  br i1 %1275, label %1221, label %1202

1276:
  %1277 = load ptr, ptr %22, align 8
  %1278 = getelementptr inbounds nuw i8, ptr %1277, i64 48
  %1279 = load ptr, ptr %1278, align 8
  call void @Py_IncRef(ptr %1279)
  %1280 = load ptr, ptr %22, align 8
  %1281 = getelementptr inbounds nuw i8, ptr %1280, i64 48
  %1282 = load ptr, ptr %1281, align 8
  br label %1375

1283:
  %1284 = zext i32 %1214 to i64
  %1285 = call ptr @PyLong_FromUnsignedLongLong(i64 %1284)
  store ptr %1285, ptr %6, align 8
  %1286 = getelementptr inbounds nuw i8, ptr %508, i64 48
  %1287 = load ptr, ptr %1286, align 8
  %1288 = call ptr @PyObject_Vectorcall(ptr %1287, ptr %6, i64 1, ptr null)
  %1289 = load ptr, ptr %6, align 8
  call void @Py_DecRef(ptr %1289)
  br label %1375

1290:
  %1291 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %1292 = getelementptr inbounds nuw i8, ptr %19, i64 1088
  br label %1297

1293:
  %1294 = getelementptr inbounds nuw i8, ptr %508, i64 128
  %1295 = load ptr, ptr %1294, align 8
  %1296 = icmp eq ptr %1295, null
  br i1 %1296, label %1317, label %1310

1297:
  %1298 = phi i64 [ 0, %1290 ], [ %1308, %1297 ]
  %1299 = phi ptr [ %1187, %1290 ], [ %1304, %1297 ]
  %1300 = getelementptr inbounds nuw i32, ptr %1291, i64 %1298
  %1301 = load i32, ptr %1300, align 4
  %1302 = sext i32 %1301 to i64
  %1303 = call ptr @PyLong_FromLongLong(i64 %1302)
  %1304 = getelementptr inbounds nuw i8, ptr %1299, i64 8
  store ptr %1303, ptr %1299, align 8
  %1305 = load i64, ptr %40, align 8
  %1306 = add i64 %1305, 1
  store i64 %1306, ptr %40, align 8
  %1307 = getelementptr inbounds nuw ptr, ptr %1292, i64 %1305
  store ptr %1303, ptr %1307, align 8
  %1308 = add nuw nsw i64 %1298, 1
  %1309 = icmp eq i64 %1308, 3
  br i1 %1309, label %1293, label %1297

1310:
  %1311 = getelementptr inbounds nuw i8, ptr %508, i64 120
  %1312 = load ptr, ptr %1311, align 8
  store ptr %1312, ptr %5, align 8
  %1313 = call ptr @PyObject_Vectorcall(ptr %1295, ptr %5, i64 1, ptr null)
  %1314 = icmp eq ptr %1313, null
  br i1 %1314, label %1374, label %1315

1315:
  %1316 = getelementptr inbounds nuw i8, ptr %1299, i64 16
  store ptr %1313, ptr %1304, align 8
  br label %1317

1317:
  %1318 = phi ptr [ %1313, %1315 ], [ null, %1293 ]
  %1319 = phi ptr [ %1316, %1315 ], [ %1304, %1293 ]
  %1320 = getelementptr inbounds nuw i8, ptr %508, i64 80
  %1321 = load ptr, ptr %1320, align 8
  %1322 = getelementptr inbounds nuw i8, ptr %508, i64 72
  %1323 = load i64, ptr %1322, align 8
  %1324 = icmp eq i64 %1323, 0
  br i1 %1324, label %1330, label %1325

1325:
  %1326 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1327 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %1328 = load i64, ptr @object_bytes, align 8
  %1329 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  br label %1340

1330:
  %1331 = phi ptr [ %1319, %1317 ], [ %1369, %1367 ]
  %1332 = getelementptr inbounds nuw i8, ptr %508, i64 16
  %1333 = load ptr, ptr %1332, align 8
  %1334 = ptrtoint ptr %1331 to i64
  %1335 = ptrtoint ptr %1187 to i64
  %1336 = sub i64 %1334, %1335
  %1337 = ashr exact i64 %1336, 3
  %1338 = call ptr @PyObject_Vectorcall(ptr %1333, ptr %1187, i64 %1337, ptr null)
  %1339 = icmp eq ptr %1318, null
  br i1 %1339, label %1375, label %1373

1340:
  %1341 = phi i64 [ 0, %1325 ], [ %1370, %1367 ]
  %1342 = phi ptr [ %1319, %1325 ], [ %1369, %1367 ]
  %1343 = getelementptr inbounds nuw i64, ptr %1321, i64 %1341
  %1344 = load i64, ptr %1343, align 8
  %1345 = icmp ult i64 %1344, 64
  br i1 %1345, label %1346, label %1365

1346:
  %1347 = getelementptr inbounds nuw ptr, ptr %1326, i64 %1344
  %1348 = load ptr, ptr %1347, align 8
  %1349 = icmp eq ptr %1348, null
  br i1 %1349, label %1350, label %1367

1350:
  %1351 = getelementptr inbounds nuw ptr, ptr %1327, i64 %1344
  %1352 = load ptr, ptr %1351, align 8
  %1353 = getelementptr inbounds i8, ptr %1352, i64 %1328
  %1354 = getelementptr inbounds i8, ptr %1353, i64 -8
  %1355 = load ptr, ptr %1354, align 8
  %1356 = load ptr, ptr %22, align 8
  %1357 = load ptr, ptr %1356, align 8
  %1358 = icmp eq ptr %1355, %1357
  br i1 %1358, label %1367, label %1359

1359:
  %1360 = getelementptr inbounds nuw i64, ptr %1329, i64 %1344
  %1361 = load i64, ptr %1360, align 8
  %1362 = icmp eq i64 %1361, 0
  br i1 %1362, label %1367, label %1363

1363:
  %1364 = call ptr @PyLong_FromUnsignedLongLong(i64 %1361)
  store ptr %1364, ptr %1347, align 8
  br label %1367

1365:
  %1366 = inttoptr i64 %1344 to ptr
  br label %1367

1367:
  %1368 = phi ptr [ %1366, %1365 ], [ %1364, %1363 ], [ %1352, %1359 ], [ %1352, %1350 ], [ %1348, %1346 ]
  %1369 = getelementptr inbounds nuw i8, ptr %1342, i64 8
  store ptr %1368, ptr %1342, align 8
  %1370 = add nuw i64 %1341, 1
  %1371 = load i64, ptr %1322, align 8
  %1372 = icmp ult i64 %1370, %1371
  br i1 %1372, label %1340, label %1330

1373:
  call void @Py_DecRef(ptr %1318)
  br label %1375

1374:
  call void @Py_DecRef(ptr %944)
  br label %1378

1375:
  %1376 = phi ptr [ %1288, %1283 ], [ %1282, %1276 ], [ %1338, %1373 ], [ %1338, %1330 ]
  call void @Py_DecRef(ptr %944)
  %1377 = icmp eq ptr %1376, null
  br i1 %1377, label %1378, label %1380

1378:
  %1379 = load ptr, ptr %22, align 8
  call fastcc void @strip_traceback(ptr %1379)
  br label %1384

1380:
  call void @Py_DecRef(ptr %1376)
  %1381 = getelementptr inbounds nuw i8, ptr %508, i64 64
  %1382 = load ptr, ptr %1381, align 8
  call void @Py_IncRef(ptr %1382)
  %1383 = load ptr, ptr %1381, align 8
  br label %1384

1384:
  %1385 = phi ptr [ %553, %546 ], [ %586, %583 ], [ %889, %882 ], [ %1175, %1168 ], [ %942, %931 ], [ %928, %921 ], [ null, %919 ], [ %1167, %1156 ], [ %1383, %1380 ], [ null, %1378 ]
  call void @Py_DecRef(ptr %512)
  br label %1388

1386:
  %1387 = call fastcc ptr @launch_new(ptr %19, i64 %482)
  br label %1388

1388:
  %1389 = phi ptr [ %1385, %1384 ], [ %1387, %1386 ]
  %1390 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1391 = load i64, ptr %41, align 8
  %1392 = icmp eq i64 %1391, 0
  br i1 %1392, label %1402, label %1393

1393:
  %1394 = phi i64 [ %1400, %1399 ], [ 0, %1388 ]
  %1395 = getelementptr inbounds nuw ptr, ptr %1390, i64 %1394
  %1396 = load ptr, ptr %1395, align 8
  %1397 = icmp eq ptr %1396, null
  br i1 %1397, label %1399, label %1398

1398:
  call void @Py_DecRef(ptr %1396)
  br label %1399

1399:
  %1400 = add nuw i64 %1394, 1
  %1401 = icmp eq i64 %1400, %1391
  br i1 %1401, label %1402, label %1393

1402:
  %1403 = getelementptr inbounds nuw i8, ptr %19, i64 1088
  %1404 = load i64, ptr %40, align 8
  %1405 = icmp eq i64 %1404, 0
  br i1 %1405, label %1415, label %1406

1406:
  %1407 = phi i64 [ %1413, %1412 ], [ 0, %1402 ]
  %1408 = getelementptr inbounds nuw ptr, ptr %1403, i64 %1407
  %1409 = load ptr, ptr %1408, align 8
  %1410 = icmp eq ptr %1409, null
  br i1 %1410, label %1412, label %1411

1411:
  call void @Py_DecRef(ptr %1409)
  br label %1412

1412:
  %1413 = add nuw i64 %1407, 1
  %1414 = icmp eq i64 %1413, %1404
  br i1 %1414, label %1415, label %1406

1415:
  %1416 = phi ptr [ %455, %448 ], [ %1389, %1402 ], [ %1389, %1412 ]
  ret ptr %1416
}

define internal fastcc ptr @launch_new(ptr %0, i64 %1) nounwind {
  %3 = load ptr, ptr %0, align 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 24
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, null
  br i1 %6, label %7, label %17

7:
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr inbounds nuw i8, ptr %3, i64 16
  %11 = load ptr, ptr %10, align 8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %13 = load i64, ptr %12, align 8
  %14 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %15 = load ptr, ptr %14, align 8
  %16 = call ptr @PyObject_Vectorcall(ptr %11, ptr %9, i64 %13, ptr %15)
  br label %39

17:
  %18 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %19 = load i64, ptr %18, align 8
  %20 = getelementptr inbounds nuw i8, ptr %0, i64 3240
  %21 = mul i64 %19, 24
  %22 = getelementptr inbounds nuw i8, ptr %20, i64 %21
  store i64 %1, ptr %22, align 8
  %23 = add i64 %21, 8
  %24 = call ptr @PyBytes_FromStringAndSize(ptr %20, i64 %23)
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 2664
  store ptr %24, ptr %25, align 8
  %26 = getelementptr inbounds nuw i8, ptr %0, i64 2672
  %27 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %28 = load ptr, ptr %27, align 8
  %29 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %30 = load i64, ptr %29, align 8
  %31 = shl i64 %30, 3
  %32 = add i64 %31, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %26, ptr align 8 %28, i64 %32, i1 false)
  %33 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %34 = load i64, ptr %33, align 8
  %35 = add i64 %34, 1
  %36 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %37 = load ptr, ptr %36, align 8
  %38 = call ptr @PyObject_Vectorcall(ptr %5, ptr %25, i64 %35, ptr %37)
  call void @Py_DecRef(ptr %24)
  br label %39

39:
  %40 = phi ptr [ %38, %17 ], [ %16, %7 ]
  ret ptr %40
}

declare ptr @PyLong_AsVoidPtr(ptr)

declare i64 @PyTuple_Size(ptr)

declare ptr @PyTuple_GetItem(ptr, i64)

declare ptr @PyObject_GetAttr(ptr, ptr)

define internal fastcc zeroext i1 @describe_numbers(ptr %0, ptr %1, i64 %2, i64 %3, i32 %4) nounwind {
  %6 = alloca i32, align 4
  %7 = icmp slt i64 %2, %3
  br i1 %7, label %8, label %64

8:
  %9 = load i64, ptr @object_bytes, align 8
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %11 = icmp eq i32 %4, 2
  %12 = select i1 %11, i64 36, i64 31
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %14 = getelementptr inbounds nuw i8, ptr %0, i64 3240
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 568
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 1624
  %18 = icmp eq i32 %4, 0
  %19 = icmp eq i32 %4, 3
  br label %20

20:
  %21 = phi i64 [ %2, %8 ], [ %62, %54 ]
  %22 = call ptr @PySequence_GetItem(ptr %1, i64 %21)
  %23 = icmp ne ptr %22, null
  br i1 %23, label %24, label %64

24:
  %25 = getelementptr inbounds i8, ptr %22, i64 %9
  %26 = getelementptr inbounds i8, ptr %25, i64 -8
  %27 = load ptr, ptr %26, align 8
  %28 = load ptr, ptr %10, align 8
  %29 = load ptr, ptr %28, align 8
  %30 = icmp eq ptr %27, %29
  br i1 %30, label %31, label %53

31:
  %32 = call i64 @PyLong_AsLongLongAndOverflow(ptr %22, ptr %6)
  %33 = lshr i64 %32, %12
  %34 = icmp eq i64 %33, 0
  br i1 %34, label %35, label %53

35:
  %36 = load i64, ptr %13, align 8
  %37 = icmp ult i64 %36, 64
  br i1 %37, label %38, label %53

38:
  %39 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %14, i64 %36
  %40 = load ptr, ptr %26, align 8
  store ptr null, ptr %39, align 8
  %41 = getelementptr inbounds nuw i8, ptr %39, i64 8
  store ptr %40, ptr %41, align 8
  %42 = getelementptr inbounds nuw ptr, ptr %15, i64 %36
  store ptr %22, ptr %42, align 8
  %43 = getelementptr inbounds nuw ptr, ptr %16, i64 %36
  store ptr null, ptr %43, align 8
  %44 = getelementptr inbounds nuw i64, ptr %17, i64 %36
  br label %45

45:
  %46 = phi i64 [ 0, %38 ], [ %51, %50 ]
  %47 = shl nuw nsw i64 1, %46
  %48 = and i64 %47, %32
  %49 = icmp eq i64 %48, 0
  br i1 %49, label %50, label %54

50:
  %51 = add nuw nsw i64 %46, 1
  %52 = icmp eq i64 %51, 4
  br i1 %52, label %54, label %45

53:
  call void @Py_DecRef(ptr %22)
  br label %64

54:
  %55 = phi i64 [ 4, %50 ], [ %46, %45 ]
  %56 = select i1 %19, i64 %32, i64 %55
  %57 = select i1 %18, i64 0, i64 %56
  %58 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %0, i64 %36
  %59 = getelementptr inbounds nuw i8, ptr %58, i64 3256
  store i64 %57, ptr %59, align 8
  store i64 %32, ptr %44, align 8
  call void @Py_IncRef(ptr %22)
  store ptr %22, ptr %43, align 8
  %60 = load i64, ptr %13, align 8
  %61 = add i64 %60, 1
  store i64 %61, ptr %13, align 8
  call void @Py_DecRef(ptr %22)
  %62 = add nsw i64 %21, 1
  %63 = icmp eq i64 %62, %3
  br i1 %63, label %64, label %20

64:
  %65 = phi i1 [ false, %53 ], [ true, %5 ], [ %23, %20 ], [ %23, %54 ]
  ret i1 %65
}

declare void @Py_DecRef(ptr)

declare void @PyErr_Clear()

declare i64 @PySequence_Size(ptr)

define internal fastcc zeroext i1 @describe_array(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca %struct.DLTensor, align 8
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %10 = load i64, ptr %9, align 8
  %11 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %12 = load ptr, ptr %11, align 8
  %13 = load i64, ptr @object_bytes, align 8
  %14 = getelementptr inbounds i8, ptr %1, i64 %13
  %15 = getelementptr inbounds i8, ptr %14, i64 -8
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr inbounds nuw i8, ptr %12, i64 160
  %18 = load ptr, ptr %17, align 8
  %19 = icmp eq ptr %16, %18
  br i1 %19, label %20, label %32

20:
  %21 = load i64, ptr %14, align 8
  %22 = getelementptr inbounds nuw i8, ptr %14, i64 40
  %23 = load ptr, ptr %22, align 8
  %24 = ptrtoint ptr %23 to i64
  %25 = getelementptr inbounds nuw i8, ptr %14, i64 48
  %26 = load i32, ptr %25, align 8
  %27 = lshr i32 %26, 9
  %28 = and i32 %27, 2
  %29 = xor i32 %28, 2
  %30 = zext nneg i32 %29 to i64
  %31 = add i64 %30, %24
  br label %158

32:
  %33 = getelementptr inbounds nuw i8, ptr %12, i64 168
  br label %34

34:
  %35 = phi ptr [ %33, %32 ], [ %40, %34 ]
  %36 = load ptr, ptr %35, align 8
  %37 = icmp ne ptr %36, null
  %38 = icmp ne ptr %36, %16
  %39 = and i1 %38, %37
  %40 = getelementptr inbounds nuw i8, ptr %35, i64 8
  br i1 %39, label %34, label %41

41:
  br i1 %37, label %46, label %42

42:
  store ptr %1, ptr %7, align 8
  %43 = getelementptr inbounds nuw i8, ptr %12, i64 144
  %44 = load ptr, ptr %43, align 8
  %45 = call ptr @PyObject_Vectorcall(ptr %44, ptr %7, i64 1, ptr null)
  call void @Py_DecRef(ptr %45)
  call void @PyErr_Clear()
  br label %184

46:
  %47 = getelementptr inbounds nuw i8, ptr %12, i64 232
  br label %48

48:
  %49 = phi ptr [ %47, %46 ], [ %54, %48 ]
  %50 = load ptr, ptr %49, align 8
  %51 = icmp ne ptr %50, null
  %52 = icmp ne ptr %50, %16
  %53 = and i1 %52, %51
  %54 = getelementptr inbounds nuw i8, ptr %49, i64 8
  br i1 %53, label %48, label %55

55:
  br i1 %51, label %56, label %118

56:
  %57 = getelementptr inbounds nuw i8, ptr %12, i64 304
  %58 = load i64, ptr %57, align 8
  %59 = getelementptr inbounds nuw i8, ptr %1, i64 %58
  %60 = load ptr, ptr %59, align 8
  %61 = getelementptr inbounds nuw i8, ptr %12, i64 312
  %62 = load i64, ptr %61, align 8
  %63 = getelementptr inbounds nuw i8, ptr %60, i64 %62
  %64 = load i64, ptr %63, align 8
  %65 = getelementptr inbounds nuw i8, ptr %12, i64 320
  %66 = load i64, ptr %65, align 8
  %67 = and i64 %66, %64
  %68 = icmp eq i64 %67, 0
  br i1 %68, label %69, label %152

69:
  %70 = getelementptr inbounds nuw i8, ptr %12, i64 296
  %71 = load ptr, ptr %70, align 8
  %72 = call i32 %71(ptr %1, ptr %8)
  %73 = icmp eq i32 %72, 0
  br i1 %73, label %74, label %152

74:
  %75 = load i64, ptr %8, align 8
  %76 = getelementptr inbounds nuw i8, ptr %8, i64 40
  %77 = load i64, ptr %76, align 8
  %78 = add i64 %77, %75
  %79 = getelementptr inbounds nuw i8, ptr %8, i64 20
  %80 = load i32, ptr %79, align 4
  %81 = zext i32 %80 to i64
  %82 = shl nuw nsw i64 %81, 3
  %83 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %84 = load i32, ptr %83, align 8
  %85 = zext i32 %84 to i64
  %86 = shl i64 %85, 40
  %87 = or disjoint i64 %86, %82
  %88 = getelementptr inbounds nuw i8, ptr %8, i64 12
  %89 = load i32, ptr %88, align 4
  %90 = zext i32 %89 to i64
  %91 = shl i64 %90, 46
  %92 = xor i64 %87, %91
  %93 = getelementptr inbounds nuw i8, ptr %8, i64 32
  %94 = load ptr, ptr %93, align 8
  %95 = icmp eq ptr %94, null
  br i1 %95, label %153, label %96

96:
  %97 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %98 = load i32, ptr %97, align 8
  %99 = icmp eq i32 %98, 0
  br i1 %99, label %153, label %100

100:
  %101 = getelementptr inbounds nuw i8, ptr %8, i64 24
  %102 = load ptr, ptr %101, align 8
  %103 = zext i32 %98 to i64
  br label %104

104:
  %105 = phi i64 [ 0, %100 ], [ %116, %110 ]
  %106 = phi i64 [ 1, %100 ], [ %115, %110 ]
  %107 = getelementptr inbounds nuw i64, ptr %102, i64 %105
  %108 = load i64, ptr %107, align 8
  %109 = icmp eq i64 %108, 0
  br i1 %109, label %153, label %110

110:
  %111 = add i64 %108, -1
  %112 = getelementptr inbounds nuw i64, ptr %94, i64 %105
  %113 = load i64, ptr %112, align 8
  %114 = mul i64 %113, %111
  %115 = add i64 %114, %106
  %116 = add nuw nsw i64 %105, 1
  %117 = icmp eq i64 %116, %103
  br i1 %117, label %153, label %104

118:
  %119 = getelementptr inbounds nuw i8, ptr %12, i64 80
  %120 = load ptr, ptr %119, align 8
  store ptr %1, ptr %6, align 8
  %121 = call ptr @PyObject_VectorcallMethod(ptr %120, ptr %6, i64 1, ptr null)
  %122 = icmp eq ptr %121, null
  br i1 %122, label %184, label %123

123:
  %124 = call i32 @PyObject_IsTrue(ptr %121)
  call void @Py_DecRef(ptr %121)
  %125 = icmp eq i32 %124, 0
  br i1 %125, label %126, label %184

126:
  %127 = getelementptr inbounds nuw i8, ptr %12, i64 72
  %128 = load ptr, ptr %127, align 8
  %129 = icmp eq ptr %128, null
  br i1 %129, label %137, label %130

130:
  store ptr %1, ptr %5, align 8
  %131 = call ptr @PyObject_VectorcallMethod(ptr %128, ptr %5, i64 1, ptr null)
  %132 = icmp eq ptr %131, null
  br i1 %132, label %184, label %133

133:
  %134 = call i64 @PyLong_AsLongLong(ptr %131)
  call void @Py_DecRef(ptr %131)
  %135 = shl i64 %134, 48
  %136 = add i64 %135, 281474976710656
  br label %137

137:
  %138 = phi i64 [ %136, %133 ], [ 0, %126 ]
  %139 = getelementptr inbounds nuw i8, ptr %12, i64 64
  %140 = load ptr, ptr %139, align 8
  %141 = call ptr @PyObject_GetAttr(ptr %1, ptr %140)
  %142 = icmp eq ptr %141, null
  br i1 %142, label %184, label %143

143:
  call void @Py_DecRef(ptr %141)
  %144 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %145 = load ptr, ptr %144, align 8
  store ptr %1, ptr %4, align 8
  %146 = call ptr @PyObject_VectorcallMethod(ptr %145, ptr %4, i64 1, ptr null)
  %147 = icmp eq ptr %146, null
  br i1 %147, label %184, label %148

148:
  %149 = ptrtoint ptr %141 to i64
  %150 = xor i64 %138, %149
  %151 = call i64 @PyLong_AsUnsignedLongLong(ptr %146)
  br label %158

152:
  br label %184

153:
  %154 = phi i64 [ 1152921504606846976, %74 ], [ 1, %96 ], [ 0, %104 ], [ %115, %110 ]
  %155 = getelementptr inbounds nuw i8, ptr %0, i64 2136
  %156 = load i64, ptr %9, align 8
  %157 = getelementptr inbounds nuw i64, ptr %155, i64 %156
  store i64 %154, ptr %157, align 8
  br label %158

158:
  %159 = phi ptr [ null, %153 ], [ %146, %148 ], [ null, %20 ]
  %160 = phi i64 [ %92, %153 ], [ %150, %148 ], [ %31, %20 ]
  %161 = phi i64 [ %78, %153 ], [ %151, %148 ], [ %21, %20 ]
  %162 = and i64 %161, 15
  %163 = and i64 %2, 6
  %164 = or i64 %162, %163
  %165 = icmp eq i64 %164, 0
  %166 = zext i1 %165 to i64
  %167 = add i64 %160, %166
  %168 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %0, i64 %10
  %169 = getelementptr inbounds nuw i8, ptr %168, i64 3256
  store i64 %167, ptr %169, align 8
  %170 = getelementptr inbounds nuw i8, ptr %0, i64 1624
  %171 = getelementptr inbounds nuw i64, ptr %170, i64 %10
  store i64 %161, ptr %171, align 8
  %172 = add i64 %161, -1
  %173 = icmp ult i64 %172, -2
  br i1 %173, label %174, label %183

174:
  %175 = lshr i64 %2, 32
  %176 = icmp eq i64 %175, 0
  br i1 %176, label %180, label %177

177:
  %178 = srem i64 %161, %175
  %179 = icmp eq i64 %178, 0
  br i1 %179, label %180, label %183

180:
  %181 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %182 = getelementptr inbounds nuw ptr, ptr %181, i64 %10
  store ptr %159, ptr %182, align 8
  br label %185

183:
  call void @Py_DecRef(ptr %159)
  br label %184

184:
  call void @PyErr_Clear()
  br label %185

185:
  %186 = phi i1 [ true, %180 ], [ false, %184 ]
  ret i1 %186
}

declare i64 @PyLong_AsUnsignedLongLong(ptr)

declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

declare i32 @PyObject_IsTrue(ptr)

declare i64 @PyLong_AsLongLong(ptr)

declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)

declare ptr @PySequence_GetItem(ptr, i64)

declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)

declare void @Py_IncRef(ptr)

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)

declare double @PyFloat_AsDouble(ptr)

declare ptr @PyFloat_FromDouble(double)

declare i64 @llvm.fshl.i64(i64, i64, i64)

declare i32 @memcmp(ptr, ptr, i64)

declare i64 @PyDict_Size(ptr)

declare i64 @PyList_Size(ptr)

declare ptr @PyDict_GetItemWithError(ptr, ptr)

define internal fastcc zeroext i1 @read_grid(ptr %0, ptr %1) nounwind {
  %3 = alloca i32, align 4
  %4 = alloca i32, align 4
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 2648
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 2656
  store i32 1, ptr %8, align 8
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 2652
  store i32 1, ptr %9, align 4
  %10 = load i64, ptr @object_bytes, align 8
  %11 = getelementptr inbounds i8, ptr %1, i64 %10
  %12 = getelementptr inbounds i8, ptr %11, i64 -8
  %13 = load ptr, ptr %12, align 8
  %14 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %15 = load ptr, ptr %14, align 8
  %16 = icmp eq ptr %13, %15
  br i1 %16, label %26, label %17

17:
  %18 = load ptr, ptr %6, align 8
  %19 = icmp eq ptr %13, %18
  br i1 %19, label %20, label %24

20:
  %21 = call i64 @PyLong_AsLongLongAndOverflow(ptr %1, ptr %4)
  %22 = trunc i64 %21 to i32
  store i32 %22, ptr %7, align 4
  %23 = icmp ult i64 %21, 2147483648
  br label %24

24:
  %25 = phi i1 [ %23, %20 ], [ false, %17 ]
  br label %47

26:
  %27 = call i64 @PyTuple_Size(ptr %1)
  %28 = add i64 %27, -4
  %29 = icmp ult i64 %28, -3
  br i1 %29, label %47, label %30

30:
  %31 = phi i64 [ %44, %39 ], [ 0, %26 ]
  %32 = call ptr @PyTuple_GetItem(ptr %1, i64 %31)
  %33 = getelementptr inbounds i8, ptr %32, i64 %10
  %34 = getelementptr inbounds i8, ptr %33, i64 -8
  %35 = load ptr, ptr %34, align 8
  %36 = load ptr, ptr %6, align 8
  %37 = icmp eq ptr %35, %36
  br i1 %37, label %39, label %38

38:
  br label %47

39:
  %40 = getelementptr inbounds nuw i32, ptr %7, i64 %31
  %41 = call i64 @PyLong_AsLongLongAndOverflow(ptr %32, ptr %3)
  %42 = trunc i64 %41 to i32
  store i32 %42, ptr %40, align 4
  %43 = icmp ult i64 %41, 2147483648
  %44 = add nuw nsw i64 %31, 1
  %45 = icmp ne i64 %44, %27
  %46 = select i1 %43, i1 %45, i1 false
  br i1 %46, label %30, label %47

47:
  %48 = phi i1 [ %25, %24 ], [ false, %26 ], [ false, %38 ], [ %43, %39 ]
  ret i1 %48
}

declare i32 @PyCallable_Check(ptr)

define internal fastcc void @strip_traceback(ptr %0) nounwind {
  %2 = alloca [3 x ptr], align 16
  %3 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %4 = getelementptr inbounds nuw i8, ptr %2, i64 16
  call void @PyErr_Fetch(ptr %2, ptr %3, ptr %4)
  call void @PyErr_NormalizeException(ptr %2, ptr %3, ptr %4)
  %5 = load ptr, ptr %4, align 16
  %6 = icmp eq ptr %5, null
  br i1 %6, label %15, label %7

7:
  %8 = load ptr, ptr %3, align 8
  %9 = call i32 @PyException_SetTraceback(ptr %8, ptr %5)
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 152
  %11 = load ptr, ptr %10, align 8
  %12 = call ptr @PyObject_Vectorcall(ptr %11, ptr %2, i64 3, ptr null)
  call void @Py_DecRef(ptr %12)
  call void @Py_DecRef(ptr %5)
  %13 = load ptr, ptr %3, align 8
  %14 = call ptr @PyException_GetTraceback(ptr %13)
  br label %15

15:
  %16 = phi ptr [ %14, %7 ], [ null, %1 ]
  %17 = load ptr, ptr %2, align 16
  %18 = load ptr, ptr %3, align 8
  call void @PyErr_Restore(ptr %17, ptr %18, ptr %16)
  ret void
}

declare ptr @PyFunction_GetCode(ptr)

declare ptr @PyFunction_GetGlobals(ptr)

declare ptr @PyCell_Get(ptr)

declare ptr @PyFunction_GetClosure(ptr)

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)

declare ptr @PyDict_Copy(ptr)

declare i32 @PyDict_SetItem(ptr, ptr, ptr)

declare void @PyErr_Fetch(ptr, ptr, ptr)

declare void @PyErr_Restore(ptr, ptr, ptr)

declare void @PyErr_NormalizeException(ptr, ptr, ptr)

declare i32 @PyException_SetTraceback(ptr, ptr)

declare ptr @PyException_GetTraceback(ptr)

define internal fastcc i64 @extent(ptr %0, i64 %1, i64 %2) nounwind {
  %4 = alloca ptr, align 8
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 568
  %6 = getelementptr inbounds nuw ptr, ptr %5, i64 %1
  %7 = load ptr, ptr %6, align 8
  %8 = load i64, ptr @object_bytes, align 8
  %9 = getelementptr inbounds i8, ptr %7, i64 %8
  %10 = getelementptr inbounds i8, ptr %9, i64 -8
  %11 = load ptr, ptr %10, align 8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %13 = load ptr, ptr %12, align 8
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 160
  %15 = load ptr, ptr %14, align 8
  %16 = icmp eq ptr %11, %15
  br i1 %16, label %17, label %43

17:
  %18 = getelementptr inbounds nuw i8, ptr %9, i64 24
  %19 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %20 = load i32, ptr %19, align 8
  %21 = icmp sgt i32 %20, 0
  br i1 %21, label %22, label %67

22:
  %23 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %24 = load ptr, ptr %23, align 8
  %25 = zext nneg i32 %20 to i64
  br label %26

26:
  %27 = phi i64 [ 0, %22 ], [ %41, %37 ]
  %28 = phi i64 [ %2, %22 ], [ %40, %37 ]
  %29 = getelementptr inbounds nuw i64, ptr %24, i64 %27
  %30 = load i64, ptr %29, align 8
  %31 = icmp eq i64 %30, 0
  br i1 %31, label %67, label %32

32:
  %33 = load ptr, ptr %18, align 8
  %34 = getelementptr inbounds nuw i64, ptr %33, i64 %27
  %35 = load i64, ptr %34, align 8
  %36 = icmp slt i64 %35, 0
  br i1 %36, label %67, label %37

37:
  %38 = add i64 %30, -1
  %39 = mul i64 %35, %38
  %40 = add i64 %39, %28
  %41 = add nuw nsw i64 %27, 1
  %42 = icmp eq i64 %41, %25
  br i1 %42, label %67, label %26

43:
  %44 = getelementptr inbounds nuw i8, ptr %13, i64 232
  br label %45

45:
  %46 = phi ptr [ %44, %43 ], [ %51, %45 ]
  %47 = load ptr, ptr %46, align 8
  %48 = icmp ne ptr %47, null
  %49 = icmp ne ptr %47, %11
  %50 = and i1 %49, %48
  %51 = getelementptr inbounds nuw i8, ptr %46, i64 8
  br i1 %50, label %45, label %52

52:
  br i1 %48, label %53, label %58

53:
  %54 = getelementptr inbounds nuw i8, ptr %0, i64 2136
  %55 = getelementptr inbounds nuw i64, ptr %54, i64 %1
  %56 = load i64, ptr %55, align 8
  %57 = mul i64 %56, %2
  br label %67

58:
  %59 = getelementptr inbounds nuw i8, ptr %13, i64 88
  %60 = load ptr, ptr %59, align 8
  store ptr %7, ptr %4, align 8
  %61 = call ptr @PyObject_VectorcallMethod(ptr %60, ptr %4, i64 1, ptr null)
  %62 = icmp eq ptr %61, null
  br i1 %62, label %63, label %64

63:
  call void @PyErr_Clear()
  br label %67

64:
  %65 = call i64 @PyLong_AsLongLong(ptr %61)
  call void @Py_DecRef(ptr %61)
  %66 = mul i64 %65, %2
  br label %67

67:
  %68 = phi i64 [ -1, %63 ], [ %57, %53 ], [ %2, %17 ], [ %66, %64 ], [ -1, %32 ], [ 0, %26 ], [ %40, %37 ]
  ret i64 %68
}

declare ptr @PyLong_FromUnsignedLongLong(i64)

declare ptr @PyLong_FromLongLong(i64)

declare ptr @PyBytes_FromStringAndSize(ptr, i64)

declare i64 @llvm.smin.i64(i64, i64)

declare i64 @llvm.smax.i64(i64, i64)

declare i64 @llvm.umin.i64(i64, i64)
