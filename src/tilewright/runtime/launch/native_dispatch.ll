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
  br i1 %38, label %39, label %427

39:
  %40 = getelementptr inbounds nuw i8, ptr %19, i64 1080
  store i64 0, ptr %40, align 8
  %41 = getelementptr inbounds nuw i8, ptr %19, i64 48
  store i64 0, ptr %41, align 8
  %42 = icmp eq i64 %32, 0
  br i1 %42, label %459, label %43

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
  %54 = phi i64 [ 0, %43 ], [ %424, %423 ]
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
  %72 = getelementptr inbounds nuw i8, ptr %55, i64 48
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
  br i1 %200, label %423, label %202

201:
  call void @Py_DecRef(ptr %118)
  call void @Py_DecRef(ptr %122)
  call void @Py_DecRef(ptr %126)
  br label %202

202:
  call void @PyErr_Clear()
  br label %397

203:
  %204 = load i64, ptr %41, align 8
  %205 = icmp ult i64 %204, 64
  br i1 %205, label %206, label %400

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
  br i1 %217, label %218, label %276

218:
  %219 = call i64 @PyLong_AsLongLongAndOverflow(ptr %59, ptr %18)
  %220 = load i32, ptr %18, align 4
  %221 = icmp eq i32 %220, 0
  br i1 %221, label %222, label %274

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
  br i1 %234, label %235, label %274

235:
  %236 = lshr i64 %104, 32
  %237 = icmp eq i64 %236, 0
  br i1 %237, label %241, label %238

238:
  %239 = srem i64 %219, %236
  %240 = icmp eq i64 %239, 0
  br i1 %240, label %241, label %274

241:
  %242 = and i64 %104, 9
  %243 = icmp eq i64 %242, 0
  br i1 %243, label %244, label %267

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
  %268 = phi i64 [ %219, %241 ], [ %266, %249 ], [ 1, %244 ]
  store i64 %268, ptr %215, align 8
  store i64 %219, ptr %212, align 8
  %269 = and i64 %104, 16
  %270 = icmp eq i64 %269, 0
  br i1 %270, label %275, label %271

271:
  %272 = sitofp i64 %219 to double
  %273 = call ptr @PyFloat_FromDouble(double %272)
  store ptr %273, ptr %211, align 8
  br label %275

274:
  br label %397

275:
  br label %298

276:
  %277 = getelementptr inbounds nuw i8, ptr %108, i64 8
  %278 = load ptr, ptr %277, align 8
  %279 = icmp eq ptr %213, %278
  br i1 %279, label %280, label %285

280:
  %281 = call double @PyFloat_AsDouble(ptr %59)
  %282 = and i64 %104, 9
  %283 = icmp eq i64 %282, 0
  br i1 %283, label %298, label %284

284:
  store double %281, ptr %215, align 8
  br label %298

285:
  br i1 %113, label %286, label %294

286:
  %287 = getelementptr inbounds nuw i8, ptr %108, i64 16
  %288 = load ptr, ptr %287, align 8
  %289 = icmp eq ptr %213, %288
  br i1 %289, label %294, label %290

290:
  %291 = getelementptr inbounds nuw i8, ptr %108, i64 40
  %292 = load ptr, ptr %291, align 8
  %293 = icmp eq ptr %59, %292
  br i1 %293, label %294, label %296

294:
  %295 = ptrtoint ptr %59 to i64
  store i64 %295, ptr %215, align 8
  br label %298

296:
  %297 = call fastcc zeroext i1 @describe_array(ptr %19, ptr %59, i64 %104)
  br i1 %297, label %298, label %397

298:
  %299 = load i64, ptr %41, align 8
  %300 = add i64 %299, 1
  store i64 %300, ptr %41, align 8
  %301 = and i64 %104, 64
  %302 = icmp eq i64 %301, 0
  br i1 %302, label %423, label %303

303:
  %304 = load ptr, ptr %22, align 8
  %305 = load ptr, ptr %106, align 8
  %306 = getelementptr inbounds nuw i8, ptr %304, i64 160
  %307 = load ptr, ptr %306, align 8
  %308 = icmp eq ptr %305, %307
  br i1 %308, label %309, label %317

309:
  %310 = getelementptr inbounds nuw i8, ptr %105, i64 8
  %311 = load i32, ptr %310, align 8
  %312 = sext i32 %311 to i64
  %313 = getelementptr inbounds nuw i8, ptr %105, i64 16
  %314 = load ptr, ptr %313, align 8
  %315 = getelementptr inbounds nuw i8, ptr %105, i64 24
  %316 = load ptr, ptr %315, align 8
  br label %354

317:
  %318 = getelementptr inbounds nuw i8, ptr %304, i64 232
  br label %319

319:
  %320 = phi ptr [ %318, %317 ], [ %325, %319 ]
  %321 = load ptr, ptr %320, align 8
  %322 = icmp ne ptr %321, null
  %323 = icmp ne ptr %321, %305
  %324 = and i1 %323, %322
  %325 = getelementptr inbounds nuw i8, ptr %320, i64 8
  br i1 %324, label %319, label %326

326:
  br i1 %322, label %327, label %393

327:
  %328 = getelementptr inbounds nuw i8, ptr %304, i64 304
  %329 = load i64, ptr %328, align 8
  %330 = getelementptr inbounds nuw i8, ptr %59, i64 %329
  %331 = load ptr, ptr %330, align 8
  %332 = getelementptr inbounds nuw i8, ptr %304, i64 312
  %333 = load i64, ptr %332, align 8
  %334 = getelementptr inbounds nuw i8, ptr %331, i64 %333
  %335 = load i64, ptr %334, align 8
  %336 = getelementptr inbounds nuw i8, ptr %304, i64 320
  %337 = load i64, ptr %336, align 8
  %338 = and i64 %337, %335
  %339 = icmp eq i64 %338, 0
  br i1 %339, label %340, label %345

340:
  %341 = getelementptr inbounds nuw i8, ptr %304, i64 296
  %342 = load ptr, ptr %341, align 8
  %343 = call i32 %342(ptr %59, ptr %17)
  %344 = icmp eq i32 %343, 0
  br i1 %344, label %346, label %345

345:
  call void @PyErr_Clear()
  br label %391

346:
  %347 = load ptr, ptr %49, align 8
  %348 = icmp eq ptr %347, null
  br i1 %348, label %391, label %349

349:
  %350 = load ptr, ptr %50, align 8
  %351 = load i32, ptr %51, align 8
  %352 = zext i32 %351 to i64
  %353 = load i64, ptr %41, align 8
  br label %354

354:
  %355 = phi i64 [ %300, %309 ], [ %353, %349 ]
  %356 = phi ptr [ %314, %309 ], [ %350, %349 ]
  %357 = phi ptr [ %316, %309 ], [ %347, %349 ]
  %358 = phi i64 [ %312, %309 ], [ %352, %349 ]
  %359 = icmp ult i64 %355, 64
  br i1 %359, label %360, label %391

360:
  %361 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %355
  store ptr null, ptr %361, align 8
  %362 = getelementptr inbounds nuw i8, ptr %361, i64 8
  %363 = getelementptr inbounds nuw i8, ptr %361, i64 16
  %364 = getelementptr inbounds nuw ptr, ptr %46, i64 %355
  store ptr %59, ptr %364, align 8
  %365 = getelementptr inbounds nuw ptr, ptr %47, i64 %355
  store ptr null, ptr %365, align 8
  %366 = getelementptr inbounds nuw i64, ptr %48, i64 %355
  store i64 0, ptr %366, align 8
  %367 = inttoptr i64 %358 to ptr
  store ptr %367, ptr %362, align 8
  store i64 0, ptr %363, align 8
  %368 = add nuw nsw i64 %355, 1
  store i64 %368, ptr %41, align 8
  %369 = icmp eq i64 %358, 0
  br i1 %369, label %392, label %370

370:
  %371 = sub nuw nsw i64 63, %355
  br label %372

372:
  %373 = phi i64 [ %388, %376 ], [ %368, %370 ]
  %374 = phi i64 [ %389, %376 ], [ 0, %370 ]
  %375 = icmp eq i64 %374, %371
  br i1 %375, label %391, label %376

376:
  %377 = getelementptr inbounds nuw i64, ptr %357, i64 %374
  %378 = load i64, ptr %377, align 8
  %379 = getelementptr inbounds nuw i64, ptr %356, i64 %374
  %380 = load i64, ptr %379, align 8
  %381 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %373
  store ptr null, ptr %381, align 8
  %382 = getelementptr inbounds nuw i8, ptr %381, i64 8
  %383 = getelementptr inbounds nuw i8, ptr %381, i64 16
  %384 = getelementptr inbounds nuw ptr, ptr %46, i64 %373
  store ptr %59, ptr %384, align 8
  %385 = getelementptr inbounds nuw ptr, ptr %47, i64 %373
  store ptr null, ptr %385, align 8
  %386 = getelementptr inbounds nuw i64, ptr %48, i64 %373
  store i64 0, ptr %386, align 8
  %387 = inttoptr i64 %380 to ptr
  store ptr %387, ptr %382, align 8
  store i64 %378, ptr %383, align 8
  %388 = add nuw nsw i64 %373, 1
  store i64 %388, ptr %41, align 8
  %389 = add nuw nsw i64 %374, 1
  %390 = icmp eq i64 %389, %358
  br i1 %390, label %392, label %372

391:
  br label %397

392:
  br label %423

393:
  %394 = getelementptr inbounds nuw i8, ptr %304, i64 40
  %395 = load ptr, ptr %394, align 8
  %396 = icmp eq ptr %59, %395
  br i1 %396, label %423, label %397

397:
  %398 = load i64, ptr %41, align 8
  %399 = icmp eq i64 %398, 0
  br i1 %399, label %411, label %400

400:
  %401 = phi i64 [ %398, %397 ], [ %204, %203 ]
  br label %402

402:
  %403 = phi i64 [ %409, %408 ], [ 0, %400 ]
  %404 = getelementptr inbounds nuw ptr, ptr %47, i64 %403
  %405 = load ptr, ptr %404, align 8
  %406 = icmp eq ptr %405, null
  br i1 %406, label %408, label %407

407:
  call void @Py_DecRef(ptr %405)
  br label %408

408:
  %409 = add nuw i64 %403, 1
  %410 = icmp eq i64 %409, %401
  br i1 %410, label %411, label %402

411:
  %412 = load i64, ptr %40, align 8
  %413 = icmp eq i64 %412, 0
  br i1 %413, label %427, label %414

414:
  %415 = phi i64 [ %421, %420 ], [ 0, %411 ]
  %416 = getelementptr inbounds nuw ptr, ptr %52, i64 %415
  %417 = load ptr, ptr %416, align 8
  %418 = icmp eq ptr %417, null
  br i1 %418, label %420, label %419

419:
  call void @Py_DecRef(ptr %417)
  br label %420

420:
  %421 = add nuw i64 %415, 1
  %422 = icmp eq i64 %421, %412
  br i1 %422, label %427, label %414

423:
  %424 = add nuw i64 %54, 1
  %425 = load i64, ptr %33, align 8
  %426 = icmp ult i64 %424, %425
  br i1 %426, label %53, label %435

427:
  %428 = load ptr, ptr %23, align 8
  %429 = load ptr, ptr %19, align 8
  %430 = getelementptr inbounds nuw i8, ptr %429, i64 16
  %431 = load ptr, ptr %430, align 8
  %432 = load i64, ptr %24, align 8
  %433 = load ptr, ptr %25, align 8
  %434 = call ptr @PyObject_Vectorcall(ptr %431, ptr %428, i64 %432, ptr %433)
  br label %1394

435:
  %436 = load i64, ptr %41, align 8
  %437 = icmp eq i64 %436, 0
  br i1 %437, label %459, label %438

438:
  %439 = phi i64 [ %454, %438 ], [ 0, %435 ]
  %440 = phi i64 [ %455, %438 ], [ 0, %435 ]
  %441 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %45, i64 %440
  %442 = load ptr, ptr %441, align 8
  %443 = ptrtoint ptr %442 to i64
  %444 = getelementptr inbounds nuw i8, ptr %441, i64 8
  %445 = load ptr, ptr %444, align 8
  %446 = ptrtoint ptr %445 to i64
  %447 = call i64 @llvm.fshl.i64(i64 %446, i64 %446, i64 21)
  %448 = add i64 %447, %443
  %449 = getelementptr inbounds nuw i8, ptr %441, i64 16
  %450 = load i64, ptr %449, align 8
  %451 = call i64 @llvm.fshl.i64(i64 %450, i64 %450, i64 42)
  %452 = add i64 %448, %451
  %453 = xor i64 %452, %439
  %454 = mul i64 %453, -7046029254386353131
  %455 = add nuw i64 %440, 1
  %456 = icmp eq i64 %455, %436
  br i1 %456, label %457, label %438

457:
  %458 = lshr i64 %454, 56
  br label %459

459:
  %460 = phi i64 [ 0, %435 ], [ 0, %39 ], [ %436, %457 ]
  %461 = phi i64 [ 0, %435 ], [ 0, %39 ], [ %458, %457 ]
  %462 = load ptr, ptr %19, align 8
  %463 = getelementptr inbounds nuw i8, ptr %462, i64 8
  %464 = load ptr, ptr %463, align 8
  %465 = mul i64 %460, 3
  %466 = getelementptr inbounds nuw i8, ptr %19, i64 3240
  %467 = mul i64 %460, 24
  %468 = add nuw nsw i64 %461, 7
  br label %469

469:
  %470 = phi i64 [ %461, %459 ], [ %483, %482 ]
  %471 = getelementptr inbounds nuw ptr, ptr %464, i64 %470
  %472 = load ptr, ptr %471, align 8
  %473 = icmp eq ptr %472, null
  br i1 %473, label %1365, label %474

474:
  %475 = load i64, ptr %472, align 8
  %476 = icmp eq i64 %475, %465
  br i1 %476, label %477, label %482

477:
  %478 = getelementptr inbounds nuw i8, ptr %472, i64 8
  %479 = load ptr, ptr %478, align 8
  %480 = call i32 @memcmp(ptr %479, ptr %466, i64 %467)
  %481 = icmp eq i32 %480, 0
  br i1 %481, label %485, label %482

482:
  %483 = add nuw nsw i64 %470, 1
  %484 = icmp eq i64 %470, %468
  br i1 %484, label %1365, label %469

485:
  %486 = getelementptr inbounds nuw ptr, ptr %464, i64 %470
  %487 = load ptr, ptr %486, align 8
  %488 = icmp eq ptr %487, null
  br i1 %488, label %1365, label %489

489:
  %490 = getelementptr inbounds nuw i8, ptr %487, i64 192
  %491 = load ptr, ptr %490, align 8
  call void @Py_IncRef(ptr %491)
  %492 = load ptr, ptr %19, align 8
  %493 = getelementptr inbounds nuw i8, ptr %492, i64 96
  %494 = load ptr, ptr %493, align 8
  %495 = load i64, ptr %494, align 8
  %496 = add i64 %495, 1
  store i64 %496, ptr %494, align 8
  %497 = getelementptr inbounds nuw i8, ptr %487, i64 200
  store i64 %496, ptr %497, align 8
  %498 = load ptr, ptr %19, align 8
  %499 = getelementptr inbounds nuw i8, ptr %498, i64 56
  %500 = load ptr, ptr %499, align 8
  %501 = call i64 @PyDict_Size(ptr %500)
  %502 = getelementptr inbounds nuw i8, ptr %498, i64 64
  %503 = load ptr, ptr %502, align 8
  %504 = call i64 @PyList_Size(ptr %503)
  %505 = or i64 %504, %501
  %506 = getelementptr inbounds nuw i8, ptr %498, i64 72
  %507 = load ptr, ptr %506, align 8
  %508 = call i64 @PyList_Size(ptr %507)
  %509 = or i64 %505, %508
  %510 = getelementptr inbounds nuw i8, ptr %498, i64 80
  %511 = load ptr, ptr %510, align 8
  %512 = call i64 @PyList_Size(ptr %511)
  %513 = or i64 %509, %512
  %514 = icmp eq i64 %513, 0
  br i1 %514, label %515, label %525

515:
  %516 = getelementptr inbounds nuw i8, ptr %487, i64 136
  %517 = load ptr, ptr %516, align 8
  %518 = icmp eq ptr %517, null
  br i1 %518, label %533, label %519

519:
  store ptr null, ptr %16, align 8
  %520 = call i32 %517(ptr %16)
  %521 = load ptr, ptr %16, align 8
  %522 = getelementptr inbounds nuw i8, ptr %487, i64 144
  %523 = load ptr, ptr %522, align 8
  %524 = icmp eq ptr %521, %523
  br i1 %524, label %533, label %525

525:
  %526 = load ptr, ptr %23, align 8
  %527 = load ptr, ptr %19, align 8
  %528 = getelementptr inbounds nuw i8, ptr %527, i64 16
  %529 = load ptr, ptr %528, align 8
  %530 = load i64, ptr %24, align 8
  %531 = load ptr, ptr %25, align 8
  %532 = call ptr @PyObject_Vectorcall(ptr %529, ptr %526, i64 %530, ptr %531)
  br label %1363

533:
  %534 = getelementptr inbounds nuw i8, ptr %487, i64 112
  %535 = load ptr, ptr %534, align 8
  %536 = getelementptr inbounds nuw i8, ptr %487, i64 104
  %537 = load i64, ptr %536, align 8
  %538 = icmp eq i64 %537, 0
  br i1 %538, label %566, label %543

539:
  %540 = add nuw i64 %544, 1
  %541 = load i64, ptr %536, align 8
  %542 = icmp ult i64 %540, %541
  br i1 %542, label %543, label %566

543:
  %544 = phi i64 [ %540, %539 ], [ 0, %533 ]
  %545 = getelementptr inbounds nuw %struct.GlobalCheck, ptr %535, i64 %544
  %546 = load ptr, ptr %545, align 8
  %547 = icmp eq ptr %546, null
  br i1 %547, label %552, label %548

548:
  %549 = getelementptr inbounds nuw i8, ptr %545, i64 16
  %550 = load ptr, ptr %549, align 8
  %551 = call ptr @PyDict_GetItemWithError(ptr %546, ptr %550)
  br label %557

552:
  %553 = getelementptr inbounds nuw i8, ptr %545, i64 8
  %554 = load ptr, ptr %553, align 8
  %555 = getelementptr inbounds nuw i8, ptr %545, i64 16
  %556 = call ptr @PyObject_Vectorcall(ptr %554, ptr %555, i64 1, ptr null)
  call void @Py_DecRef(ptr %556)
  br label %557

557:
  %558 = phi ptr [ %551, %548 ], [ %556, %552 ]
  %559 = getelementptr inbounds nuw i8, ptr %545, i64 24
  %560 = load ptr, ptr %559, align 8
  %561 = icmp eq ptr %558, %560
  br i1 %561, label %539, label %562

562:
  call void @PyErr_Clear()
  %563 = getelementptr inbounds nuw i8, ptr %487, i64 208
  %564 = load i64, ptr %563, align 8
  %565 = call fastcc ptr @launch_new(ptr %19, i64 %564)
  br label %1363

566:
  %567 = getelementptr inbounds nuw i8, ptr %487, i64 96
  %568 = load ptr, ptr %567, align 8
  %569 = icmp eq ptr %568, null
  br i1 %569, label %570, label %573

570:
  %571 = load ptr, ptr %23, align 8
  %572 = load ptr, ptr %571, align 8
  br label %573

573:
  %574 = phi ptr [ %572, %570 ], [ %568, %566 ]
  %575 = call fastcc zeroext i1 @read_grid(ptr %19, ptr %574)
  br i1 %575, label %922, label %576

576:
  store ptr %574, ptr %14, align 8
  %577 = load ptr, ptr %19, align 8
  %578 = load i64, ptr @object_bytes, align 8
  %579 = getelementptr inbounds i8, ptr %574, i64 %578
  %580 = getelementptr inbounds i8, ptr %579, i64 -8
  %581 = load ptr, ptr %580, align 8
  %582 = load ptr, ptr %22, align 8
  %583 = getelementptr inbounds nuw i8, ptr %582, i64 32
  %584 = load ptr, ptr %583, align 8
  %585 = icmp eq ptr %581, %584
  br i1 %585, label %586, label %607

586:
  %587 = call ptr @PyFunction_GetCode(ptr %574)
  %588 = getelementptr inbounds nuw i8, ptr %577, i64 104
  %589 = load ptr, ptr %588, align 8
  %590 = load ptr, ptr %589, align 8
  %591 = icmp eq ptr %590, null
  br i1 %591, label %601, label %596

592:
  %593 = getelementptr inbounds nuw i8, ptr %598, i64 8
  %594 = load ptr, ptr %593, align 8
  %595 = icmp eq ptr %594, null
  br i1 %595, label %601, label %596

596:
  %597 = phi ptr [ %594, %592 ], [ %590, %586 ]
  %598 = phi ptr [ %593, %592 ], [ %589, %586 ]
  %599 = load ptr, ptr %597, align 8
  %600 = icmp eq ptr %599, %587
  br i1 %600, label %608, label %592

601:
  %602 = getelementptr inbounds nuw i8, ptr %577, i64 112
  %603 = load ptr, ptr %602, align 8
  %604 = icmp eq ptr %603, null
  br i1 %604, label %607, label %605

605:
  %606 = call ptr @PyObject_Vectorcall(ptr %603, ptr %14, i64 1, ptr null)
  call void @Py_DecRef(ptr %606)
  call void @PyErr_Clear()
  br label %607

607:
  br label %858

608:
  %609 = getelementptr inbounds nuw i8, ptr %597, i64 48
  %610 = load i64, ptr %609, align 8
  %611 = icmp eq i64 %610, 0
  br i1 %611, label %858, label %612

612:
  %613 = getelementptr inbounds nuw i8, ptr %597, i64 40
  %614 = load ptr, ptr %613, align 8
  %615 = getelementptr inbounds i8, ptr %15, i64 -8
  %616 = call ptr @PyFunction_GetGlobals(ptr %574)
  %617 = getelementptr inbounds nuw i8, ptr %597, i64 8
  %618 = load ptr, ptr %617, align 8
  %619 = icmp eq ptr %616, %618
  br i1 %619, label %620, label %858

620:
  %621 = getelementptr inbounds nuw i8, ptr %597, i64 24
  %622 = load ptr, ptr %621, align 8
  %623 = getelementptr inbounds nuw i8, ptr %597, i64 16
  %624 = load i64, ptr %623, align 8
  %625 = icmp eq i64 %624, 0
  br i1 %625, label %658, label %630

626:
  %627 = add nuw i64 %631, 1
  %628 = load i64, ptr %623, align 8
  %629 = icmp ult i64 %627, %628
  br i1 %629, label %630, label %658

630:
  %631 = phi i64 [ %627, %626 ], [ 0, %620 ]
  %632 = getelementptr inbounds nuw %struct.GridCheck, ptr %622, i64 %631
  %633 = load i64, ptr %632, align 8
  switch i64 %633, label %649 [
    i64 0, label %634
    i64 1, label %640
  ]

634:
  %635 = getelementptr inbounds nuw i8, ptr %632, i64 8
  %636 = load ptr, ptr %635, align 8
  %637 = getelementptr inbounds nuw i8, ptr %632, i64 16
  %638 = load ptr, ptr %637, align 8
  %639 = call ptr @PyDict_GetItemWithError(ptr %636, ptr %638)
  br label %653

640:
  %641 = getelementptr inbounds nuw i8, ptr %632, i64 16
  %642 = load ptr, ptr %641, align 8
  %643 = ptrtoint ptr %642 to i64
  %644 = call ptr @PyFunction_GetClosure(ptr %574)
  %645 = call ptr @PyTuple_GetItem(ptr %644, i64 %643)
  %646 = call ptr @PyCell_Get(ptr %645)
  %647 = icmp eq ptr %646, null
  br i1 %647, label %653, label %648

648:
  call void @Py_DecRef(ptr %646)
  br label %653

649:
  %650 = getelementptr inbounds nuw i8, ptr %632, i64 8
  %651 = load ptr, ptr %650, align 8
  %652 = call ptr @PyFunction_GetCode(ptr %651)
  br label %653

653:
  %654 = phi ptr [ %652, %649 ], [ %639, %634 ], [ null, %640 ], [ %646, %648 ]
  %655 = getelementptr inbounds nuw i8, ptr %632, i64 24
  %656 = load ptr, ptr %655, align 8
  %657 = icmp eq ptr %654, %656
  br i1 %657, label %626, label %858

658:
  %659 = getelementptr inbounds nuw i8, ptr %597, i64 32
  %660 = load i64, ptr %659, align 8
  %661 = icmp eq i64 %660, 0
  br i1 %661, label %840, label %662

662:
  %663 = getelementptr inbounds nuw i8, ptr %487, i64 152
  %664 = getelementptr inbounds nuw i8, ptr %487, i64 184
  br label %665

665:
  %666 = phi i64 [ undef, %662 ], [ %835, %834 ]
  %667 = phi i64 [ 0, %662 ], [ %837, %834 ]
  %668 = phi ptr [ %615, %662 ], [ %836, %834 ]
  %669 = getelementptr inbounds nuw %struct.GridStep, ptr %614, i64 %667
  %670 = load i64, ptr %669, align 8
  switch i64 %670, label %772 [
    i64 0, label %671
    i64 1, label %676
    i64 2, label %714
    i64 3, label %736
    i64 4, label %756
  ]

671:
  %672 = getelementptr inbounds nuw i8, ptr %669, i64 16
  %673 = load ptr, ptr %672, align 8
  %674 = ptrtoint ptr %673 to i64
  %675 = getelementptr inbounds nuw i8, ptr %668, i64 8
  store i64 %674, ptr %675, align 8
  br label %834

676:
  %677 = getelementptr inbounds nuw i8, ptr %669, i64 16
  %678 = load ptr, ptr %677, align 8
  %679 = load ptr, ptr %663, align 8
  %680 = load i64, ptr %33, align 8
  %681 = icmp eq i64 %680, 0
  br i1 %681, label %695, label %682

682:
  %683 = phi i64 [ %693, %692 ], [ 0, %676 ]
  %684 = getelementptr inbounds nuw ptr, ptr %679, i64 %683
  %685 = load ptr, ptr %684, align 8
  %686 = icmp eq ptr %685, %678
  br i1 %686, label %687, label %692

687:
  %688 = load ptr, ptr %23, align 8
  %689 = getelementptr ptr, ptr %688, i64 %683
  %690 = getelementptr i8, ptr %689, i64 8
  %691 = load ptr, ptr %690, align 8
  br label %698

692:
  %693 = add nuw i64 %683, 1
  %694 = icmp eq i64 %693, %680
  br i1 %694, label %695, label %682

695:
  %696 = load ptr, ptr %664, align 8
  %697 = call ptr @PyDict_GetItemWithError(ptr %696, ptr %678)
  br label %698

698:
  %699 = phi ptr [ %697, %695 ], [ %691, %687 ]
  %700 = getelementptr inbounds nuw i8, ptr %668, i64 8
  %701 = icmp eq ptr %699, null
  br i1 %701, label %709, label %702

702:
  %703 = getelementptr inbounds i8, ptr %699, i64 %578
  %704 = getelementptr inbounds i8, ptr %703, i64 -8
  %705 = load ptr, ptr %704, align 8
  %706 = load ptr, ptr %22, align 8
  %707 = load ptr, ptr %706, align 8
  %708 = icmp eq ptr %705, %707
  br i1 %708, label %710, label %709

709:
  br label %858

710:
  %711 = call i64 @PyLong_AsLongLongAndOverflow(ptr %699, ptr %13)
  store i64 %711, ptr %700, align 8
  %712 = load i32, ptr %13, align 4
  %713 = icmp eq i32 %712, 0
  br i1 %713, label %834, label %858

714:
  %715 = getelementptr inbounds nuw i8, ptr %669, i64 16
  %716 = load ptr, ptr %715, align 8
  %717 = ptrtoint ptr %716 to i64
  %718 = call ptr @PyFunction_GetClosure(ptr %574)
  %719 = call ptr @PyTuple_GetItem(ptr %718, i64 %717)
  %720 = call ptr @PyCell_Get(ptr %719)
  %721 = icmp eq ptr %720, null
  br i1 %721, label %722, label %723

722:
  br label %730

723:
  call void @Py_DecRef(ptr %720)
  %724 = getelementptr inbounds i8, ptr %720, i64 %578
  %725 = getelementptr inbounds i8, ptr %724, i64 -8
  %726 = load ptr, ptr %725, align 8
  %727 = load ptr, ptr %22, align 8
  %728 = load ptr, ptr %727, align 8
  %729 = icmp eq ptr %726, %728
  br i1 %729, label %731, label %730

730:
  br label %858

731:
  %732 = getelementptr inbounds nuw i8, ptr %668, i64 8
  %733 = call i64 @PyLong_AsLongLongAndOverflow(ptr %720, ptr %12)
  store i64 %733, ptr %732, align 8
  %734 = load i32, ptr %12, align 4
  %735 = icmp eq i32 %734, 0
  br i1 %735, label %834, label %858

736:
  %737 = getelementptr inbounds nuw i8, ptr %669, i64 8
  %738 = load ptr, ptr %737, align 8
  %739 = getelementptr inbounds nuw i8, ptr %669, i64 16
  %740 = load ptr, ptr %739, align 8
  %741 = call ptr @PyDict_GetItemWithError(ptr %738, ptr %740)
  %742 = getelementptr inbounds nuw i8, ptr %668, i64 8
  %743 = icmp eq ptr %741, null
  br i1 %743, label %751, label %744

744:
  %745 = getelementptr inbounds i8, ptr %741, i64 %578
  %746 = getelementptr inbounds i8, ptr %745, i64 -8
  %747 = load ptr, ptr %746, align 8
  %748 = load ptr, ptr %22, align 8
  %749 = load ptr, ptr %748, align 8
  %750 = icmp eq ptr %747, %749
  br i1 %750, label %752, label %751

751:
  br label %858

752:
  %753 = call i64 @PyLong_AsLongLongAndOverflow(ptr %741, ptr %11)
  store i64 %753, ptr %742, align 8
  %754 = load i32, ptr %11, align 4
  %755 = icmp eq i32 %754, 0
  br i1 %755, label %834, label %858

756:
  %757 = icmp slt i64 %666, 4611686018427387905
  br i1 %757, label %758, label %858

758:
  %759 = add i64 %666, -1
  br label %764

760:
  %761 = add i64 %769, 1
  %762 = icmp sgt i64 %666, 0
  %763 = select i1 %762, i64 %761, i64 0
  store i64 %763, ptr %668, align 8
  br label %834

764:
  %765 = phi i32 [ 1, %758 ], [ %770, %764 ]
  %766 = phi i64 [ %759, %758 ], [ %769, %764 ]
  %767 = zext nneg i32 %765 to i64
  %768 = lshr i64 %766, %767
  %769 = or i64 %768, %766
  %770 = shl i32 %765, 1
  %771 = icmp slt i32 %770, 64
  br i1 %771, label %764, label %760

772:
  %773 = getelementptr inbounds i8, ptr %668, i64 -8
  %774 = load i64, ptr %773, align 8
  switch i64 %670, label %828 [
    i64 5, label %830
    i64 6, label %775
    i64 7, label %779
    i64 8, label %783
    i64 9, label %795
    i64 10, label %806
    i64 11, label %826
  ]

775:
  %776 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %774, i64 %666)
  %777 = extractvalue { i64, i1 } %776, 1
  %778 = extractvalue { i64, i1 } %776, 0
  store i64 %778, ptr %773, align 8
  br i1 %777, label %858, label %834

779:
  %780 = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %774, i64 %666)
  %781 = extractvalue { i64, i1 } %780, 1
  %782 = extractvalue { i64, i1 } %780, 0
  store i64 %782, ptr %773, align 8
  br i1 %781, label %858, label %834

783:
  %784 = add i64 %666, -1
  %785 = icmp ult i64 %784, -2
  br i1 %785, label %786, label %858

786:
  %787 = srem i64 %774, %666
  %788 = icmp ne i64 %787, 0
  %789 = xor i64 %774, %666
  %790 = icmp slt i64 %789, 0
  %791 = and i1 %790, %788
  %792 = sdiv i64 %774, %666
  %793 = sext i1 %791 to i64
  %794 = add i64 %792, %793
  store i64 %794, ptr %773, align 8
  br label %834

795:
  %796 = add i64 %666, -1
  %797 = icmp ult i64 %796, -2
  br i1 %797, label %798, label %858

798:
  %799 = srem i64 %774, %666
  %800 = icmp ne i64 %799, 0
  %801 = xor i64 %774, %666
  %802 = icmp slt i64 %801, 0
  %803 = and i1 %802, %800
  %804 = select i1 %803, i64 %666, i64 0
  %805 = add i64 %804, %799
  store i64 %805, ptr %773, align 8
  br label %834

806:
  %807 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %774, i64 %666)
  %808 = extractvalue { i64, i1 } %807, 1
  br i1 %808, label %858, label %809

809:
  %810 = extractvalue { i64, i1 } %807, 0
  %811 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %810, i64 -1)
  %812 = extractvalue { i64, i1 } %811, 1
  %813 = add i64 %666, 1
  %814 = icmp ult i64 %813, 2
  %815 = or i1 %814, %812
  br i1 %815, label %858, label %816

816:
  %817 = extractvalue { i64, i1 } %811, 0
  %818 = srem i64 %817, %666
  %819 = icmp ne i64 %818, 0
  %820 = xor i64 %817, %666
  %821 = icmp slt i64 %820, 0
  %822 = and i1 %821, %819
  %823 = sdiv i64 %817, %666
  %824 = sext i1 %822 to i64
  %825 = add i64 %823, %824
  store i64 %825, ptr %773, align 8
  br label %834

826:
  %827 = call i64 @llvm.smin.i64(i64 %774, i64 %666)
  store i64 %827, ptr %773, align 8
  br label %834

828:
  %829 = call i64 @llvm.smax.i64(i64 %774, i64 %666)
  store i64 %829, ptr %773, align 8
  br label %834

830:
  %831 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %774, i64 %666)
  %832 = extractvalue { i64, i1 } %831, 1
  %833 = extractvalue { i64, i1 } %831, 0
  store i64 %833, ptr %773, align 8
  br i1 %832, label %858, label %834

834:
  %835 = phi i64 [ %711, %710 ], [ %833, %830 ], [ %782, %779 ], [ %778, %775 ], [ %753, %752 ], [ %733, %731 ], [ %829, %828 ], [ %827, %826 ], [ %825, %816 ], [ %805, %798 ], [ %794, %786 ], [ %674, %671 ], [ %763, %760 ]
  %836 = phi ptr [ %700, %710 ], [ %773, %830 ], [ %773, %779 ], [ %773, %775 ], [ %742, %752 ], [ %732, %731 ], [ %773, %828 ], [ %773, %826 ], [ %773, %816 ], [ %773, %798 ], [ %773, %786 ], [ %675, %671 ], [ %668, %760 ]
  %837 = add nuw i64 %667, 1
  %838 = load i64, ptr %659, align 8
  %839 = icmp ult i64 %837, %838
  br i1 %839, label %665, label %840

840:
  %841 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %842 = getelementptr inbounds nuw i8, ptr %19, i64 2656
  store i32 1, ptr %842, align 8
  %843 = getelementptr inbounds nuw i8, ptr %19, i64 2652
  store i32 1, ptr %843, align 4
  %844 = load i64, ptr %609, align 8
  %845 = icmp eq i64 %844, 0
  br i1 %845, label %857, label %846

846:
  %847 = phi i64 [ %854, %851 ], [ 0, %840 ]
  %848 = getelementptr inbounds nuw i64, ptr %15, i64 %847
  %849 = load i64, ptr %848, align 8
  %850 = icmp ult i64 %849, 2147483648
  br i1 %850, label %851, label %858

851:
  %852 = trunc nuw nsw i64 %849 to i32
  %853 = getelementptr inbounds nuw i32, ptr %841, i64 %847
  store i32 %852, ptr %853, align 4
  %854 = add nuw i64 %847, 1
  %855 = load i64, ptr %609, align 8
  %856 = icmp ult i64 %854, %855
  br i1 %856, label %846, label %857

857:
  br label %922

858:
  %859 = call i32 @PyCallable_Check(ptr %574)
  %860 = icmp eq i32 %859, 0
  br i1 %860, label %861, label %869

861:
  %862 = load ptr, ptr %23, align 8
  %863 = load ptr, ptr %19, align 8
  %864 = getelementptr inbounds nuw i8, ptr %863, i64 16
  %865 = load ptr, ptr %864, align 8
  %866 = load i64, ptr %24, align 8
  %867 = load ptr, ptr %25, align 8
  %868 = call ptr @PyObject_Vectorcall(ptr %865, ptr %862, i64 %866, ptr %867)
  br label %1363

869:
  %870 = getelementptr inbounds nuw i8, ptr %487, i64 184
  %871 = load ptr, ptr %870, align 8
  %872 = call ptr @PyDict_Copy(ptr %871)
  store ptr %872, ptr %10, align 8
  %873 = getelementptr inbounds nuw i8, ptr %487, i64 152
  %874 = load ptr, ptr %873, align 8
  %875 = load i64, ptr %33, align 8
  %876 = icmp eq i64 %875, 0
  br i1 %876, label %888, label %877

877:
  %878 = phi i64 [ %882, %877 ], [ 0, %869 ]
  %879 = getelementptr inbounds nuw ptr, ptr %874, i64 %878
  %880 = load ptr, ptr %879, align 8
  %881 = load ptr, ptr %23, align 8
  %882 = add nuw i64 %878, 1
  %883 = getelementptr inbounds nuw ptr, ptr %881, i64 %882
  %884 = load ptr, ptr %883, align 8
  %885 = call i32 @PyDict_SetItem(ptr %872, ptr %880, ptr %884)
  %886 = load i64, ptr %33, align 8
  %887 = icmp ult i64 %882, %886
  br i1 %887, label %877, label %888

888:
  %889 = call ptr @PyObject_Vectorcall(ptr %574, ptr %10, i64 1, ptr null)
  %890 = load ptr, ptr %10, align 8
  call void @Py_DecRef(ptr %890)
  %891 = icmp eq ptr %889, null
  br i1 %891, label %892, label %908

892:
  call void @PyErr_Fetch(ptr %7, ptr %8, ptr %9)
  %893 = load ptr, ptr %7, align 8
  %894 = load ptr, ptr %8, align 8
  %895 = load ptr, ptr %9, align 8
  call void @PyErr_Restore(ptr %893, ptr %894, ptr %895)
  %896 = load ptr, ptr %9, align 8
  %897 = icmp eq ptr %896, null
  br i1 %897, label %900, label %898

898:
  %899 = load ptr, ptr %22, align 8
  call fastcc void @strip_traceback(ptr %899)
  br label %1363

900:
  call void @PyErr_Clear()
  %901 = load ptr, ptr %23, align 8
  %902 = load ptr, ptr %19, align 8
  %903 = getelementptr inbounds nuw i8, ptr %902, i64 16
  %904 = load ptr, ptr %903, align 8
  %905 = load i64, ptr %24, align 8
  %906 = load ptr, ptr %25, align 8
  %907 = call ptr @PyObject_Vectorcall(ptr %904, ptr %901, i64 %905, ptr %906)
  br label %1363

908:
  %909 = call fastcc zeroext i1 @read_grid(ptr %19, ptr %889)
  br i1 %909, label %922, label %910

910:
  %911 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  %912 = load ptr, ptr %23, align 8
  %913 = load i64, ptr %33, align 8
  %914 = shl i64 %913, 3
  %915 = add i64 %914, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %911, ptr align 8 %912, i64 %915, i1 false)
  store ptr %889, ptr %911, align 8
  %916 = load ptr, ptr %19, align 8
  %917 = getelementptr inbounds nuw i8, ptr %916, i64 16
  %918 = load ptr, ptr %917, align 8
  %919 = load i64, ptr %24, align 8
  %920 = load ptr, ptr %25, align 8
  %921 = call ptr @PyObject_Vectorcall(ptr %918, ptr %911, i64 %919, ptr %920)
  call void @Py_DecRef(ptr %889)
  br label %1363

922:
  %923 = phi ptr [ null, %573 ], [ null, %857 ], [ %889, %908 ]
  %924 = load ptr, ptr %19, align 8
  %925 = getelementptr inbounds nuw i8, ptr %924, i64 88
  %926 = load ptr, ptr %925, align 8
  %927 = load i64, ptr %926, align 8
  %928 = icmp eq i64 %927, 0
  br i1 %928, label %1155, label %929

929:
  %930 = getelementptr inbounds nuw i8, ptr %487, i64 168
  %931 = load ptr, ptr %930, align 8
  %932 = getelementptr inbounds nuw i8, ptr %487, i64 160
  %933 = load i64, ptr %932, align 8
  %934 = icmp eq i64 %933, 0
  br i1 %934, label %1155, label %935

935:
  %936 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  %937 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %938 = load i64, ptr @object_bytes, align 8
  br label %939

939:
  %940 = phi i64 [ 0, %935 ], [ %1127, %1126 ]
  %941 = getelementptr inbounds nuw %struct.OverlapPair, ptr %931, i64 %940
  %942 = load i64, ptr %941, align 8
  %943 = getelementptr inbounds nuw i64, ptr %936, i64 %942
  %944 = load i64, ptr %943, align 8
  %945 = getelementptr inbounds nuw i8, ptr %941, i64 8
  %946 = load i64, ptr %945, align 8
  %947 = getelementptr inbounds nuw i64, ptr %936, i64 %946
  %948 = load i64, ptr %947, align 8
  %949 = icmp eq i64 %944, %948
  br i1 %949, label %950, label %998

950:
  %951 = getelementptr inbounds nuw i8, ptr %941, i64 32
  %952 = load i64, ptr %951, align 8
  %953 = icmp eq i64 %952, 0
  br i1 %953, label %1090, label %954

954:
  %955 = getelementptr inbounds nuw i8, ptr %941, i64 40
  %956 = load ptr, ptr %955, align 8
  br label %961

957:
  %958 = phi ptr [ %982, %967 ], [ %964, %961 ]
  %959 = add nuw i64 %962, 1
  %960 = icmp eq i64 %959, %952
  br i1 %960, label %1126, label %961

961:
  %962 = phi i64 [ 0, %954 ], [ %959, %957 ]
  %963 = phi ptr [ %956, %954 ], [ %958, %957 ]
  %964 = getelementptr inbounds nuw i8, ptr %963, i64 8
  %965 = load i64, ptr %963, align 8
  %966 = icmp eq i64 %965, 0
  br i1 %966, label %957, label %969

967:
  %968 = icmp eq i64 %984, 0
  br i1 %968, label %957, label %1090

969:
  %970 = phi i64 [ %985, %981 ], [ %965, %961 ]
  %971 = phi i64 [ %984, %981 ], [ 0, %961 ]
  %972 = phi ptr [ %982, %981 ], [ %964, %961 ]
  %973 = getelementptr inbounds nuw i8, ptr %972, i64 8
  %974 = load i64, ptr %972, align 8
  %975 = getelementptr i8, ptr %972, i64 16
  %976 = load i64, ptr %973, align 8
  %977 = icmp eq i64 %976, 0
  br i1 %977, label %981, label %987

978:
  %979 = shl i64 %976, 3
  %980 = getelementptr i8, ptr %975, i64 %979
  br label %981

981:
  %982 = phi ptr [ %975, %969 ], [ %980, %978 ]
  %983 = phi i64 [ %974, %969 ], [ %995, %978 ]
  %984 = add i64 %983, %971
  %985 = add i64 %970, -1
  %986 = icmp eq i64 %985, 0
  br i1 %986, label %967, label %969

987:
  %988 = phi i64 [ %996, %987 ], [ %976, %969 ]
  %989 = phi i64 [ %995, %987 ], [ %974, %969 ]
  %990 = phi ptr [ %991, %987 ], [ %975, %969 ]
  %991 = getelementptr inbounds nuw i8, ptr %990, i64 8
  %992 = load i64, ptr %990, align 8
  %993 = getelementptr inbounds nuw i64, ptr %936, i64 %992
  %994 = load i64, ptr %993, align 8
  %995 = mul i64 %994, %989
  %996 = add i64 %988, -1
  %997 = icmp eq i64 %996, 0
  br i1 %997, label %978, label %987

998:
  %999 = icmp ult i64 %944, %948
  br i1 %999, label %1000, label %1045

1000:
  %1001 = sub nuw i64 %948, %944
  %1002 = getelementptr inbounds nuw i8, ptr %941, i64 16
  %1003 = load i64, ptr %1002, align 8
  %1004 = call fastcc i64 @extent(ptr %19, i64 %942, i64 %1003)
  %1005 = icmp ult i64 %1001, %1004
  br i1 %1005, label %1090, label %1006

1006:
  %1007 = load i64, ptr %945, align 8
  %1008 = getelementptr inbounds nuw ptr, ptr %937, i64 %1007
  %1009 = load ptr, ptr %1008, align 8
  %1010 = getelementptr inbounds i8, ptr %1009, i64 %938
  %1011 = getelementptr inbounds i8, ptr %1010, i64 -8
  %1012 = load ptr, ptr %1011, align 8
  %1013 = load ptr, ptr %22, align 8
  %1014 = getelementptr inbounds nuw i8, ptr %1013, i64 160
  %1015 = load ptr, ptr %1014, align 8
  %1016 = icmp eq ptr %1012, %1015
  br i1 %1016, label %1017, label %1126

1017:
  %1018 = getelementptr inbounds nuw i8, ptr %1010, i64 24
  %1019 = getelementptr inbounds nuw i8, ptr %1010, i64 8
  %1020 = load i32, ptr %1019, align 8
  %1021 = icmp sgt i32 %1020, 0
  br i1 %1021, label %1022, label %1126

1022:
  %1023 = getelementptr inbounds nuw i8, ptr %1010, i64 16
  %1024 = load ptr, ptr %1023, align 8
  %1025 = zext nneg i32 %1020 to i64
  br label %1026

1026:
  %1027 = phi i64 [ 0, %1022 ], [ %1041, %1037 ]
  %1028 = phi i64 [ 1, %1022 ], [ %1040, %1037 ]
  %1029 = getelementptr inbounds nuw i64, ptr %1024, i64 %1027
  %1030 = load i64, ptr %1029, align 8
  %1031 = icmp eq i64 %1030, 0
  br i1 %1031, label %1126, label %1032

1032:
  %1033 = load ptr, ptr %1018, align 8
  %1034 = getelementptr inbounds nuw i64, ptr %1033, i64 %1027
  %1035 = load i64, ptr %1034, align 8
  %1036 = icmp slt i64 %1035, 0
  br i1 %1036, label %1090, label %1037

1037:
  %1038 = add i64 %1030, -1
  %1039 = mul i64 %1035, %1038
  %1040 = add i64 %1039, %1028
  %1041 = add nuw nsw i64 %1027, 1
  %1042 = icmp eq i64 %1041, %1025
  br i1 %1042, label %1043, label %1026

1043:
  %1044 = icmp eq i64 %1040, -1
  br i1 %1044, label %1090, label %1126

1045:
  %1046 = sub nuw i64 %944, %948
  %1047 = getelementptr inbounds nuw i8, ptr %941, i64 24
  %1048 = load i64, ptr %1047, align 8
  %1049 = call fastcc i64 @extent(ptr %19, i64 %946, i64 %1048)
  %1050 = icmp ult i64 %1046, %1049
  br i1 %1050, label %1090, label %1051

1051:
  %1052 = load i64, ptr %941, align 8
  %1053 = getelementptr inbounds nuw ptr, ptr %937, i64 %1052
  %1054 = load ptr, ptr %1053, align 8
  %1055 = getelementptr inbounds i8, ptr %1054, i64 %938
  %1056 = getelementptr inbounds i8, ptr %1055, i64 -8
  %1057 = load ptr, ptr %1056, align 8
  %1058 = load ptr, ptr %22, align 8
  %1059 = getelementptr inbounds nuw i8, ptr %1058, i64 160
  %1060 = load ptr, ptr %1059, align 8
  %1061 = icmp eq ptr %1057, %1060
  br i1 %1061, label %1062, label %1126

1062:
  %1063 = getelementptr inbounds nuw i8, ptr %1055, i64 24
  %1064 = getelementptr inbounds nuw i8, ptr %1055, i64 8
  %1065 = load i32, ptr %1064, align 8
  %1066 = icmp sgt i32 %1065, 0
  br i1 %1066, label %1067, label %1126

1067:
  %1068 = getelementptr inbounds nuw i8, ptr %1055, i64 16
  %1069 = load ptr, ptr %1068, align 8
  %1070 = zext nneg i32 %1065 to i64
  br label %1071

1071:
  %1072 = phi i64 [ 0, %1067 ], [ %1086, %1082 ]
  %1073 = phi i64 [ 1, %1067 ], [ %1085, %1082 ]
  %1074 = getelementptr inbounds nuw i64, ptr %1069, i64 %1072
  %1075 = load i64, ptr %1074, align 8
  %1076 = icmp eq i64 %1075, 0
  br i1 %1076, label %1126, label %1077

1077:
  %1078 = load ptr, ptr %1063, align 8
  %1079 = getelementptr inbounds nuw i64, ptr %1078, i64 %1072
  %1080 = load i64, ptr %1079, align 8
  %1081 = icmp slt i64 %1080, 0
  br i1 %1081, label %1090, label %1082

1082:
  %1083 = add i64 %1075, -1
  %1084 = mul i64 %1080, %1083
  %1085 = add i64 %1084, %1073
  %1086 = add nuw nsw i64 %1072, 1
  %1087 = icmp eq i64 %1086, %1070
  br i1 %1087, label %1088, label %1071

1088:
  %1089 = icmp eq i64 %1085, -1
  br i1 %1089, label %1090, label %1126

1090:
  %1091 = getelementptr inbounds nuw i8, ptr %487, i64 176
  %1092 = load ptr, ptr %1091, align 8
  %1093 = getelementptr inbounds nuw i8, ptr %1092, i64 24
  %1094 = load i64, ptr %1093, align 8
  store i64 %927, ptr %1093, align 8
  %1095 = xor i64 %1094, %927
  %1096 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  br label %1102

1097:
  %1098 = load i64, ptr %41, align 8
  %1099 = icmp eq i64 %1098, 0
  br i1 %1099, label %1130, label %1100

1100:
  %1101 = getelementptr inbounds nuw i8, ptr %1092, i64 32
  br label %1114

1102:
  %1103 = phi i64 [ 0, %1090 ], [ %1112, %1102 ]
  %1104 = phi i64 [ %1095, %1090 ], [ %1111, %1102 ]
  %1105 = getelementptr inbounds nuw i64, ptr %1092, i64 %1103
  %1106 = getelementptr inbounds nuw i32, ptr %1096, i64 %1103
  %1107 = load i32, ptr %1106, align 4
  %1108 = sext i32 %1107 to i64
  %1109 = load i64, ptr %1105, align 8
  store i64 %1108, ptr %1105, align 8
  %1110 = xor i64 %1109, %1108
  %1111 = or i64 %1110, %1104
  %1112 = add nuw nsw i64 %1103, 1
  %1113 = icmp eq i64 %1112, 3
  br i1 %1113, label %1097, label %1102

1114:
  %1115 = phi i64 [ 0, %1100 ], [ %1123, %1114 ]
  %1116 = phi i64 [ %1111, %1100 ], [ %1122, %1114 ]
  %1117 = getelementptr inbounds nuw i64, ptr %1101, i64 %1115
  %1118 = getelementptr inbounds nuw i64, ptr %936, i64 %1115
  %1119 = load i64, ptr %1118, align 8
  %1120 = load i64, ptr %1117, align 8
  store i64 %1119, ptr %1117, align 8
  %1121 = xor i64 %1120, %1119
  %1122 = or i64 %1121, %1116
  %1123 = add nuw i64 %1115, 1
  %1124 = load i64, ptr %41, align 8
  %1125 = icmp ult i64 %1123, %1124
  br i1 %1125, label %1114, label %1130

1126:
  %1127 = add nuw i64 %940, 1
  %1128 = load i64, ptr %932, align 8
  %1129 = icmp ult i64 %1127, %1128
  br i1 %1129, label %939, label %1155

1130:
  %1131 = phi i64 [ %1111, %1097 ], [ %1122, %1114 ]
  %1132 = icmp eq i64 %1131, 0
  br i1 %1132, label %1155, label %1133

1133:
  %1134 = icmp eq ptr %923, null
  br i1 %1134, label %1147, label %1135

1135:
  %1136 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  %1137 = load ptr, ptr %23, align 8
  %1138 = load i64, ptr %33, align 8
  %1139 = shl i64 %1138, 3
  %1140 = add i64 %1139, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %1136, ptr align 8 %1137, i64 %1140, i1 false)
  store ptr %923, ptr %1136, align 8
  %1141 = load ptr, ptr %19, align 8
  %1142 = getelementptr inbounds nuw i8, ptr %1141, i64 16
  %1143 = load ptr, ptr %1142, align 8
  %1144 = load i64, ptr %24, align 8
  %1145 = load ptr, ptr %25, align 8
  %1146 = call ptr @PyObject_Vectorcall(ptr %1143, ptr %1136, i64 %1144, ptr %1145)
  call void @Py_DecRef(ptr %923)
  br label %1363

1147:
  %1148 = load ptr, ptr %23, align 8
  %1149 = load ptr, ptr %19, align 8
  %1150 = getelementptr inbounds nuw i8, ptr %1149, i64 16
  %1151 = load ptr, ptr %1150, align 8
  %1152 = load i64, ptr %24, align 8
  %1153 = load ptr, ptr %25, align 8
  %1154 = call ptr @PyObject_Vectorcall(ptr %1151, ptr %1148, i64 %1152, ptr %1153)
  br label %1363

1155:
  %1156 = getelementptr inbounds nuw i8, ptr %487, i64 216
  %1157 = load ptr, ptr %1156, align 8
  %1158 = icmp eq ptr %1157, null
  br i1 %1158, label %1162, label %1159

1159:
  %1160 = getelementptr inbounds nuw i8, ptr %487, i64 224
  %1161 = load i64, ptr %1160, align 8
  store i64 %1161, ptr %1157, align 8
  br label %1162

1162:
  %1163 = getelementptr inbounds nuw i8, ptr %487, i64 24
  %1164 = load ptr, ptr %1163, align 8
  %1165 = icmp eq ptr %1164, null
  %1166 = getelementptr inbounds nuw i8, ptr %19, i64 2664
  br i1 %1165, label %1269, label %1167

1167:
  %1168 = getelementptr inbounds nuw i8, ptr %487, i64 80
  %1169 = load ptr, ptr %1168, align 8
  %1170 = getelementptr inbounds nuw i8, ptr %487, i64 40
  %1171 = load ptr, ptr %1170, align 8
  %1172 = getelementptr inbounds nuw i8, ptr %487, i64 88
  %1173 = load ptr, ptr %1172, align 8
  %1174 = getelementptr inbounds nuw i8, ptr %487, i64 72
  %1175 = load i64, ptr %1174, align 8
  %1176 = icmp eq i64 %1175, 0
  br i1 %1176, label %1183, label %1177

1177:
  %1178 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1179 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %1180 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  br label %1200

1181:
  %1182 = load ptr, ptr %1163, align 8
  br label %1183

1183:
  %1184 = phi ptr [ %1182, %1181 ], [ %1164, %1167 ]
  %1185 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %1186 = getelementptr inbounds nuw i8, ptr %487, i64 32
  %1187 = load ptr, ptr %1186, align 8
  %1188 = load i32, ptr %1185, align 8
  %1189 = getelementptr inbounds nuw i8, ptr %19, i64 2652
  %1190 = load i32, ptr %1189, align 4
  %1191 = getelementptr inbounds nuw i8, ptr %19, i64 2656
  %1192 = load i32, ptr %1191, align 8
  %1193 = call i32 %1184(ptr %1187, i32 %1188, i32 %1190, i32 %1192, ptr %1166)
  %1194 = getelementptr inbounds nuw i8, ptr %487, i64 56
  %1195 = load ptr, ptr %1194, align 8
  %1196 = call i64 @PyList_Size(ptr %1195)
  %1197 = icmp eq i64 %1196, 0
  %1198 = icmp eq i32 %1193, 0
  %1199 = select i1 %1197, i1 %1198, i1 false
  br i1 %1199, label %1255, label %1262

1200:
  %1201 = phi i64 [ 0, %1177 ], [ %1252, %1249 ]
  %1202 = getelementptr inbounds nuw i64, ptr %1169, i64 %1201
  %1203 = load i64, ptr %1202, align 8
  %1204 = icmp ult i64 %1203, 64
  br i1 %1204, label %1205, label %1246

1205:
  %1206 = getelementptr inbounds nuw i64, ptr %1171, i64 %1201
  %1207 = load i64, ptr %1206, align 8
  switch i64 %1207, label %1243 [
    i64 1, label %1208
    i64 2, label %1221
    i64 3, label %1232
  ]

1208:
  %1209 = getelementptr inbounds nuw ptr, ptr %1178, i64 %1203
  %1210 = load ptr, ptr %1209, align 8
  %1211 = icmp eq ptr %1210, null
  br i1 %1211, label %1212, label %1215

1212:
  %1213 = getelementptr inbounds nuw ptr, ptr %1179, i64 %1203
  %1214 = load ptr, ptr %1213, align 8
  br label %1215

1215:
  %1216 = phi ptr [ %1214, %1212 ], [ %1210, %1208 ]
  %1217 = call double @PyFloat_AsDouble(ptr %1216)
  %1218 = fptrunc double %1217 to float
  %1219 = bitcast float %1218 to i32
  %1220 = zext i32 %1219 to i64
  br label %1249

1221:
  %1222 = getelementptr inbounds nuw ptr, ptr %1178, i64 %1203
  %1223 = load ptr, ptr %1222, align 8
  %1224 = icmp eq ptr %1223, null
  br i1 %1224, label %1225, label %1228

1225:
  %1226 = getelementptr inbounds nuw ptr, ptr %1179, i64 %1203
  %1227 = load ptr, ptr %1226, align 8
  br label %1228

1228:
  %1229 = phi ptr [ %1227, %1225 ], [ %1223, %1221 ]
  %1230 = call double @PyFloat_AsDouble(ptr %1229)
  %1231 = bitcast double %1230 to i64
  br label %1249

1232:
  %1233 = getelementptr inbounds nuw ptr, ptr %1178, i64 %1203
  %1234 = load ptr, ptr %1233, align 8
  %1235 = icmp eq ptr %1234, null
  br i1 %1235, label %1236, label %1239

1236:
  %1237 = getelementptr inbounds nuw ptr, ptr %1179, i64 %1203
  %1238 = load ptr, ptr %1237, align 8
  br label %1239

1239:
  %1240 = phi ptr [ %1238, %1236 ], [ %1234, %1232 ]
  %1241 = call i32 @PyObject_IsTrue(ptr %1240)
  %1242 = zext i32 %1241 to i64
  br label %1249

1243:
  %1244 = getelementptr inbounds nuw i64, ptr %1180, i64 %1203
  %1245 = load i64, ptr %1244, align 8
  br label %1249

1246:
  %1247 = getelementptr inbounds nuw i64, ptr %1173, i64 %1201
  %1248 = load i64, ptr %1247, align 8
  br label %1249

1249:
  %1250 = phi i64 [ %1248, %1246 ], [ %1245, %1243 ], [ %1220, %1215 ], [ %1231, %1228 ], [ %1242, %1239 ]
  %1251 = getelementptr inbounds nuw i64, ptr %1166, i64 %1201
  store i64 %1250, ptr %1251, align 8
  %1252 = add nuw i64 %1201, 1
  %1253 = load i64, ptr %1174, align 8
  %1254 = icmp ult i64 %1252, %1253
  br i1 %1254, label %1200, label %1181

1255:
  %1256 = load ptr, ptr %22, align 8
  %1257 = getelementptr inbounds nuw i8, ptr %1256, i64 48
  %1258 = load ptr, ptr %1257, align 8
  call void @Py_IncRef(ptr %1258)
  %1259 = load ptr, ptr %22, align 8
  %1260 = getelementptr inbounds nuw i8, ptr %1259, i64 48
  %1261 = load ptr, ptr %1260, align 8
  br label %1354

1262:
  %1263 = zext i32 %1193 to i64
  %1264 = call ptr @PyLong_FromUnsignedLongLong(i64 %1263)
  store ptr %1264, ptr %6, align 8
  %1265 = getelementptr inbounds nuw i8, ptr %487, i64 48
  %1266 = load ptr, ptr %1265, align 8
  %1267 = call ptr @PyObject_Vectorcall(ptr %1266, ptr %6, i64 1, ptr null)
  %1268 = load ptr, ptr %6, align 8
  call void @Py_DecRef(ptr %1268)
  br label %1354

1269:
  %1270 = getelementptr inbounds nuw i8, ptr %19, i64 2648
  %1271 = getelementptr inbounds nuw i8, ptr %19, i64 1088
  br label %1276

1272:
  %1273 = getelementptr inbounds nuw i8, ptr %487, i64 128
  %1274 = load ptr, ptr %1273, align 8
  %1275 = icmp eq ptr %1274, null
  br i1 %1275, label %1296, label %1289

1276:
  %1277 = phi i64 [ 0, %1269 ], [ %1287, %1276 ]
  %1278 = phi ptr [ %1166, %1269 ], [ %1283, %1276 ]
  %1279 = getelementptr inbounds nuw i32, ptr %1270, i64 %1277
  %1280 = load i32, ptr %1279, align 4
  %1281 = sext i32 %1280 to i64
  %1282 = call ptr @PyLong_FromLongLong(i64 %1281)
  %1283 = getelementptr inbounds nuw i8, ptr %1278, i64 8
  store ptr %1282, ptr %1278, align 8
  %1284 = load i64, ptr %40, align 8
  %1285 = add i64 %1284, 1
  store i64 %1285, ptr %40, align 8
  %1286 = getelementptr inbounds nuw ptr, ptr %1271, i64 %1284
  store ptr %1282, ptr %1286, align 8
  %1287 = add nuw nsw i64 %1277, 1
  %1288 = icmp eq i64 %1287, 3
  br i1 %1288, label %1272, label %1276

1289:
  %1290 = getelementptr inbounds nuw i8, ptr %487, i64 120
  %1291 = load ptr, ptr %1290, align 8
  store ptr %1291, ptr %5, align 8
  %1292 = call ptr @PyObject_Vectorcall(ptr %1274, ptr %5, i64 1, ptr null)
  %1293 = icmp eq ptr %1292, null
  br i1 %1293, label %1353, label %1294

1294:
  %1295 = getelementptr inbounds nuw i8, ptr %1278, i64 16
  store ptr %1292, ptr %1283, align 8
  br label %1296

1296:
  %1297 = phi ptr [ %1292, %1294 ], [ null, %1272 ]
  %1298 = phi ptr [ %1295, %1294 ], [ %1283, %1272 ]
  %1299 = getelementptr inbounds nuw i8, ptr %487, i64 80
  %1300 = load ptr, ptr %1299, align 8
  %1301 = getelementptr inbounds nuw i8, ptr %487, i64 72
  %1302 = load i64, ptr %1301, align 8
  %1303 = icmp eq i64 %1302, 0
  br i1 %1303, label %1309, label %1304

1304:
  %1305 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1306 = getelementptr inbounds nuw i8, ptr %19, i64 568
  %1307 = load i64, ptr @object_bytes, align 8
  %1308 = getelementptr inbounds nuw i8, ptr %19, i64 1624
  br label %1319

1309:
  %1310 = phi ptr [ %1298, %1296 ], [ %1348, %1346 ]
  %1311 = getelementptr inbounds nuw i8, ptr %487, i64 16
  %1312 = load ptr, ptr %1311, align 8
  %1313 = ptrtoint ptr %1310 to i64
  %1314 = ptrtoint ptr %1166 to i64
  %1315 = sub i64 %1313, %1314
  %1316 = ashr exact i64 %1315, 3
  %1317 = call ptr @PyObject_Vectorcall(ptr %1312, ptr %1166, i64 %1316, ptr null)
  %1318 = icmp eq ptr %1297, null
  br i1 %1318, label %1354, label %1352

1319:
  %1320 = phi i64 [ 0, %1304 ], [ %1349, %1346 ]
  %1321 = phi ptr [ %1298, %1304 ], [ %1348, %1346 ]
  %1322 = getelementptr inbounds nuw i64, ptr %1300, i64 %1320
  %1323 = load i64, ptr %1322, align 8
  %1324 = icmp ult i64 %1323, 64
  br i1 %1324, label %1325, label %1344

1325:
  %1326 = getelementptr inbounds nuw ptr, ptr %1305, i64 %1323
  %1327 = load ptr, ptr %1326, align 8
  %1328 = icmp eq ptr %1327, null
  br i1 %1328, label %1329, label %1346

1329:
  %1330 = getelementptr inbounds nuw ptr, ptr %1306, i64 %1323
  %1331 = load ptr, ptr %1330, align 8
  %1332 = getelementptr inbounds i8, ptr %1331, i64 %1307
  %1333 = getelementptr inbounds i8, ptr %1332, i64 -8
  %1334 = load ptr, ptr %1333, align 8
  %1335 = load ptr, ptr %22, align 8
  %1336 = load ptr, ptr %1335, align 8
  %1337 = icmp eq ptr %1334, %1336
  br i1 %1337, label %1346, label %1338

1338:
  %1339 = getelementptr inbounds nuw i64, ptr %1308, i64 %1323
  %1340 = load i64, ptr %1339, align 8
  %1341 = icmp eq i64 %1340, 0
  br i1 %1341, label %1346, label %1342

1342:
  %1343 = call ptr @PyLong_FromUnsignedLongLong(i64 %1340)
  store ptr %1343, ptr %1326, align 8
  br label %1346

1344:
  %1345 = inttoptr i64 %1323 to ptr
  br label %1346

1346:
  %1347 = phi ptr [ %1345, %1344 ], [ %1343, %1342 ], [ %1331, %1338 ], [ %1331, %1329 ], [ %1327, %1325 ]
  %1348 = getelementptr inbounds nuw i8, ptr %1321, i64 8
  store ptr %1347, ptr %1321, align 8
  %1349 = add nuw i64 %1320, 1
  %1350 = load i64, ptr %1301, align 8
  %1351 = icmp ult i64 %1349, %1350
  br i1 %1351, label %1319, label %1309

1352:
  call void @Py_DecRef(ptr %1297)
  br label %1354

1353:
  call void @Py_DecRef(ptr %923)
  br label %1357

1354:
  %1355 = phi ptr [ %1267, %1262 ], [ %1261, %1255 ], [ %1317, %1352 ], [ %1317, %1309 ]
  call void @Py_DecRef(ptr %923)
  %1356 = icmp eq ptr %1355, null
  br i1 %1356, label %1357, label %1359

1357:
  %1358 = load ptr, ptr %22, align 8
  call fastcc void @strip_traceback(ptr %1358)
  br label %1363

1359:
  call void @Py_DecRef(ptr %1355)
  %1360 = getelementptr inbounds nuw i8, ptr %487, i64 64
  %1361 = load ptr, ptr %1360, align 8
  call void @Py_IncRef(ptr %1361)
  %1362 = load ptr, ptr %1360, align 8
  br label %1363

1363:
  %1364 = phi ptr [ %532, %525 ], [ %565, %562 ], [ %868, %861 ], [ %1154, %1147 ], [ %921, %910 ], [ %907, %900 ], [ null, %898 ], [ %1146, %1135 ], [ %1362, %1359 ], [ null, %1357 ]
  call void @Py_DecRef(ptr %491)
  br label %1367

1365:
  %1366 = call fastcc ptr @launch_new(ptr %19, i64 %461)
  br label %1367

1367:
  %1368 = phi ptr [ %1364, %1363 ], [ %1366, %1365 ]
  %1369 = getelementptr inbounds nuw i8, ptr %19, i64 56
  %1370 = load i64, ptr %41, align 8
  %1371 = icmp eq i64 %1370, 0
  br i1 %1371, label %1381, label %1372

1372:
  %1373 = phi i64 [ %1379, %1378 ], [ 0, %1367 ]
  %1374 = getelementptr inbounds nuw ptr, ptr %1369, i64 %1373
  %1375 = load ptr, ptr %1374, align 8
  %1376 = icmp eq ptr %1375, null
  br i1 %1376, label %1378, label %1377

1377:
  call void @Py_DecRef(ptr %1375)
  br label %1378

1378:
  %1379 = add nuw i64 %1373, 1
  %1380 = icmp eq i64 %1379, %1370
  br i1 %1380, label %1381, label %1372

1381:
  %1382 = getelementptr inbounds nuw i8, ptr %19, i64 1088
  %1383 = load i64, ptr %40, align 8
  %1384 = icmp eq i64 %1383, 0
  br i1 %1384, label %1394, label %1385

1385:
  %1386 = phi i64 [ %1392, %1391 ], [ 0, %1381 ]
  %1387 = getelementptr inbounds nuw ptr, ptr %1382, i64 %1386
  %1388 = load ptr, ptr %1387, align 8
  %1389 = icmp eq ptr %1388, null
  br i1 %1389, label %1391, label %1390

1390:
  call void @Py_DecRef(ptr %1388)
  br label %1391

1391:
  %1392 = add nuw i64 %1386, 1
  %1393 = icmp eq i64 %1392, %1383
  br i1 %1393, label %1394, label %1385

1394:
  %1395 = phi ptr [ %434, %427 ], [ %1368, %1381 ], [ %1368, %1391 ]
  ret ptr %1395
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
