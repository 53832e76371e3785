; Generated from native_dispatch.c by scripts/compile_native.py.

%struct.DLTensor = type { i64, i32, i32, i32, i32, ptr, ptr, i64 }
%struct.Call = type { ptr, ptr, ptr, i64, ptr, i64, i64, [64 x ptr], [64 x ptr], i64, [64 x ptr], [64 x i64], [64 x i64], [72 x ptr], [65 x %struct.ArgumentDescriptor] }
%struct.ArgumentDescriptor = type { ptr, ptr, i64 }
%struct.GlobalCheck = type { ptr, ptr, ptr, ptr }
%struct.OverlapPair = type { i64, i64, i64, i64, i64, ptr }

@object_bytes = external constant i64, align 8

define ptr @tw_dispatch(ptr %0, ptr %1, i64 %2, ptr %3) nounwind {
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = alloca ptr, align 8
  %10 = alloca ptr, align 8
  %11 = alloca ptr, align 8
  %12 = alloca %struct.DLTensor, align 8
  %13 = alloca i32, align 4
  %14 = alloca %struct.Call, align 8
  %15 = call ptr @PyLong_AsVoidPtr(ptr %0)
  store ptr %15, ptr %14, align 8
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr inbounds nuw i8, ptr %14, i64 8
  store ptr %16, ptr %17, align 8
  %18 = getelementptr inbounds nuw i8, ptr %14, i64 16
  store ptr %1, ptr %18, align 8
  %19 = getelementptr inbounds nuw i8, ptr %14, i64 24
  store i64 %2, ptr %19, align 8
  %20 = getelementptr inbounds nuw i8, ptr %14, i64 32
  store ptr %3, ptr %20, align 8
  %21 = icmp eq ptr %3, null
  br i1 %21, label %24, label %22

22:
  %23 = call i64 @PyTuple_Size(ptr %3)
  br label %24

24:
  %25 = phi i64 [ %23, %22 ], [ 0, %4 ]
  %26 = add i64 %2, -1
  %27 = add i64 %25, %26
  %28 = getelementptr inbounds nuw i8, ptr %14, i64 40
  store i64 %27, ptr %28, align 8
  %29 = getelementptr inbounds nuw i8, ptr %15, i64 32
  %30 = load i64, ptr %29, align 8
  %31 = icmp ule i64 %26, %30
  %32 = icmp ult i64 %27, 65
  %33 = select i1 %31, i1 %32, i1 false
  br i1 %33, label %34, label %422

34:
  %35 = getelementptr inbounds nuw i8, ptr %14, i64 1080
  store i64 0, ptr %35, align 8
  %36 = getelementptr inbounds nuw i8, ptr %14, i64 48
  store i64 0, ptr %36, align 8
  %37 = icmp eq i64 %27, 0
  br i1 %37, label %454, label %38

38:
  %39 = load i64, ptr @object_bytes, align 8
  %40 = getelementptr inbounds nuw i8, ptr %14, i64 3200
  %41 = getelementptr inbounds nuw i8, ptr %14, i64 568
  %42 = getelementptr inbounds nuw i8, ptr %14, i64 56
  %43 = getelementptr inbounds nuw i8, ptr %14, i64 1600
  %44 = getelementptr inbounds nuw i8, ptr %12, i64 32
  %45 = getelementptr inbounds nuw i8, ptr %12, i64 24
  %46 = getelementptr inbounds nuw i8, ptr %12, i64 16
  %47 = getelementptr inbounds nuw i8, ptr %14, i64 1088
  br label %48

48:
  %49 = phi i64 [ 0, %38 ], [ %419, %418 ]
  %50 = load ptr, ptr %14, align 8
  %51 = load ptr, ptr %18, align 8
  %52 = getelementptr ptr, ptr %51, i64 %49
  %53 = getelementptr i8, ptr %52, i64 8
  %54 = load ptr, ptr %53, align 8
  %55 = load i64, ptr %19, align 8
  %56 = add i64 %55, -1
  %57 = icmp ult i64 %49, %56
  br i1 %57, label %58, label %63

58:
  %59 = getelementptr inbounds nuw i8, ptr %50, i64 40
  %60 = load ptr, ptr %59, align 8
  %61 = getelementptr inbounds nuw i64, ptr %60, i64 %49
  %62 = load i64, ptr %61, align 8
  br label %97

63:
  %64 = load ptr, ptr %20, align 8
  %65 = sub nuw i64 %49, %56
  %66 = call ptr @PyTuple_GetItem(ptr %64, i64 %65)
  %67 = getelementptr inbounds nuw i8, ptr %50, i64 48
  %68 = load ptr, ptr %67, align 8
  %69 = getelementptr inbounds nuw i8, ptr %50, i64 40
  %70 = load ptr, ptr %69, align 8
  %71 = getelementptr inbounds nuw i8, ptr %50, i64 32
  %72 = load i64, ptr %71, align 8
  %73 = icmp ult i64 %49, %72
  br i1 %73, label %77, label %74

74:
  %75 = call i64 @llvm.umin.i64(i64 %49, i64 %72)
  %76 = icmp eq i64 %75, 0
  br i1 %76, label %97, label %85

77:
  %78 = phi i64 [ %83, %82 ], [ %49, %63 ]
  %79 = getelementptr inbounds nuw ptr, ptr %68, i64 %78
  %80 = load ptr, ptr %79, align 8
  %81 = icmp eq ptr %80, %66
  br i1 %81, label %93, label %82

82:
  %83 = add i64 %78, 1
  %84 = icmp eq i64 %83, %72
  br i1 %84, label %74, label %77

85:
  %86 = phi i64 [ %91, %90 ], [ 0, %74 ]
  %87 = getelementptr inbounds nuw ptr, ptr %68, i64 %86
  %88 = load ptr, ptr %87, align 8
  %89 = icmp eq ptr %88, %66
  br i1 %89, label %93, label %90

90:
  %91 = add nuw i64 %86, 1
  %92 = icmp eq i64 %91, %75
  br i1 %92, label %97, label %85

93:
  %94 = phi i64 [ %86, %85 ], [ %78, %77 ]
  %95 = getelementptr inbounds nuw i64, ptr %70, i64 %94
  %96 = load i64, ptr %95, align 8
  br label %97

97:
  %98 = phi ptr [ null, %58 ], [ %66, %74 ], [ %66, %93 ], [ %66, %90 ]
  %99 = phi i64 [ %62, %58 ], [ 1, %74 ], [ %96, %93 ], [ 1, %90 ]
  %100 = getelementptr inbounds i8, ptr %54, i64 %39
  %101 = getelementptr inbounds i8, ptr %100, i64 -8
  %102 = load ptr, ptr %101, align 8
  %103 = load ptr, ptr %17, align 8
  %104 = getelementptr inbounds nuw i8, ptr %103, i64 128
  %105 = load ptr, ptr %104, align 8
  %106 = icmp eq ptr %102, %105
  %107 = and i64 %99, 1
  %108 = icmp eq i64 %107, 0
  %109 = select i1 %106, i1 %108, i1 false
  br i1 %109, label %110, label %198

110:
  %111 = getelementptr inbounds nuw i8, ptr %103, i64 96
  %112 = load ptr, ptr %111, align 8
  %113 = call ptr @PyObject_GetAttr(ptr %54, ptr %112)
  %114 = load ptr, ptr %17, align 8
  %115 = getelementptr inbounds nuw i8, ptr %114, i64 104
  %116 = load ptr, ptr %115, align 8
  %117 = call ptr @PyObject_GetAttr(ptr %54, ptr %116)
  %118 = load ptr, ptr %17, align 8
  %119 = getelementptr inbounds nuw i8, ptr %118, i64 112
  %120 = load ptr, ptr %119, align 8
  %121 = call ptr @PyObject_GetAttr(ptr %54, ptr %120)
  %122 = icmp ne ptr %113, null
  %123 = icmp ne ptr %117, null
  %124 = and i1 %122, %123
  %125 = icmp ne ptr %121, null
  %126 = and i1 %124, %125
  br i1 %126, label %127, label %196

127:
  %128 = call i64 @PySequence_Size(ptr %113)
  %129 = call i64 @PySequence_Size(ptr %117)
  %130 = icmp eq i64 %128, %129
  br i1 %130, label %131, label %196

131:
  %132 = call i64 @PySequence_Size(ptr %121)
  %133 = icmp eq i64 %128, %132
  %134 = add i64 %128, -1
  %135 = icmp ult i64 %134, 5
  %136 = and i1 %135, %133
  br i1 %136, label %137, label %196

137:
  %138 = load i64, ptr %36, align 8
  %139 = icmp ult i64 %138, 64
  br i1 %139, label %140, label %196

140:
  %141 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %138
  %142 = load ptr, ptr %101, align 8
  store ptr %98, ptr %141, align 8
  %143 = getelementptr inbounds nuw i8, ptr %141, i64 8
  store ptr %142, ptr %143, align 8
  %144 = getelementptr inbounds nuw i8, ptr %141, i64 16
  store i64 0, ptr %144, align 8
  %145 = getelementptr inbounds nuw ptr, ptr %41, i64 %138
  store ptr %54, ptr %145, align 8
  %146 = getelementptr inbounds nuw ptr, ptr %42, i64 %138
  store ptr null, ptr %146, align 8
  %147 = getelementptr inbounds nuw i64, ptr %43, i64 %138
  store i64 0, ptr %147, align 8
  %148 = load ptr, ptr %17, align 8
  %149 = getelementptr inbounds nuw i8, ptr %148, i64 120
  %150 = load ptr, ptr %149, align 8
  %151 = call ptr @PyObject_GetAttr(ptr %54, ptr %150)
  %152 = icmp eq ptr %151, null
  br i1 %152, label %196, label %153

153:
  %154 = ptrtoint ptr %151 to i64
  %155 = or i64 %128, %154
  %156 = load i64, ptr %36, align 8
  %157 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %14, i64 %156
  %158 = getelementptr inbounds nuw i8, ptr %157, i64 3216
  store i64 %155, ptr %158, align 8
  %159 = getelementptr inbounds nuw ptr, ptr %42, i64 %156
  store ptr %151, ptr %159, align 8
  %160 = add i64 %156, 1
  store i64 %160, ptr %36, align 8
  %161 = load ptr, ptr %17, align 8
  %162 = getelementptr inbounds nuw i8, ptr %161, i64 88
  %163 = load ptr, ptr %162, align 8
  %164 = call ptr @PyObject_GetAttr(ptr %54, ptr %163)
  %165 = icmp eq ptr %164, null
  br i1 %165, label %196, label %166

166:
  %167 = load i64, ptr %36, align 8
  %168 = icmp ult i64 %167, 64
  br i1 %168, label %169, label %180

169:
  %170 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %167
  %171 = getelementptr inbounds i8, ptr %164, i64 %39
  %172 = getelementptr inbounds i8, ptr %171, i64 -8
  %173 = load ptr, ptr %172, align 8
  store ptr null, ptr %170, align 8
  %174 = getelementptr inbounds nuw i8, ptr %170, i64 8
  store ptr %173, ptr %174, align 8
  %175 = getelementptr inbounds nuw i8, ptr %170, i64 16
  store i64 0, ptr %175, align 8
  %176 = getelementptr inbounds nuw ptr, ptr %41, i64 %167
  store ptr %164, ptr %176, align 8
  %177 = getelementptr inbounds nuw ptr, ptr %42, i64 %167
  store ptr null, ptr %177, align 8
  %178 = getelementptr inbounds nuw i64, ptr %43, i64 %167
  store i64 0, ptr %178, align 8
  %179 = call fastcc zeroext i1 @describe_array(ptr %14, ptr %164, i64 0)
  br i1 %179, label %181, label %180

180:
  call void @Py_DecRef(ptr %164)
  br label %196

181:
  %182 = load i64, ptr %36, align 8
  %183 = add i64 %182, 1
  store i64 %183, ptr %36, align 8
  %184 = load i64, ptr %35, align 8
  %185 = add i64 %184, 1
  store i64 %185, ptr %35, align 8
  %186 = getelementptr inbounds nuw ptr, ptr %47, i64 %184
  store ptr %164, ptr %186, align 8
  %187 = call fastcc zeroext i1 @describe_numbers(ptr %14, ptr %113, i64 0, i64 %134, i32 0)
  br i1 %187, label %188, label %196

188:
  %189 = call fastcc zeroext i1 @describe_numbers(ptr %14, ptr %113, i64 %134, i64 %128, i32 1)
  br i1 %189, label %190, label %196

190:
  %191 = call fastcc zeroext i1 @describe_numbers(ptr %14, ptr %117, i64 0, i64 %134, i32 2)
  br i1 %191, label %192, label %196

192:
  %193 = call fastcc zeroext i1 @describe_numbers(ptr %14, ptr %117, i64 %134, i64 %128, i32 3)
  br i1 %193, label %194, label %196

194:
  %195 = call fastcc zeroext i1 @describe_numbers(ptr %14, ptr %121, i64 0, i64 %128, i32 3)
  call void @Py_DecRef(ptr %113)
  call void @Py_DecRef(ptr %117)
  call void @Py_DecRef(ptr %121)
  br i1 %195, label %418, label %197

196:
  call void @Py_DecRef(ptr %113)
  call void @Py_DecRef(ptr %117)
  call void @Py_DecRef(ptr %121)
  br label %197

197:
  call void @PyErr_Clear()
  br label %392

198:
  %199 = load i64, ptr %36, align 8
  %200 = icmp ult i64 %199, 64
  br i1 %200, label %201, label %395

201:
  %202 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %199
  store ptr %98, ptr %202, align 8
  %203 = getelementptr inbounds nuw i8, ptr %202, i64 8
  store ptr %102, ptr %203, align 8
  %204 = getelementptr inbounds nuw i8, ptr %202, i64 16
  store i64 0, ptr %204, align 8
  %205 = getelementptr inbounds nuw ptr, ptr %41, i64 %199
  store ptr %54, ptr %205, align 8
  %206 = getelementptr inbounds nuw ptr, ptr %42, i64 %199
  store ptr null, ptr %206, align 8
  %207 = getelementptr inbounds nuw i64, ptr %43, i64 %199
  store i64 0, ptr %207, align 8
  %208 = load ptr, ptr %101, align 8
  %209 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %14, i64 %199
  %210 = getelementptr inbounds nuw i8, ptr %209, i64 3216
  %211 = load ptr, ptr %103, align 8
  %212 = icmp eq ptr %208, %211
  br i1 %212, label %213, label %271

213:
  %214 = call i64 @PyLong_AsLongLongAndOverflow(ptr %54, ptr %13)
  %215 = load i32, ptr %13, align 4
  %216 = icmp eq i32 %215, 0
  br i1 %216, label %217, label %269

217:
  %218 = lshr i64 %99, 8
  %219 = and i64 %218, 63
  %220 = icmp eq i64 %219, 0
  br i1 %220, label %230, label %221

221:
  %222 = and i64 %99, 32
  %223 = icmp eq i64 %222, 0
  %224 = add nsw i64 %219, -1
  %225 = shl nuw nsw i64 1, %224
  %226 = select i1 %223, i64 0, i64 %225
  %227 = add i64 %214, %226
  %228 = lshr i64 %227, %219
  %229 = icmp eq i64 %228, 0
  br i1 %229, label %230, label %269

230:
  %231 = lshr i64 %99, 32
  %232 = icmp eq i64 %231, 0
  br i1 %232, label %236, label %233

233:
  %234 = srem i64 %214, %231
  %235 = icmp eq i64 %234, 0
  br i1 %235, label %236, label %269

236:
  %237 = and i64 %99, 9
  %238 = icmp eq i64 %237, 0
  br i1 %238, label %239, label %262

239:
  %240 = icmp eq i64 %214, 1
  %241 = and i64 %99, 2
  %242 = icmp eq i64 %241, 0
  %243 = and i1 %242, %240
  br i1 %243, label %262, label %244

244:
  %245 = add i64 %214, 2147483648
  %246 = icmp ult i64 %245, 4294967296
  %247 = select i1 %246, i64 2, i64 5
  %248 = and i64 %214, 7
  %249 = and i64 %99, 6
  %250 = or i64 %248, %249
  %251 = icmp eq i64 %250, 0
  %252 = zext i1 %251 to i64
  %253 = and i64 %214, 15
  %254 = or i64 %253, %249
  %255 = icmp eq i64 %254, 0
  %256 = zext i1 %255 to i64
  %257 = lshr i64 %214, 60
  %258 = and i64 %257, 8
  %259 = or disjoint i64 %247, %258
  %260 = add nuw nsw i64 %259, %252
  %261 = add nuw nsw i64 %260, %256
  br label %262

262:
  %263 = phi i64 [ %214, %236 ], [ %261, %244 ], [ 1, %239 ]
  store i64 %263, ptr %210, align 8
  store i64 %214, ptr %207, align 8
  %264 = and i64 %99, 16
  %265 = icmp eq i64 %264, 0
  br i1 %265, label %270, label %266

266:
  %267 = sitofp i64 %214 to double
  %268 = call ptr @PyFloat_FromDouble(double %267)
  store ptr %268, ptr %206, align 8
  br label %270

269:
  br label %392

270:
  br label %293

271:
  %272 = getelementptr inbounds nuw i8, ptr %103, i64 8
  %273 = load ptr, ptr %272, align 8
  %274 = icmp eq ptr %208, %273
  br i1 %274, label %275, label %280

275:
  %276 = call double @PyFloat_AsDouble(ptr %54)
  %277 = and i64 %99, 9
  %278 = icmp eq i64 %277, 0
  br i1 %278, label %293, label %279

279:
  store double %276, ptr %210, align 8
  br label %293

280:
  br i1 %108, label %281, label %289

281:
  %282 = getelementptr inbounds nuw i8, ptr %103, i64 16
  %283 = load ptr, ptr %282, align 8
  %284 = icmp eq ptr %208, %283
  br i1 %284, label %289, label %285

285:
  %286 = getelementptr inbounds nuw i8, ptr %103, i64 32
  %287 = load ptr, ptr %286, align 8
  %288 = icmp eq ptr %54, %287
  br i1 %288, label %289, label %291

289:
  %290 = ptrtoint ptr %54 to i64
  store i64 %290, ptr %210, align 8
  br label %293

291:
  %292 = call fastcc zeroext i1 @describe_array(ptr %14, ptr %54, i64 %99)
  br i1 %292, label %293, label %392

293:
  %294 = load i64, ptr %36, align 8
  %295 = add i64 %294, 1
  store i64 %295, ptr %36, align 8
  %296 = and i64 %99, 64
  %297 = icmp eq i64 %296, 0
  br i1 %297, label %418, label %298

298:
  %299 = load ptr, ptr %17, align 8
  %300 = load ptr, ptr %101, align 8
  %301 = getelementptr inbounds nuw i8, ptr %299, i64 152
  %302 = load ptr, ptr %301, align 8
  %303 = icmp eq ptr %300, %302
  br i1 %303, label %304, label %312

304:
  %305 = getelementptr inbounds nuw i8, ptr %100, i64 8
  %306 = load i32, ptr %305, align 8
  %307 = sext i32 %306 to i64
  %308 = getelementptr inbounds nuw i8, ptr %100, i64 16
  %309 = load ptr, ptr %308, align 8
  %310 = getelementptr inbounds nuw i8, ptr %100, i64 24
  %311 = load ptr, ptr %310, align 8
  br label %349

312:
  %313 = getelementptr inbounds nuw i8, ptr %299, i64 224
  br label %314

314:
  %315 = phi ptr [ %313, %312 ], [ %320, %314 ]
  %316 = load ptr, ptr %315, align 8
  %317 = icmp ne ptr %316, null
  %318 = icmp ne ptr %316, %300
  %319 = and i1 %318, %317
  %320 = getelementptr inbounds nuw i8, ptr %315, i64 8
  br i1 %319, label %314, label %321

321:
  br i1 %317, label %322, label %388

322:
  %323 = getelementptr inbounds nuw i8, ptr %299, i64 296
  %324 = load i64, ptr %323, align 8
  %325 = getelementptr inbounds nuw i8, ptr %54, i64 %324
  %326 = load ptr, ptr %325, align 8
  %327 = getelementptr inbounds nuw i8, ptr %299, i64 304
  %328 = load i64, ptr %327, align 8
  %329 = getelementptr inbounds nuw i8, ptr %326, i64 %328
  %330 = load i64, ptr %329, align 8
  %331 = getelementptr inbounds nuw i8, ptr %299, i64 312
  %332 = load i64, ptr %331, align 8
  %333 = and i64 %332, %330
  %334 = icmp eq i64 %333, 0
  br i1 %334, label %335, label %340

335:
  %336 = getelementptr inbounds nuw i8, ptr %299, i64 288
  %337 = load ptr, ptr %336, align 8
  %338 = call i32 %337(ptr %54, ptr %12)
  %339 = icmp eq i32 %338, 0
  br i1 %339, label %341, label %340

340:
  call void @PyErr_Clear()
  br label %386

341:
  %342 = load ptr, ptr %44, align 8
  %343 = icmp eq ptr %342, null
  br i1 %343, label %386, label %344

344:
  %345 = load ptr, ptr %45, align 8
  %346 = load i32, ptr %46, align 8
  %347 = zext i32 %346 to i64
  %348 = load i64, ptr %36, align 8
  br label %349

349:
  %350 = phi i64 [ %295, %304 ], [ %348, %344 ]
  %351 = phi ptr [ %309, %304 ], [ %345, %344 ]
  %352 = phi ptr [ %311, %304 ], [ %342, %344 ]
  %353 = phi i64 [ %307, %304 ], [ %347, %344 ]
  %354 = icmp ult i64 %350, 64
  br i1 %354, label %355, label %386

355:
  %356 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %350
  store ptr null, ptr %356, align 8
  %357 = getelementptr inbounds nuw i8, ptr %356, i64 8
  %358 = getelementptr inbounds nuw i8, ptr %356, i64 16
  %359 = getelementptr inbounds nuw ptr, ptr %41, i64 %350
  store ptr %54, ptr %359, align 8
  %360 = getelementptr inbounds nuw ptr, ptr %42, i64 %350
  store ptr null, ptr %360, align 8
  %361 = getelementptr inbounds nuw i64, ptr %43, i64 %350
  store i64 0, ptr %361, align 8
  %362 = inttoptr i64 %353 to ptr
  store ptr %362, ptr %357, align 8
  store i64 0, ptr %358, align 8
  %363 = add nuw nsw i64 %350, 1
  store i64 %363, ptr %36, align 8
  %364 = icmp eq i64 %353, 0
  br i1 %364, label %387, label %365

365:
  %366 = sub nuw nsw i64 63, %350
  br label %367

367:
  %368 = phi i64 [ %383, %371 ], [ %363, %365 ]
  %369 = phi i64 [ %384, %371 ], [ 0, %365 ]
  %370 = icmp eq i64 %369, %366
  br i1 %370, label %386, label %371

371:
  %372 = getelementptr inbounds nuw i64, ptr %352, i64 %369
  %373 = load i64, ptr %372, align 8
  %374 = getelementptr inbounds nuw i64, ptr %351, i64 %369
  %375 = load i64, ptr %374, align 8
  %376 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %368
  store ptr null, ptr %376, align 8
  %377 = getelementptr inbounds nuw i8, ptr %376, i64 8
  %378 = getelementptr inbounds nuw i8, ptr %376, i64 16
  %379 = getelementptr inbounds nuw ptr, ptr %41, i64 %368
  store ptr %54, ptr %379, align 8
  %380 = getelementptr inbounds nuw ptr, ptr %42, i64 %368
  store ptr null, ptr %380, align 8
  %381 = getelementptr inbounds nuw i64, ptr %43, i64 %368
  store i64 0, ptr %381, align 8
  %382 = inttoptr i64 %375 to ptr
  store ptr %382, ptr %377, align 8
  store i64 %373, ptr %378, align 8
  %383 = add nuw nsw i64 %368, 1
  store i64 %383, ptr %36, align 8
  %384 = add nuw nsw i64 %369, 1
  %385 = icmp eq i64 %384, %353
  br i1 %385, label %387, label %367

386:
  br label %392

387:
  br label %418

388:
  %389 = getelementptr inbounds nuw i8, ptr %299, i64 32
  %390 = load ptr, ptr %389, align 8
  %391 = icmp eq ptr %54, %390
  br i1 %391, label %418, label %392

392:
  %393 = load i64, ptr %36, align 8
  %394 = icmp eq i64 %393, 0
  br i1 %394, label %406, label %395

395:
  %396 = phi i64 [ %393, %392 ], [ %199, %198 ]
  br label %397

397:
  %398 = phi i64 [ %404, %403 ], [ 0, %395 ]
  %399 = getelementptr inbounds nuw ptr, ptr %42, i64 %398
  %400 = load ptr, ptr %399, align 8
  %401 = icmp eq ptr %400, null
  br i1 %401, label %403, label %402

402:
  call void @Py_DecRef(ptr %400)
  br label %403

403:
  %404 = add nuw i64 %398, 1
  %405 = icmp eq i64 %404, %396
  br i1 %405, label %406, label %397

406:
  %407 = load i64, ptr %35, align 8
  %408 = icmp eq i64 %407, 0
  br i1 %408, label %422, label %409

409:
  %410 = phi i64 [ %416, %415 ], [ 0, %406 ]
  %411 = getelementptr inbounds nuw ptr, ptr %47, i64 %410
  %412 = load ptr, ptr %411, align 8
  %413 = icmp eq ptr %412, null
  br i1 %413, label %415, label %414

414:
  call void @Py_DecRef(ptr %412)
  br label %415

415:
  %416 = add nuw i64 %410, 1
  %417 = icmp eq i64 %416, %407
  br i1 %417, label %422, label %409

418:
  %419 = add nuw i64 %49, 1
  %420 = load i64, ptr %28, align 8
  %421 = icmp ult i64 %419, %420
  br i1 %421, label %48, label %430

422:
  %423 = load ptr, ptr %18, align 8
  %424 = load ptr, ptr %14, align 8
  %425 = getelementptr inbounds nuw i8, ptr %424, i64 16
  %426 = load ptr, ptr %425, align 8
  %427 = load i64, ptr %19, align 8
  %428 = load ptr, ptr %20, align 8
  %429 = call ptr @PyObject_Vectorcall(ptr %426, ptr %423, i64 %427, ptr %428)
  br label %1086

430:
  %431 = load i64, ptr %36, align 8
  %432 = icmp eq i64 %431, 0
  br i1 %432, label %454, label %433

433:
  %434 = phi i64 [ %449, %433 ], [ 0, %430 ]
  %435 = phi i64 [ %450, %433 ], [ 0, %430 ]
  %436 = getelementptr inbounds nuw %struct.ArgumentDescriptor, ptr %40, i64 %435
  %437 = load ptr, ptr %436, align 8
  %438 = ptrtoint ptr %437 to i64
  %439 = getelementptr inbounds nuw i8, ptr %436, i64 8
  %440 = load ptr, ptr %439, align 8
  %441 = ptrtoint ptr %440 to i64
  %442 = call i64 @llvm.fshl.i64(i64 %441, i64 %441, i64 21)
  %443 = add i64 %442, %438
  %444 = getelementptr inbounds nuw i8, ptr %436, i64 16
  %445 = load i64, ptr %444, align 8
  %446 = call i64 @llvm.fshl.i64(i64 %445, i64 %445, i64 42)
  %447 = add i64 %443, %446
  %448 = xor i64 %447, %434
  %449 = mul i64 %448, -7046029254386353131
  %450 = add nuw i64 %435, 1
  %451 = icmp eq i64 %450, %431
  br i1 %451, label %452, label %433

452:
  %453 = lshr i64 %449, 56
  br label %454

454:
  %455 = phi i64 [ 0, %430 ], [ 0, %34 ], [ %431, %452 ]
  %456 = phi i64 [ 0, %430 ], [ 0, %34 ], [ %453, %452 ]
  %457 = load ptr, ptr %14, align 8
  %458 = getelementptr inbounds nuw i8, ptr %457, i64 8
  %459 = load ptr, ptr %458, align 8
  %460 = mul i64 %455, 3
  %461 = getelementptr inbounds nuw i8, ptr %14, i64 3200
  %462 = mul i64 %455, 24
  %463 = add nuw nsw i64 %456, 7
  br label %464

464:
  %465 = phi i64 [ %456, %454 ], [ %478, %477 ]
  %466 = getelementptr inbounds nuw ptr, ptr %459, i64 %465
  %467 = load ptr, ptr %466, align 8
  %468 = icmp eq ptr %467, null
  br i1 %468, label %1057, label %469

469:
  %470 = load i64, ptr %467, align 8
  %471 = icmp eq i64 %470, %460
  br i1 %471, label %472, label %477

472:
  %473 = getelementptr inbounds nuw i8, ptr %467, i64 8
  %474 = load ptr, ptr %473, align 8
  %475 = call i32 @memcmp(ptr %474, ptr %461, i64 %462)
  %476 = icmp eq i32 %475, 0
  br i1 %476, label %480, label %477

477:
  %478 = add nuw nsw i64 %465, 1
  %479 = icmp eq i64 %465, %463
  br i1 %479, label %1057, label %464

480:
  %481 = getelementptr inbounds nuw ptr, ptr %459, i64 %465
  %482 = load ptr, ptr %481, align 8
  %483 = icmp eq ptr %482, null
  br i1 %483, label %1057, label %484

484:
  %485 = getelementptr inbounds nuw i8, ptr %482, i64 192
  %486 = load ptr, ptr %485, align 8
  call void @Py_IncRef(ptr %486)
  %487 = load ptr, ptr %14, align 8
  %488 = getelementptr inbounds nuw i8, ptr %487, i64 96
  %489 = load ptr, ptr %488, align 8
  %490 = load i64, ptr %489, align 8
  %491 = add i64 %490, 1
  store i64 %491, ptr %489, align 8
  %492 = getelementptr inbounds nuw i8, ptr %482, i64 200
  store i64 %491, ptr %492, align 8
  %493 = load ptr, ptr %14, align 8
  %494 = getelementptr inbounds nuw i8, ptr %493, i64 56
  %495 = load ptr, ptr %494, align 8
  %496 = call i64 @PyDict_Size(ptr %495)
  %497 = getelementptr inbounds nuw i8, ptr %493, i64 64
  %498 = load ptr, ptr %497, align 8
  %499 = call i64 @PyList_Size(ptr %498)
  %500 = or i64 %499, %496
  %501 = getelementptr inbounds nuw i8, ptr %493, i64 72
  %502 = load ptr, ptr %501, align 8
  %503 = call i64 @PyList_Size(ptr %502)
  %504 = or i64 %500, %503
  %505 = getelementptr inbounds nuw i8, ptr %493, i64 80
  %506 = load ptr, ptr %505, align 8
  %507 = call i64 @PyList_Size(ptr %506)
  %508 = or i64 %504, %507
  %509 = icmp eq i64 %508, 0
  br i1 %509, label %510, label %520

510:
  %511 = getelementptr inbounds nuw i8, ptr %482, i64 136
  %512 = load ptr, ptr %511, align 8
  %513 = icmp eq ptr %512, null
  br i1 %513, label %528, label %514

514:
  store ptr null, ptr %11, align 8
  %515 = call i32 %512(ptr %11)
  %516 = load ptr, ptr %11, align 8
  %517 = getelementptr inbounds nuw i8, ptr %482, i64 144
  %518 = load ptr, ptr %517, align 8
  %519 = icmp eq ptr %516, %518
  br i1 %519, label %528, label %520

520:
  %521 = load ptr, ptr %18, align 8
  %522 = load ptr, ptr %14, align 8
  %523 = getelementptr inbounds nuw i8, ptr %522, i64 16
  %524 = load ptr, ptr %523, align 8
  %525 = load i64, ptr %19, align 8
  %526 = load ptr, ptr %20, align 8
  %527 = call ptr @PyObject_Vectorcall(ptr %524, ptr %521, i64 %525, ptr %526)
  br label %1055

528:
  %529 = getelementptr inbounds nuw i8, ptr %482, i64 112
  %530 = load ptr, ptr %529, align 8
  %531 = getelementptr inbounds nuw i8, ptr %482, i64 104
  %532 = load i64, ptr %531, align 8
  %533 = icmp eq i64 %532, 0
  br i1 %533, label %561, label %538

534:
  %535 = add nuw i64 %539, 1
  %536 = load i64, ptr %531, align 8
  %537 = icmp ult i64 %535, %536
  br i1 %537, label %538, label %561

538:
  %539 = phi i64 [ %535, %534 ], [ 0, %528 ]
  %540 = getelementptr inbounds nuw %struct.GlobalCheck, ptr %530, i64 %539
  %541 = load ptr, ptr %540, align 8
  %542 = icmp eq ptr %541, null
  br i1 %542, label %547, label %543

543:
  %544 = getelementptr inbounds nuw i8, ptr %540, i64 16
  %545 = load ptr, ptr %544, align 8
  %546 = call ptr @PyDict_GetItemWithError(ptr %541, ptr %545)
  br label %552

547:
  %548 = getelementptr inbounds nuw i8, ptr %540, i64 8
  %549 = load ptr, ptr %548, align 8
  %550 = getelementptr inbounds nuw i8, ptr %540, i64 16
  %551 = call ptr @PyObject_Vectorcall(ptr %549, ptr %550, i64 1, ptr null)
  call void @Py_DecRef(ptr %551)
  br label %552

552:
  %553 = phi ptr [ %546, %543 ], [ %551, %547 ]
  %554 = getelementptr inbounds nuw i8, ptr %540, i64 24
  %555 = load ptr, ptr %554, align 8
  %556 = icmp eq ptr %553, %555
  br i1 %556, label %534, label %557

557:
  call void @PyErr_Clear()
  %558 = getelementptr inbounds nuw i8, ptr %482, i64 208
  %559 = load i64, ptr %558, align 8
  %560 = call fastcc ptr @launch_new(ptr %14, i64 %559)
  br label %1055

561:
  %562 = getelementptr inbounds nuw i8, ptr %482, i64 96
  %563 = load ptr, ptr %562, align 8
  %564 = icmp eq ptr %563, null
  br i1 %564, label %565, label %568

565:
  %566 = load ptr, ptr %18, align 8
  %567 = load ptr, ptr %566, align 8
  br label %568

568:
  %569 = phi ptr [ %567, %565 ], [ %563, %561 ]
  %570 = call fastcc zeroext i1 @extents(ptr %14, ptr %569)
  br i1 %570, label %635, label %571

571:
  %572 = call i32 @PyCallable_Check(ptr %569)
  %573 = icmp eq i32 %572, 0
  br i1 %573, label %574, label %582

574:
  %575 = load ptr, ptr %18, align 8
  %576 = load ptr, ptr %14, align 8
  %577 = getelementptr inbounds nuw i8, ptr %576, i64 16
  %578 = load ptr, ptr %577, align 8
  %579 = load i64, ptr %19, align 8
  %580 = load ptr, ptr %20, align 8
  %581 = call ptr @PyObject_Vectorcall(ptr %578, ptr %575, i64 %579, ptr %580)
  br label %1055

582:
  %583 = getelementptr inbounds nuw i8, ptr %482, i64 184
  %584 = load ptr, ptr %583, align 8
  %585 = call ptr @PyDict_Copy(ptr %584)
  store ptr %585, ptr %10, align 8
  %586 = getelementptr inbounds nuw i8, ptr %482, i64 152
  %587 = load ptr, ptr %586, align 8
  %588 = load i64, ptr %28, align 8
  %589 = icmp eq i64 %588, 0
  br i1 %589, label %601, label %590

590:
  %591 = phi i64 [ %595, %590 ], [ 0, %582 ]
  %592 = getelementptr inbounds nuw ptr, ptr %587, i64 %591
  %593 = load ptr, ptr %592, align 8
  %594 = load ptr, ptr %18, align 8
  %595 = add nuw i64 %591, 1
  %596 = getelementptr inbounds nuw ptr, ptr %594, i64 %595
  %597 = load ptr, ptr %596, align 8
  %598 = call i32 @PyDict_SetItem(ptr %585, ptr %593, ptr %597)
  %599 = load i64, ptr %28, align 8
  %600 = icmp ult i64 %595, %599
  br i1 %600, label %590, label %601

601:
  %602 = call ptr @PyObject_Vectorcall(ptr %569, ptr %10, i64 1, ptr null)
  %603 = load ptr, ptr %10, align 8
  call void @Py_DecRef(ptr %603)
  %604 = icmp eq ptr %602, null
  br i1 %604, label %605, label %621

605:
  call void @PyErr_Fetch(ptr %7, ptr %8, ptr %9)
  %606 = load ptr, ptr %7, align 8
  %607 = load ptr, ptr %8, align 8
  %608 = load ptr, ptr %9, align 8
  call void @PyErr_Restore(ptr %606, ptr %607, ptr %608)
  %609 = load ptr, ptr %9, align 8
  %610 = icmp eq ptr %609, null
  br i1 %610, label %613, label %611

611:
  %612 = load ptr, ptr %17, align 8
  call fastcc void @strip_traceback(ptr %612)
  br label %1055

613:
  call void @PyErr_Clear()
  %614 = load ptr, ptr %18, align 8
  %615 = load ptr, ptr %14, align 8
  %616 = getelementptr inbounds nuw i8, ptr %615, i64 16
  %617 = load ptr, ptr %616, align 8
  %618 = load i64, ptr %19, align 8
  %619 = load ptr, ptr %20, align 8
  %620 = call ptr @PyObject_Vectorcall(ptr %617, ptr %614, i64 %618, ptr %619)
  br label %1055

621:
  %622 = call fastcc zeroext i1 @extents(ptr %14, ptr %602)
  br i1 %622, label %635, label %623

623:
  %624 = getelementptr inbounds nuw i8, ptr %14, i64 2624
  %625 = load ptr, ptr %18, align 8
  %626 = load i64, ptr %28, align 8
  %627 = shl i64 %626, 3
  %628 = add i64 %627, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %624, ptr align 8 %625, i64 %628, i1 false)
  store ptr %602, ptr %624, align 8
  %629 = load ptr, ptr %14, align 8
  %630 = getelementptr inbounds nuw i8, ptr %629, i64 16
  %631 = load ptr, ptr %630, align 8
  %632 = load i64, ptr %19, align 8
  %633 = load ptr, ptr %20, align 8
  %634 = call ptr @PyObject_Vectorcall(ptr %631, ptr %624, i64 %632, ptr %633)
  call void @Py_DecRef(ptr %602)
  br label %1055

635:
  %636 = phi ptr [ null, %568 ], [ %602, %621 ]
  %637 = load ptr, ptr %14, align 8
  %638 = getelementptr inbounds nuw i8, ptr %637, i64 88
  %639 = load ptr, ptr %638, align 8
  %640 = load i64, ptr %639, align 8
  %641 = icmp eq i64 %640, 0
  br i1 %641, label %866, label %642

642:
  %643 = getelementptr inbounds nuw i8, ptr %482, i64 168
  %644 = load ptr, ptr %643, align 8
  %645 = getelementptr inbounds nuw i8, ptr %482, i64 160
  %646 = load i64, ptr %645, align 8
  %647 = icmp eq i64 %646, 0
  br i1 %647, label %866, label %648

648:
  %649 = getelementptr inbounds nuw i8, ptr %14, i64 1600
  %650 = getelementptr inbounds nuw i8, ptr %14, i64 568
  %651 = load i64, ptr @object_bytes, align 8
  br label %652

652:
  %653 = phi i64 [ 0, %648 ], [ %840, %839 ]
  %654 = getelementptr inbounds nuw %struct.OverlapPair, ptr %644, i64 %653
  %655 = load i64, ptr %654, align 8
  %656 = getelementptr inbounds nuw i64, ptr %649, i64 %655
  %657 = load i64, ptr %656, align 8
  %658 = getelementptr inbounds nuw i8, ptr %654, i64 8
  %659 = load i64, ptr %658, align 8
  %660 = getelementptr inbounds nuw i64, ptr %649, i64 %659
  %661 = load i64, ptr %660, align 8
  %662 = icmp eq i64 %657, %661
  br i1 %662, label %663, label %711

663:
  %664 = getelementptr inbounds nuw i8, ptr %654, i64 32
  %665 = load i64, ptr %664, align 8
  %666 = icmp eq i64 %665, 0
  br i1 %666, label %803, label %667

667:
  %668 = getelementptr inbounds nuw i8, ptr %654, i64 40
  %669 = load ptr, ptr %668, align 8
  br label %674

670:
  %671 = phi ptr [ %695, %680 ], [ %677, %674 ]
  %672 = add nuw i64 %675, 1
  %673 = icmp eq i64 %672, %665
  br i1 %673, label %839, label %674

674:
  %675 = phi i64 [ 0, %667 ], [ %672, %670 ]
  %676 = phi ptr [ %669, %667 ], [ %671, %670 ]
  %677 = getelementptr inbounds nuw i8, ptr %676, i64 8
  %678 = load i64, ptr %676, align 8
  %679 = icmp eq i64 %678, 0
  br i1 %679, label %670, label %682

680:
  %681 = icmp eq i64 %697, 0
  br i1 %681, label %670, label %803

682:
  %683 = phi i64 [ %698, %694 ], [ %678, %674 ]
  %684 = phi i64 [ %697, %694 ], [ 0, %674 ]
  %685 = phi ptr [ %695, %694 ], [ %677, %674 ]
  %686 = getelementptr inbounds nuw i8, ptr %685, i64 8
  %687 = load i64, ptr %685, align 8
  %688 = getelementptr i8, ptr %685, i64 16
  %689 = load i64, ptr %686, align 8
  %690 = icmp eq i64 %689, 0
  br i1 %690, label %694, label %700

691:
  %692 = shl i64 %689, 3
  %693 = getelementptr i8, ptr %688, i64 %692
  br label %694

694:
  %695 = phi ptr [ %688, %682 ], [ %693, %691 ]
  %696 = phi i64 [ %687, %682 ], [ %708, %691 ]
  %697 = add i64 %696, %684
  %698 = add i64 %683, -1
  %699 = icmp eq i64 %698, 0
  br i1 %699, label %680, label %682

700:
  %701 = phi i64 [ %709, %700 ], [ %689, %682 ]
  %702 = phi i64 [ %708, %700 ], [ %687, %682 ]
  %703 = phi ptr [ %704, %700 ], [ %688, %682 ]
  %704 = getelementptr inbounds nuw i8, ptr %703, i64 8
  %705 = load i64, ptr %703, align 8
  %706 = getelementptr inbounds nuw i64, ptr %649, i64 %705
  %707 = load i64, ptr %706, align 8
  %708 = mul i64 %707, %702
  %709 = add i64 %701, -1
  %710 = icmp eq i64 %709, 0
  br i1 %710, label %691, label %700

711:
  %712 = icmp ult i64 %657, %661
  br i1 %712, label %713, label %758

713:
  %714 = sub nuw i64 %661, %657
  %715 = getelementptr inbounds nuw i8, ptr %654, i64 16
  %716 = load i64, ptr %715, align 8
  %717 = call fastcc i64 @extent(ptr %14, i64 %655, i64 %716)
  %718 = icmp ult i64 %714, %717
  br i1 %718, label %803, label %719

719:
  %720 = load i64, ptr %658, align 8
  %721 = getelementptr inbounds nuw ptr, ptr %650, i64 %720
  %722 = load ptr, ptr %721, align 8
  %723 = getelementptr inbounds i8, ptr %722, i64 %651
  %724 = getelementptr inbounds i8, ptr %723, i64 -8
  %725 = load ptr, ptr %724, align 8
  %726 = load ptr, ptr %17, align 8
  %727 = getelementptr inbounds nuw i8, ptr %726, i64 152
  %728 = load ptr, ptr %727, align 8
  %729 = icmp eq ptr %725, %728
  br i1 %729, label %730, label %839

730:
  %731 = getelementptr inbounds nuw i8, ptr %723, i64 24
  %732 = getelementptr inbounds nuw i8, ptr %723, i64 8
  %733 = load i32, ptr %732, align 8
  %734 = icmp sgt i32 %733, 0
  br i1 %734, label %735, label %839

735:
  %736 = getelementptr inbounds nuw i8, ptr %723, i64 16
  %737 = load ptr, ptr %736, align 8
  %738 = zext nneg i32 %733 to i64
  br label %739

739:
  %740 = phi i64 [ 0, %735 ], [ %754, %750 ]
  %741 = phi i64 [ 1, %735 ], [ %753, %750 ]
  %742 = getelementptr inbounds nuw i64, ptr %737, i64 %740
  %743 = load i64, ptr %742, align 8
  %744 = icmp eq i64 %743, 0
  br i1 %744, label %839, label %745

745:
  %746 = load ptr, ptr %731, align 8
  %747 = getelementptr inbounds nuw i64, ptr %746, i64 %740
  %748 = load i64, ptr %747, align 8
  %749 = icmp slt i64 %748, 0
  br i1 %749, label %803, label %750

750:
  %751 = add i64 %743, -1
  %752 = mul i64 %748, %751
  %753 = add i64 %752, %741
  %754 = add nuw nsw i64 %740, 1
  %755 = icmp eq i64 %754, %738
  br i1 %755, label %756, label %739

756:
  %757 = icmp eq i64 %753, -1
  br i1 %757, label %803, label %839

758:
  %759 = sub nuw i64 %657, %661
  %760 = getelementptr inbounds nuw i8, ptr %654, i64 24
  %761 = load i64, ptr %760, align 8
  %762 = call fastcc i64 @extent(ptr %14, i64 %659, i64 %761)
  %763 = icmp ult i64 %759, %762
  br i1 %763, label %803, label %764

764:
  %765 = load i64, ptr %654, align 8
  %766 = getelementptr inbounds nuw ptr, ptr %650, i64 %765
  %767 = load ptr, ptr %766, align 8
  %768 = getelementptr inbounds i8, ptr %767, i64 %651
  %769 = getelementptr inbounds i8, ptr %768, i64 -8
  %770 = load ptr, ptr %769, align 8
  %771 = load ptr, ptr %17, align 8
  %772 = getelementptr inbounds nuw i8, ptr %771, i64 152
  %773 = load ptr, ptr %772, align 8
  %774 = icmp eq ptr %770, %773
  br i1 %774, label %775, label %839

775:
  %776 = getelementptr inbounds nuw i8, ptr %768, i64 24
  %777 = getelementptr inbounds nuw i8, ptr %768, i64 8
  %778 = load i32, ptr %777, align 8
  %779 = icmp sgt i32 %778, 0
  br i1 %779, label %780, label %839

780:
  %781 = getelementptr inbounds nuw i8, ptr %768, i64 16
  %782 = load ptr, ptr %781, align 8
  %783 = zext nneg i32 %778 to i64
  br label %784

784:
  %785 = phi i64 [ 0, %780 ], [ %799, %795 ]
  %786 = phi i64 [ 1, %780 ], [ %798, %795 ]
  %787 = getelementptr inbounds nuw i64, ptr %782, i64 %785
  %788 = load i64, ptr %787, align 8
  %789 = icmp eq i64 %788, 0
  br i1 %789, label %839, label %790

790:
  %791 = load ptr, ptr %776, align 8
  %792 = getelementptr inbounds nuw i64, ptr %791, i64 %785
  %793 = load i64, ptr %792, align 8
  %794 = icmp slt i64 %793, 0
  br i1 %794, label %803, label %795

795:
  %796 = add i64 %788, -1
  %797 = mul i64 %793, %796
  %798 = add i64 %797, %786
  %799 = add nuw nsw i64 %785, 1
  %800 = icmp eq i64 %799, %783
  br i1 %800, label %801, label %784

801:
  %802 = icmp eq i64 %798, -1
  br i1 %802, label %803, label %839

803:
  %804 = getelementptr inbounds nuw i8, ptr %482, i64 176
  %805 = load ptr, ptr %804, align 8
  %806 = getelementptr inbounds nuw i8, ptr %805, i64 24
  %807 = load i64, ptr %806, align 8
  store i64 %640, ptr %806, align 8
  %808 = xor i64 %807, %640
  %809 = getelementptr inbounds nuw i8, ptr %14, i64 2624
  br label %815

810:
  %811 = load i64, ptr %36, align 8
  %812 = icmp eq i64 %811, 0
  br i1 %812, label %843, label %813

813:
  %814 = getelementptr inbounds nuw i8, ptr %805, i64 32
  br label %827

815:
  %816 = phi i64 [ 0, %803 ], [ %825, %815 ]
  %817 = phi i64 [ %808, %803 ], [ %824, %815 ]
  %818 = getelementptr inbounds nuw i64, ptr %805, i64 %816
  %819 = getelementptr inbounds nuw ptr, ptr %809, i64 %816
  %820 = load ptr, ptr %819, align 8
  %821 = call i64 @PyLong_AsLongLong(ptr %820)
  %822 = load i64, ptr %818, align 8
  store i64 %821, ptr %818, align 8
  %823 = xor i64 %822, %821
  %824 = or i64 %823, %817
  %825 = add nuw nsw i64 %816, 1
  %826 = icmp eq i64 %825, 3
  br i1 %826, label %810, label %815

827:
  %828 = phi i64 [ 0, %813 ], [ %836, %827 ]
  %829 = phi i64 [ %824, %813 ], [ %835, %827 ]
  %830 = getelementptr inbounds nuw i64, ptr %814, i64 %828
  %831 = getelementptr inbounds nuw i64, ptr %649, i64 %828
  %832 = load i64, ptr %831, align 8
  %833 = load i64, ptr %830, align 8
  store i64 %832, ptr %830, align 8
  %834 = xor i64 %833, %832
  %835 = or i64 %834, %829
  %836 = add nuw i64 %828, 1
  %837 = load i64, ptr %36, align 8
  %838 = icmp ult i64 %836, %837
  br i1 %838, label %827, label %843

839:
  %840 = add nuw i64 %653, 1
  %841 = load i64, ptr %645, align 8
  %842 = icmp ult i64 %840, %841
  br i1 %842, label %652, label %866

843:
  %844 = phi i64 [ %824, %810 ], [ %835, %827 ]
  %845 = icmp eq i64 %844, 0
  br i1 %845, label %866, label %846

846:
  %847 = icmp eq ptr %636, null
  %848 = load ptr, ptr %18, align 8
  br i1 %847, label %859, label %849

849:
  %850 = load i64, ptr %28, align 8
  %851 = shl i64 %850, 3
  %852 = add i64 %851, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %809, ptr align 8 %848, i64 %852, i1 false)
  store ptr %636, ptr %809, align 8
  %853 = load ptr, ptr %14, align 8
  %854 = getelementptr inbounds nuw i8, ptr %853, i64 16
  %855 = load ptr, ptr %854, align 8
  %856 = load i64, ptr %19, align 8
  %857 = load ptr, ptr %20, align 8
  %858 = call ptr @PyObject_Vectorcall(ptr %855, ptr %809, i64 %856, ptr %857)
  call void @Py_DecRef(ptr %636)
  br label %1055

859:
  %860 = load ptr, ptr %14, align 8
  %861 = getelementptr inbounds nuw i8, ptr %860, i64 16
  %862 = load ptr, ptr %861, align 8
  %863 = load i64, ptr %19, align 8
  %864 = load ptr, ptr %20, align 8
  %865 = call ptr @PyObject_Vectorcall(ptr %862, ptr %848, i64 %863, ptr %864)
  br label %1055

866:
  %867 = getelementptr inbounds nuw i8, ptr %482, i64 24
  %868 = load ptr, ptr %867, align 8
  %869 = icmp eq ptr %868, null
  %870 = getelementptr inbounds nuw i8, ptr %14, i64 2624
  br i1 %869, label %976, label %871

871:
  %872 = load ptr, ptr %870, align 8
  %873 = call i64 @PyLong_AsLongLong(ptr %872)
  %874 = trunc i64 %873 to i32
  %875 = getelementptr inbounds nuw i8, ptr %14, i64 2632
  %876 = load ptr, ptr %875, align 8
  %877 = call i64 @PyLong_AsLongLong(ptr %876)
  %878 = trunc i64 %877 to i32
  %879 = getelementptr inbounds nuw i8, ptr %14, i64 2640
  %880 = load ptr, ptr %879, align 8
  %881 = call i64 @PyLong_AsLongLong(ptr %880)
  %882 = trunc i64 %881 to i32
  %883 = getelementptr inbounds nuw i8, ptr %482, i64 80
  %884 = load ptr, ptr %883, align 8
  %885 = getelementptr inbounds nuw i8, ptr %482, i64 40
  %886 = load ptr, ptr %885, align 8
  %887 = getelementptr inbounds nuw i8, ptr %482, i64 88
  %888 = load ptr, ptr %887, align 8
  %889 = getelementptr inbounds nuw i8, ptr %482, i64 72
  %890 = load i64, ptr %889, align 8
  %891 = icmp eq i64 %890, 0
  br i1 %891, label %896, label %892

892:
  %893 = getelementptr inbounds nuw i8, ptr %14, i64 56
  %894 = getelementptr inbounds nuw i8, ptr %14, i64 568
  %895 = getelementptr inbounds nuw i8, ptr %14, i64 1600
  br label %907

896:
  %897 = load ptr, ptr %867, align 8
  %898 = getelementptr inbounds nuw i8, ptr %482, i64 32
  %899 = load ptr, ptr %898, align 8
  %900 = call i32 %897(ptr %899, i32 %874, i32 %878, i32 %882, ptr %870)
  %901 = getelementptr inbounds nuw i8, ptr %482, i64 56
  %902 = load ptr, ptr %901, align 8
  %903 = call i64 @PyList_Size(ptr %902)
  %904 = icmp eq i64 %903, 0
  %905 = icmp eq i32 %900, 0
  %906 = select i1 %904, i1 %905, i1 false
  br i1 %906, label %962, label %969

907:
  %908 = phi i64 [ 0, %892 ], [ %959, %956 ]
  %909 = getelementptr inbounds nuw i64, ptr %884, i64 %908
  %910 = load i64, ptr %909, align 8
  %911 = icmp ult i64 %910, 64
  br i1 %911, label %912, label %953

912:
  %913 = getelementptr inbounds nuw i64, ptr %886, i64 %908
  %914 = load i64, ptr %913, align 8
  switch i64 %914, label %950 [
    i64 1, label %915
    i64 2, label %928
    i64 3, label %939
  ]

915:
  %916 = getelementptr inbounds nuw ptr, ptr %893, i64 %910
  %917 = load ptr, ptr %916, align 8
  %918 = icmp eq ptr %917, null
  br i1 %918, label %919, label %922

919:
  %920 = getelementptr inbounds nuw ptr, ptr %894, i64 %910
  %921 = load ptr, ptr %920, align 8
  br label %922

922:
  %923 = phi ptr [ %921, %919 ], [ %917, %915 ]
  %924 = call double @PyFloat_AsDouble(ptr %923)
  %925 = fptrunc double %924 to float
  %926 = bitcast float %925 to i32
  %927 = zext i32 %926 to i64
  br label %956

928:
  %929 = getelementptr inbounds nuw ptr, ptr %893, i64 %910
  %930 = load ptr, ptr %929, align 8
  %931 = icmp eq ptr %930, null
  br i1 %931, label %932, label %935

932:
  %933 = getelementptr inbounds nuw ptr, ptr %894, i64 %910
  %934 = load ptr, ptr %933, align 8
  br label %935

935:
  %936 = phi ptr [ %934, %932 ], [ %930, %928 ]
  %937 = call double @PyFloat_AsDouble(ptr %936)
  %938 = bitcast double %937 to i64
  br label %956

939:
  %940 = getelementptr inbounds nuw ptr, ptr %893, i64 %910
  %941 = load ptr, ptr %940, align 8
  %942 = icmp eq ptr %941, null
  br i1 %942, label %943, label %946

943:
  %944 = getelementptr inbounds nuw ptr, ptr %894, i64 %910
  %945 = load ptr, ptr %944, align 8
  br label %946

946:
  %947 = phi ptr [ %945, %943 ], [ %941, %939 ]
  %948 = call i32 @PyObject_IsTrue(ptr %947)
  %949 = zext i32 %948 to i64
  br label %956

950:
  %951 = getelementptr inbounds nuw i64, ptr %895, i64 %910
  %952 = load i64, ptr %951, align 8
  br label %956

953:
  %954 = getelementptr inbounds nuw i64, ptr %888, i64 %908
  %955 = load i64, ptr %954, align 8
  br label %956

956:
  %957 = phi i64 [ %955, %953 ], [ %952, %950 ], [ %927, %922 ], [ %938, %935 ], [ %949, %946 ]
  %958 = getelementptr inbounds nuw i64, ptr %870, i64 %908
  store i64 %957, ptr %958, align 8
  %959 = add nuw i64 %908, 1
  %960 = load i64, ptr %889, align 8
  %961 = icmp ult i64 %959, %960
  br i1 %961, label %907, label %896

962:
  %963 = load ptr, ptr %17, align 8
  %964 = getelementptr inbounds nuw i8, ptr %963, i64 40
  %965 = load ptr, ptr %964, align 8
  call void @Py_IncRef(ptr %965)
  %966 = load ptr, ptr %17, align 8
  %967 = getelementptr inbounds nuw i8, ptr %966, i64 40
  %968 = load ptr, ptr %967, align 8
  br label %1046

969:
  %970 = zext i32 %900 to i64
  %971 = call ptr @PyLong_FromUnsignedLongLong(i64 %970)
  store ptr %971, ptr %6, align 8
  %972 = getelementptr inbounds nuw i8, ptr %482, i64 48
  %973 = load ptr, ptr %972, align 8
  %974 = call ptr @PyObject_Vectorcall(ptr %973, ptr %6, i64 1, ptr null)
  %975 = load ptr, ptr %6, align 8
  call void @Py_DecRef(ptr %975)
  br label %1046

976:
  %977 = getelementptr inbounds nuw i8, ptr %14, i64 2648
  %978 = getelementptr inbounds nuw i8, ptr %482, i64 128
  %979 = load ptr, ptr %978, align 8
  %980 = icmp eq ptr %979, null
  br i1 %980, label %988, label %981

981:
  %982 = getelementptr inbounds nuw i8, ptr %482, i64 120
  %983 = load ptr, ptr %982, align 8
  store ptr %983, ptr %5, align 8
  %984 = call ptr @PyObject_Vectorcall(ptr %979, ptr %5, i64 1, ptr null)
  %985 = icmp eq ptr %984, null
  br i1 %985, label %1045, label %986

986:
  %987 = getelementptr inbounds nuw i8, ptr %14, i64 2656
  store ptr %984, ptr %977, align 8
  br label %988

988:
  %989 = phi ptr [ %984, %986 ], [ null, %976 ]
  %990 = phi ptr [ %987, %986 ], [ %977, %976 ]
  %991 = getelementptr inbounds nuw i8, ptr %482, i64 80
  %992 = load ptr, ptr %991, align 8
  %993 = getelementptr inbounds nuw i8, ptr %482, i64 72
  %994 = load i64, ptr %993, align 8
  %995 = icmp eq i64 %994, 0
  br i1 %995, label %1001, label %996

996:
  %997 = getelementptr inbounds nuw i8, ptr %14, i64 56
  %998 = getelementptr inbounds nuw i8, ptr %14, i64 568
  %999 = load i64, ptr @object_bytes, align 8
  %1000 = getelementptr inbounds nuw i8, ptr %14, i64 1600
  br label %1011

1001:
  %1002 = phi ptr [ %990, %988 ], [ %1040, %1038 ]
  %1003 = getelementptr inbounds nuw i8, ptr %482, i64 16
  %1004 = load ptr, ptr %1003, align 8
  %1005 = ptrtoint ptr %1002 to i64
  %1006 = ptrtoint ptr %870 to i64
  %1007 = sub i64 %1005, %1006
  %1008 = ashr exact i64 %1007, 3
  %1009 = call ptr @PyObject_Vectorcall(ptr %1004, ptr %870, i64 %1008, ptr null)
  %1010 = icmp eq ptr %989, null
  br i1 %1010, label %1046, label %1044

1011:
  %1012 = phi i64 [ 0, %996 ], [ %1041, %1038 ]
  %1013 = phi ptr [ %990, %996 ], [ %1040, %1038 ]
  %1014 = getelementptr inbounds nuw i64, ptr %992, i64 %1012
  %1015 = load i64, ptr %1014, align 8
  %1016 = icmp ult i64 %1015, 64
  br i1 %1016, label %1017, label %1036

1017:
  %1018 = getelementptr inbounds nuw ptr, ptr %997, i64 %1015
  %1019 = load ptr, ptr %1018, align 8
  %1020 = icmp eq ptr %1019, null
  br i1 %1020, label %1021, label %1038

1021:
  %1022 = getelementptr inbounds nuw ptr, ptr %998, i64 %1015
  %1023 = load ptr, ptr %1022, align 8
  %1024 = getelementptr inbounds i8, ptr %1023, i64 %999
  %1025 = getelementptr inbounds i8, ptr %1024, i64 -8
  %1026 = load ptr, ptr %1025, align 8
  %1027 = load ptr, ptr %17, align 8
  %1028 = load ptr, ptr %1027, align 8
  %1029 = icmp eq ptr %1026, %1028
  br i1 %1029, label %1038, label %1030

1030:
  %1031 = getelementptr inbounds nuw i64, ptr %1000, i64 %1015
  %1032 = load i64, ptr %1031, align 8
  %1033 = icmp eq i64 %1032, 0
  br i1 %1033, label %1038, label %1034

1034:
  %1035 = call ptr @PyLong_FromUnsignedLongLong(i64 %1032)
  store ptr %1035, ptr %1018, align 8
  br label %1038

1036:
  %1037 = inttoptr i64 %1015 to ptr
  br label %1038

1038:
  %1039 = phi ptr [ %1037, %1036 ], [ %1035, %1034 ], [ %1023, %1030 ], [ %1023, %1021 ], [ %1019, %1017 ]
  %1040 = getelementptr inbounds nuw i8, ptr %1013, i64 8
  store ptr %1039, ptr %1013, align 8
  %1041 = add nuw i64 %1012, 1
  %1042 = load i64, ptr %993, align 8
  %1043 = icmp ult i64 %1041, %1042
  br i1 %1043, label %1011, label %1001

1044:
  call void @Py_DecRef(ptr %989)
  br label %1046

1045:
  call void @Py_DecRef(ptr %636)
  br label %1049

1046:
  %1047 = phi ptr [ %974, %969 ], [ %968, %962 ], [ %1009, %1044 ], [ %1009, %1001 ]
  call void @Py_DecRef(ptr %636)
  %1048 = icmp eq ptr %1047, null
  br i1 %1048, label %1049, label %1051

1049:
  %1050 = load ptr, ptr %17, align 8
  call fastcc void @strip_traceback(ptr %1050)
  br label %1055

1051:
  call void @Py_DecRef(ptr %1047)
  %1052 = getelementptr inbounds nuw i8, ptr %482, i64 64
  %1053 = load ptr, ptr %1052, align 8
  call void @Py_IncRef(ptr %1053)
  %1054 = load ptr, ptr %1052, align 8
  br label %1055

1055:
  %1056 = phi ptr [ %527, %520 ], [ %560, %557 ], [ %581, %574 ], [ %865, %859 ], [ %634, %623 ], [ %620, %613 ], [ null, %611 ], [ %858, %849 ], [ %1054, %1051 ], [ null, %1049 ]
  call void @Py_DecRef(ptr %486)
  br label %1059

1057:
  %1058 = call fastcc ptr @launch_new(ptr %14, i64 %456)
  br label %1059

1059:
  %1060 = phi ptr [ %1056, %1055 ], [ %1058, %1057 ]
  %1061 = getelementptr inbounds nuw i8, ptr %14, i64 56
  %1062 = load i64, ptr %36, align 8
  %1063 = icmp eq i64 %1062, 0
  br i1 %1063, label %1073, label %1064

1064:
  %1065 = phi i64 [ %1071, %1070 ], [ 0, %1059 ]
  %1066 = getelementptr inbounds nuw ptr, ptr %1061, i64 %1065
  %1067 = load ptr, ptr %1066, align 8
  %1068 = icmp eq ptr %1067, null
  br i1 %1068, label %1070, label %1069

1069:
  call void @Py_DecRef(ptr %1067)
  br label %1070

1070:
  %1071 = add nuw i64 %1065, 1
  %1072 = icmp eq i64 %1071, %1062
  br i1 %1072, label %1073, label %1064

1073:
  %1074 = getelementptr inbounds nuw i8, ptr %14, i64 1088
  %1075 = load i64, ptr %35, align 8
  %1076 = icmp eq i64 %1075, 0
  br i1 %1076, label %1086, label %1077

1077:
  %1078 = phi i64 [ %1084, %1083 ], [ 0, %1073 ]
  %1079 = getelementptr inbounds nuw ptr, ptr %1074, i64 %1078
  %1080 = load ptr, ptr %1079, align 8
  %1081 = icmp eq ptr %1080, null
  br i1 %1081, label %1083, label %1082

1082:
  call void @Py_DecRef(ptr %1080)
  br label %1083

1083:
  %1084 = add nuw i64 %1078, 1
  %1085 = icmp eq i64 %1084, %1075
  br i1 %1085, label %1086, label %1077

1086:
  %1087 = phi ptr [ %429, %422 ], [ %1060, %1073 ], [ %1060, %1083 ]
  ret ptr %1087
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
  %20 = getelementptr inbounds nuw i8, ptr %0, i64 3200
  %21 = mul i64 %19, 24
  %22 = getelementptr inbounds nuw i8, ptr %20, i64 %21
  store i64 %1, ptr %22, align 8
  %23 = add i64 %21, 8
  %24 = call ptr @PyBytes_FromStringAndSize(ptr %20, i64 %23)
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 2624
  store ptr %24, ptr %25, align 8
  %26 = getelementptr inbounds nuw i8, ptr %0, i64 2632
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
  %14 = getelementptr inbounds nuw i8, ptr %0, i64 3200
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 568
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 1600
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
  %59 = getelementptr inbounds nuw i8, ptr %58, i64 3216
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
  %17 = getelementptr inbounds nuw i8, ptr %12, i64 152
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
  %33 = getelementptr inbounds nuw i8, ptr %12, i64 160
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
  %43 = getelementptr inbounds nuw i8, ptr %12, i64 136
  %44 = load ptr, ptr %43, align 8
  %45 = call ptr @PyObject_Vectorcall(ptr %44, ptr %7, i64 1, ptr null)
  call void @Py_DecRef(ptr %45)
  call void @PyErr_Clear()
  br label %184

46:
  %47 = getelementptr inbounds nuw i8, ptr %12, i64 224
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
  %57 = getelementptr inbounds nuw i8, ptr %12, i64 296
  %58 = load i64, ptr %57, align 8
  %59 = getelementptr inbounds nuw i8, ptr %1, i64 %58
  %60 = load ptr, ptr %59, align 8
  %61 = getelementptr inbounds nuw i8, ptr %12, i64 304
  %62 = load i64, ptr %61, align 8
  %63 = getelementptr inbounds nuw i8, ptr %60, i64 %62
  %64 = load i64, ptr %63, align 8
  %65 = getelementptr inbounds nuw i8, ptr %12, i64 312
  %66 = load i64, ptr %65, align 8
  %67 = and i64 %66, %64
  %68 = icmp eq i64 %67, 0
  br i1 %68, label %69, label %152

69:
  %70 = getelementptr inbounds nuw i8, ptr %12, i64 288
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
  %119 = getelementptr inbounds nuw i8, ptr %12, i64 72
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
  %127 = getelementptr inbounds nuw i8, ptr %12, i64 64
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
  %139 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %140 = load ptr, ptr %139, align 8
  %141 = call ptr @PyObject_GetAttr(ptr %1, ptr %140)
  %142 = icmp eq ptr %141, null
  br i1 %142, label %184, label %143

143:
  call void @Py_DecRef(ptr %141)
  %144 = getelementptr inbounds nuw i8, ptr %12, i64 48
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
  %155 = getelementptr inbounds nuw i8, ptr %0, i64 2112
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
  %169 = getelementptr inbounds nuw i8, ptr %168, i64 3216
  store i64 %167, ptr %169, align 8
  %170 = getelementptr inbounds nuw i8, ptr %0, i64 1600
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

define internal fastcc zeroext i1 @extents(ptr %0, ptr %1) nounwind {
  %3 = alloca i32, align 4
  %4 = alloca i32, align 4
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 2624
  %8 = getelementptr inbounds nuw i8, ptr %6, i64 40
  %9 = load ptr, ptr %8, align 8
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 2640
  store ptr %9, ptr %10, align 8
  %11 = getelementptr inbounds nuw i8, ptr %0, i64 2632
  store ptr %9, ptr %11, align 8
  %12 = load i64, ptr @object_bytes, align 8
  %13 = getelementptr inbounds i8, ptr %1, i64 %12
  %14 = getelementptr inbounds i8, ptr %13, i64 -8
  %15 = load ptr, ptr %14, align 8
  %16 = getelementptr inbounds nuw i8, ptr %6, i64 24
  %17 = load ptr, ptr %16, align 8
  %18 = icmp eq ptr %15, %17
  br i1 %18, label %28, label %19

19:
  store ptr %1, ptr %7, align 8
  %20 = load ptr, ptr %14, align 8
  %21 = load ptr, ptr %6, align 8
  %22 = icmp eq ptr %20, %21
  br i1 %22, label %23, label %26

23:
  %24 = call i64 @PyLong_AsLongLongAndOverflow(ptr %1, ptr %4)
  %25 = icmp ult i64 %24, 2147483648
  br label %26

26:
  %27 = phi i1 [ false, %19 ], [ %25, %23 ]
  br label %48

28:
  %29 = call i64 @PyTuple_Size(ptr %1)
  %30 = add i64 %29, -4
  %31 = icmp ult i64 %30, -3
  br i1 %31, label %48, label %32

32:
  %33 = phi i64 [ %45, %42 ], [ 0, %28 ]
  %34 = call ptr @PyTuple_GetItem(ptr %1, i64 %33)
  %35 = getelementptr inbounds nuw ptr, ptr %7, i64 %33
  store ptr %34, ptr %35, align 8
  %36 = getelementptr inbounds i8, ptr %34, i64 %12
  %37 = getelementptr inbounds i8, ptr %36, i64 -8
  %38 = load ptr, ptr %37, align 8
  %39 = load ptr, ptr %6, align 8
  %40 = icmp eq ptr %38, %39
  br i1 %40, label %42, label %41

41:
  br label %48

42:
  %43 = call i64 @PyLong_AsLongLongAndOverflow(ptr %34, ptr %3)
  %44 = icmp ult i64 %43, 2147483648
  %45 = add nuw nsw i64 %33, 1
  %46 = icmp ne i64 %45, %29
  %47 = select i1 %44, i1 %46, i1 false
  br i1 %47, label %32, label %48

48:
  %49 = phi i1 [ %27, %26 ], [ false, %28 ], [ false, %41 ], [ %44, %42 ]
  ret i1 %49
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
  %10 = getelementptr inbounds nuw i8, ptr %0, i64 144
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
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 152
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
  %44 = getelementptr inbounds nuw i8, ptr %13, i64 224
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
  %54 = getelementptr inbounds nuw i8, ptr %0, i64 2112
  %55 = getelementptr inbounds nuw i64, ptr %54, i64 %1
  %56 = load i64, ptr %55, align 8
  %57 = mul i64 %56, %2
  br label %67

58:
  %59 = getelementptr inbounds nuw i8, ptr %13, i64 80
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

declare ptr @PyBytes_FromStringAndSize(ptr, i64)

declare i64 @llvm.umin.i64(i64, i64)
