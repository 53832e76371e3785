; Generated from launch.c by scripts/compile_native.py.

%struct.LaunchConfig = type { i32, i32, i32, i32, i32, i32, i32, ptr, ptr, i32 }
%struct.Parameter = type { i64, i64, i64, i64, ptr }
%struct.MapTable = type { i64, ptr, ptr, i64 }
%struct.MapEntry = type { i64, [10 x i64], [128 x i8] }
%struct.LogEntry = type { i64, i32, i32, i32, i64 }

@PyExc_TypeError = external global ptr, align 8
@.str = private constant [33 x i8] c"wrong number of launch arguments\00", align 1
@object_bytes = external constant i64, align 8

define ptr @tw_launch(ptr %0, ptr %1, i64 %2) nounwind {
  %4 = alloca [4 x ptr], align 16
  %5 = alloca [6 x ptr], align 16
  %6 = alloca %struct.LaunchConfig, align 8
  %7 = alloca [3 x ptr], align 16
  %8 = alloca [3 x ptr], align 16
  %9 = alloca [10 x i64], align 16
  %10 = alloca i32, align 4
  %11 = alloca [2 x ptr], align 16
  %12 = call ptr @PyLong_AsVoidPtr(ptr %0)
  %13 = getelementptr inbounds nuw i8, ptr %12, i64 192
  %14 = load i64, ptr %13, align 8
  %15 = icmp eq i64 %2, %14
  br i1 %15, label %18, label %16

16:
  %17 = load ptr, ptr @PyExc_TypeError, align 8
  call void @PyErr_SetString(ptr %17, ptr @.str)
  br label %425

18:
  %19 = getelementptr inbounds nuw i8, ptr %12, i64 208
  %20 = load ptr, ptr %19, align 8
  %21 = getelementptr inbounds nuw i8, ptr %12, i64 200
  %22 = load i64, ptr %21, align 8
  %23 = add i64 %22, 1
  %24 = call ptr @llvm.stacksave.p0()
  %25 = alloca i64, i64 %23, align 16
  %26 = getelementptr inbounds nuw i8, ptr %12, i64 216
  %27 = load i64, ptr %26, align 8
  %28 = add i64 %23, %27
  %29 = alloca ptr, i64 %28, align 16
  %30 = shl i64 %27, 7
  %31 = add i64 %30, 128
  %32 = alloca i8, i64 %31, align 64
  %33 = icmp sgt i64 %22, 0
  br i1 %33, label %34, label %155

34:
  %35 = getelementptr inbounds nuw i8, ptr %1, i64 32
  %36 = load i64, ptr @object_bytes, align 8
  %37 = getelementptr inbounds nuw i8, ptr %12, i64 160
  %38 = getelementptr inbounds nuw i8, ptr %12, i64 152
  %39 = getelementptr inbounds nuw i8, ptr %12, i64 104
  %40 = getelementptr inbounds nuw i8, ptr %12, i64 88
  %41 = getelementptr inbounds nuw i8, ptr %12, i64 72
  %42 = getelementptr inbounds nuw i8, ptr %12, i64 80
  %43 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %44 = getelementptr inbounds nuw i8, ptr %12, i64 120
  br label %45

45:
  %46 = phi i64 [ 0, %34 ], [ %151, %150 ]
  %47 = getelementptr inbounds nuw i64, ptr %25, i64 %46
  %48 = getelementptr inbounds nuw ptr, ptr %29, i64 %46
  store ptr %47, ptr %48, align 8
  %49 = getelementptr inbounds nuw %struct.Parameter, ptr %20, i64 %46
  %50 = getelementptr inbounds nuw i8, ptr %49, i64 8
  %51 = load i64, ptr %50, align 8
  %52 = getelementptr inbounds ptr, ptr %35, i64 %51
  %53 = load ptr, ptr %52, align 8
  %54 = load i64, ptr %49, align 8
  switch i64 %54, label %138 [
    i64 0, label %55
    i64 1, label %113
    i64 2, label %142
    i64 3, label %129
    i64 4, label %135
  ]

55:
  %56 = getelementptr inbounds i8, ptr %53, i64 %36
  %57 = getelementptr inbounds i8, ptr %56, i64 -8
  %58 = load ptr, ptr %57, align 8
  %59 = load ptr, ptr %37, align 8
  %60 = icmp eq ptr %58, %59
  br i1 %60, label %61, label %63

61:
  %62 = call i64 @PyLong_AsUnsignedLongLong(ptr %53)
  store i64 %62, ptr %47, align 8
  br label %76

63:
  %64 = load ptr, ptr %38, align 8
  %65 = icmp eq ptr %53, %64
  br i1 %65, label %66, label %67

66:
  store i64 0, ptr %47, align 8
  br label %150

67:
  %68 = load ptr, ptr %39, align 8
  %69 = call ptr @PyObject_VectorcallMethod(ptr %68, ptr %52, i64 1, ptr null)
  %70 = icmp eq ptr %69, null
  br i1 %70, label %71, label %73

71:
  %72 = call fastcc zeroext i1 @convert(ptr %12, i64 %51, ptr %53, ptr %47)
  br i1 %72, label %150, label %423

73:
  %74 = call i64 @PyLong_AsUnsignedLongLong(ptr %69)
  store i64 %74, ptr %47, align 8
  call void @Py_DecRef(ptr %69)
  %75 = load i64, ptr %47, align 8
  br label %76

76:
  %77 = phi i64 [ %75, %73 ], [ %62, %61 ]
  switch i64 %77, label %80 [
    i64 0, label %150
    i64 -1, label %78
  ]

78:
  %79 = call fastcc zeroext i1 @convert(ptr %12, i64 %51, ptr %53, ptr %47)
  br i1 %79, label %150, label %423

80:
  %81 = lshr i64 %77, 12
  %82 = load ptr, ptr %40, align 8
  %83 = lshr i64 %77, 21
  %84 = xor i64 %81, %83
  %85 = and i64 %84, 32767
  %86 = getelementptr inbounds nuw i64, ptr %82, i64 %85
  %87 = load i64, ptr %86, align 8
  %88 = icmp eq i64 %87, %81
  br i1 %88, label %150, label %89

89:
  %90 = load ptr, ptr %41, align 8
  %91 = call i32 %90(ptr %10, i32 9, i64 %77)
  %92 = icmp eq i32 %91, 0
  br i1 %92, label %93, label %98

93:
  %94 = load i32, ptr %10, align 4
  %95 = load i32, ptr %42, align 8
  %96 = icmp eq i32 %94, %95
  br i1 %96, label %97, label %98

97:
  store i64 %81, ptr %86, align 8
  br label %150

98:
  %99 = call ptr @PyLong_FromLongLong(i64 %51)
  store ptr %99, ptr %11, align 16
  %100 = call ptr @PyLong_FromUnsignedLongLong(i64 %77)
  store ptr %100, ptr %43, align 8
  %101 = load ptr, ptr %44, align 8
  %102 = call ptr @PyObject_Vectorcall(ptr %101, ptr %11, i64 2, ptr null)
  br label %103

103:
  %104 = phi i64 [ 0, %98 ], [ %107, %103 ]
  %105 = getelementptr inbounds nuw ptr, ptr %11, i64 %104
  %106 = load ptr, ptr %105, align 8
  call void @Py_DecRef(ptr %106)
  %107 = add nuw nsw i64 %104, 1
  %108 = icmp eq i64 %107, 2
  br i1 %108, label %109, label %103

109:
  %110 = icmp eq ptr %102, null
  br i1 %110, label %112, label %111

111:
  call void @Py_DecRef(ptr %102)
  br label %150

112:
  br label %423

113:
  %114 = call i64 @PyLong_AsLongLong(ptr %53)
  store i64 %114, ptr %47, align 8
  %115 = getelementptr inbounds nuw i8, ptr %49, i64 16
  %116 = load i64, ptr %115, align 8
  %117 = shl i64 %114, %116
  %118 = getelementptr inbounds nuw i8, ptr %49, i64 24
  %119 = load i64, ptr %118, align 8
  %120 = icmp eq i64 %119, 0
  %121 = ashr exact i64 %117, %116
  %122 = lshr exact i64 %117, %116
  %123 = select i1 %120, i64 %122, i64 %121
  %124 = icmp eq i64 %114, %123
  br i1 %124, label %127, label %125

125:
  %126 = call fastcc zeroext i1 @convert(ptr %12, i64 %51, ptr %53, ptr %47)
  br i1 %126, label %150, label %423

127:
  %128 = icmp eq i64 %114, -1
  br i1 %128, label %145, label %150

129:
  %130 = call double @PyFloat_AsDouble(ptr %53)
  %131 = fptrunc double %130 to float
  %132 = bitcast float %131 to i32
  %133 = zext i32 %132 to i64
  store i64 %133, ptr %47, align 8
  %134 = fcmp oeq double %130, -1.000000e+00
  br i1 %134, label %145, label %150

135:
  %136 = call double @PyFloat_AsDouble(ptr %53)
  store double %136, ptr %47, align 8
  %137 = fcmp oeq double %136, -1.000000e+00
  br i1 %137, label %145, label %150

138:
  %139 = getelementptr inbounds nuw i8, ptr %49, i64 32
  %140 = load ptr, ptr %139, align 8
  %141 = call zeroext i1 %140(ptr %12, i64 %51, ptr %53, ptr %47)
  br i1 %141, label %150, label %423

142:
  %143 = call i64 @PyLong_AsUnsignedLongLong(ptr %53)
  store i64 %143, ptr %47, align 8
  %144 = icmp eq i64 %143, -1
  br i1 %144, label %145, label %150

145:
  %146 = call ptr @PyErr_Occurred()
  %147 = icmp eq ptr %146, null
  br i1 %147, label %150, label %148

148:
  %149 = call fastcc zeroext i1 @convert(ptr %12, i64 %51, ptr %53, ptr %47)
  br i1 %149, label %150, label %423

150:
  %151 = add nuw nsw i64 %46, 1
  %152 = icmp eq i64 %151, %22
  br i1 %152, label %153, label %45

153:
  %154 = load i64, ptr %26, align 8
  br label %155

155:
  %156 = phi i64 [ %154, %153 ], [ %27, %18 ]
  %157 = icmp eq i64 %156, 0
  br i1 %157, label %229, label %158

158:
  %159 = getelementptr inbounds ptr, ptr %29, i64 %22
  %160 = icmp slt i64 %156, 1
  br i1 %160, label %229, label %161

161:
  %162 = getelementptr inbounds nuw i8, ptr %12, i64 224
  br label %163

163:
  %164 = phi i64 [ 0, %161 ], [ %226, %225 ]
  %165 = shl i64 %164, 7
  %166 = getelementptr inbounds i8, ptr %32, i64 %165
  %167 = getelementptr inbounds nuw ptr, ptr %159, i64 %164
  store ptr %166, ptr %167, align 8
  %168 = load ptr, ptr %162, align 8
  %169 = getelementptr inbounds nuw %struct.MapTable, ptr %168, i64 %164
  %170 = getelementptr inbounds nuw i8, ptr %169, i64 16
  %171 = load ptr, ptr %170, align 8
  %172 = getelementptr inbounds nuw i8, ptr %169, i64 8
  %173 = load ptr, ptr %172, align 8
  %174 = load i64, ptr %169, align 8
  %175 = icmp sgt i64 %174, 0
  br i1 %175, label %176, label %190

176:
  %177 = phi i64 [ %186, %176 ], [ 0, %163 ]
  %178 = phi i64 [ %185, %176 ], [ 0, %163 ]
  %179 = getelementptr inbounds nuw i64, ptr %173, i64 %177
  %180 = load i64, ptr %179, align 8
  %181 = getelementptr inbounds i64, ptr %25, i64 %180
  %182 = load i64, ptr %181, align 8
  %183 = getelementptr inbounds nuw i64, ptr %9, i64 %177
  store i64 %182, ptr %183, align 8
  %184 = xor i64 %182, %178
  %185 = mul i64 %184, -7046029254386353131
  %186 = add nuw nsw i64 %177, 1
  %187 = icmp eq i64 %186, %174
  br i1 %187, label %188, label %176

188:
  %189 = lshr i64 %185, 56
  br label %190

190:
  %191 = phi i64 [ 0, %163 ], [ %189, %188 ]
  %192 = getelementptr inbounds nuw %struct.MapEntry, ptr %171, i64 %191
  %193 = icmp slt i64 %174, 1
  br label %194

194:
  %195 = phi i64 [ 0, %190 ], [ %212, %211 ]
  %196 = getelementptr inbounds nuw i8, ptr %192, i64 %195
  %197 = load i64, ptr %196, align 8
  %198 = icmp eq i64 %197, 0
  br i1 %198, label %223, label %199

199:
  %200 = getelementptr inbounds nuw i8, ptr %196, i64 8
  br i1 %193, label %221, label %204

201:
  %202 = add nuw nsw i64 %205, 1
  %203 = icmp eq i64 %202, %174
  br i1 %203, label %221, label %204

204:
  %205 = phi i64 [ %202, %201 ], [ 0, %199 ]
  %206 = getelementptr inbounds nuw i64, ptr %200, i64 %205
  %207 = load i64, ptr %206, align 8
  %208 = getelementptr inbounds nuw i64, ptr %9, i64 %205
  %209 = load i64, ptr %208, align 8
  %210 = icmp eq i64 %207, %209
  br i1 %210, label %201, label %211

211:
  %212 = add nuw nsw i64 %195, 216
  %213 = icmp samesign ugt i64 %195, 647
  br i1 %213, label %214, label %194

214:
  %215 = getelementptr inbounds nuw i8, ptr %169, i64 24
  %216 = load i64, ptr %215, align 8
  %217 = add i64 %216, 1
  store i64 %217, ptr %215, align 8
  %218 = and i64 %216, 3
  %219 = getelementptr inbounds nuw %struct.MapEntry, ptr %192, i64 %218
  %220 = call fastcc zeroext i1 @make_map(ptr %12, i64 %164, ptr %9, ptr %219, ptr %166)
  br i1 %220, label %225, label %423

221:
  %222 = getelementptr inbounds nuw i8, ptr %196, i64 88
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %166, ptr align 8 %222, i64 128, i1 false)
  br label %225

223:
  %224 = call fastcc zeroext i1 @make_map(ptr %12, i64 %164, ptr %9, ptr %196, ptr %166)
  br i1 %224, label %225, label %423

225:
  %226 = add nuw nsw i64 %164, 1
  %227 = load i64, ptr %26, align 8
  %228 = icmp slt i64 %226, %227
  br i1 %228, label %163, label %229

229:
  %230 = load ptr, ptr %1, align 8
  %231 = call i64 @PyLong_AsLongLong(ptr %230)
  %232 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %233 = load ptr, ptr %232, align 8
  %234 = call i64 @PyLong_AsLongLong(ptr %233)
  %235 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %236 = load ptr, ptr %235, align 8
  %237 = call i64 @PyLong_AsLongLong(ptr %236)
  %238 = or i64 %234, %231
  %239 = or i64 %238, %237
  %240 = icmp ult i64 %239, 2147483648
  br i1 %240, label %264, label %241

241:
  call void @PyErr_Clear()
  %242 = load ptr, ptr %1, align 8
  store ptr %242, ptr %8, align 16
  %243 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %244 = load ptr, ptr %232, align 8
  store ptr %244, ptr %243, align 8
  %245 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %246 = load ptr, ptr %235, align 8
  store ptr %246, ptr %245, align 16
  br label %257

247:
  %248 = getelementptr inbounds nuw i8, ptr %12, i64 128
  %249 = load ptr, ptr %248, align 8
  %250 = call ptr @PyObject_Vectorcall(ptr %249, ptr %8, i64 3, ptr null)
  br label %251

251:
  %252 = phi i64 [ 0, %247 ], [ %255, %251 ]
  %253 = getelementptr inbounds nuw ptr, ptr %8, i64 %252
  %254 = load ptr, ptr %253, align 8
  call void @Py_DecRef(ptr %254)
  %255 = add nuw nsw i64 %252, 1
  %256 = icmp eq i64 %255, 3
  br i1 %256, label %263, label %251

257:
  %258 = phi i64 [ 0, %241 ], [ %261, %257 ]
  %259 = getelementptr inbounds nuw ptr, ptr %8, i64 %258
  %260 = load ptr, ptr %259, align 8
  call void @Py_IncRef(ptr %260)
  %261 = add nuw nsw i64 %258, 1
  %262 = icmp eq i64 %261, 3
  br i1 %262, label %247, label %257

263:
  br label %423

264:
  %265 = icmp ne i64 %231, 0
  %266 = icmp ne i64 %234, 0
  %267 = select i1 %265, i1 %266, i1 false
  %268 = icmp ne i64 %237, 0
  %269 = and i1 %267, %268
  br i1 %269, label %270, label %419

270:
  %271 = getelementptr inbounds nuw i8, ptr %12, i64 176
  %272 = load i64, ptr %271, align 8
  %273 = icmp eq i64 %272, 0
  br i1 %273, label %274, label %279

274:
  %275 = getelementptr inbounds nuw i8, ptr %12, i64 168
  %276 = load i64, ptr %275, align 8
  %277 = mul i64 %276, %231
  %278 = icmp ugt i64 %277, 2147483647
  br i1 %278, label %284, label %313

279:
  %280 = mul i64 %234, %231
  %281 = call i64 @llvm.umin.i64(i64 %280, i64 2147483648)
  %282 = mul nuw nsw i64 %281, %237
  %283 = icmp samesign ugt i64 %282, 2147483647
  br i1 %283, label %284, label %307

284:
  call void @PyErr_Clear()
  %285 = load ptr, ptr %1, align 8
  store ptr %285, ptr %7, align 16
  %286 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %287 = load ptr, ptr %232, align 8
  store ptr %287, ptr %286, align 8
  %288 = getelementptr inbounds nuw i8, ptr %7, i64 16
  %289 = load ptr, ptr %235, align 8
  store ptr %289, ptr %288, align 16
  br label %300

290:
  %291 = getelementptr inbounds nuw i8, ptr %12, i64 128
  %292 = load ptr, ptr %291, align 8
  %293 = call ptr @PyObject_Vectorcall(ptr %292, ptr %7, i64 3, ptr null)
  br label %294

294:
  %295 = phi i64 [ 0, %290 ], [ %298, %294 ]
  %296 = getelementptr inbounds nuw ptr, ptr %7, i64 %295
  %297 = load ptr, ptr %296, align 8
  call void @Py_DecRef(ptr %297)
  %298 = add nuw nsw i64 %295, 1
  %299 = icmp eq i64 %298, 3
  br i1 %299, label %306, label %294

300:
  %301 = phi i64 [ 0, %284 ], [ %304, %300 ]
  %302 = getelementptr inbounds nuw ptr, ptr %7, i64 %301
  %303 = load ptr, ptr %302, align 8
  call void @Py_IncRef(ptr %303)
  %304 = add nuw nsw i64 %301, 1
  %305 = icmp eq i64 %304, 3
  br i1 %305, label %290, label %300

306:
  br label %423

307:
  %308 = getelementptr inbounds nuw i8, ptr %12, i64 184
  %309 = load i64, ptr %308, align 8
  %310 = and i64 %309, %282
  %311 = add nuw nsw i64 %310, %282
  %312 = call i64 @llvm.umin.i64(i64 %311, i64 %272)
  br label %313

313:
  %314 = phi i64 [ %312, %307 ], [ %277, %274 ]
  %315 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %316 = load ptr, ptr %315, align 8
  %317 = call ptr @PyLong_AsVoidPtr(ptr %316)
  %318 = icmp eq ptr %317, null
  br i1 %318, label %319, label %322

319:
  %320 = call ptr @PyErr_Occurred()
  %321 = icmp eq ptr %320, null
  br i1 %321, label %322, label %423

322:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %6, ptr align 8 %12, i64 56, i1 false)
  %323 = load i64, ptr %271, align 8
  %324 = icmp eq i64 %323, 0
  %325 = trunc nuw i64 %314 to i32
  store i32 %325, ptr %6, align 8
  %326 = trunc i64 %234 to i32
  %327 = trunc nuw nsw i64 %237 to i32
  %328 = select i1 %324, i32 %326, i32 1
  %329 = select i1 %324, i32 %327, i32 1
  %330 = getelementptr inbounds nuw i8, ptr %6, i64 4
  store i32 %328, ptr %330, align 4
  %331 = getelementptr inbounds nuw i8, ptr %6, i64 8
  store i32 %329, ptr %331, align 8
  %332 = getelementptr inbounds nuw i8, ptr %6, i64 32
  store ptr %317, ptr %332, align 8
  %333 = getelementptr inbounds nuw i8, ptr %12, i64 96
  %334 = load ptr, ptr %333, align 8
  %335 = getelementptr inbounds nuw i8, ptr %334, i64 8
  %336 = load i64, ptr %334, align 8
  %337 = add i64 %336, 1
  store i64 %337, ptr %334, align 8
  %338 = and i64 %336, 63
  %339 = getelementptr inbounds nuw %struct.LogEntry, ptr %335, i64 %338
  %340 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %341 = load ptr, ptr %340, align 8
  %342 = ptrtoint ptr %341 to i64
  %343 = trunc i64 %231 to i32
  %344 = ptrtoint ptr %317 to i64
  store i64 %342, ptr %339, align 8
  %345 = getelementptr inbounds nuw i8, ptr %339, i64 8
  store i32 %343, ptr %345, align 8
  %346 = getelementptr inbounds nuw i8, ptr %339, i64 12
  store i32 %326, ptr %346, align 4
  %347 = getelementptr inbounds nuw i8, ptr %339, i64 16
  store i32 %327, ptr %347, align 8
  %348 = getelementptr inbounds nuw i8, ptr %339, i64 20
  store i32 0, ptr %348, align 4
  %349 = getelementptr inbounds nuw i8, ptr %339, i64 24
  store i64 %344, ptr %349, align 8
  %350 = getelementptr inbounds nuw i8, ptr %12, i64 64
  %351 = load ptr, ptr %350, align 8
  %352 = call ptr @PyEval_SaveThread()
  %353 = load ptr, ptr %340, align 8
  %354 = call i32 %351(ptr %6, ptr %353, ptr %29, ptr null)
  call void @PyEval_RestoreThread(ptr %352)
  %355 = icmp eq i32 %354, 0
  br i1 %355, label %395, label %356

356:
  %357 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %358 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %359 = getelementptr inbounds nuw i8, ptr %5, i64 24
  %360 = getelementptr inbounds nuw i8, ptr %5, i64 32
  %361 = getelementptr inbounds nuw i8, ptr %5, i64 40
  %362 = getelementptr inbounds nuw i8, ptr %12, i64 136
  br label %363

363:
  %364 = phi i32 [ %354, %356 ], [ %392, %389 ]
  %365 = phi i64 [ 0, %356 ], [ 1, %389 ]
  %366 = sext i32 %364 to i64
  %367 = call ptr @PyLong_FromLongLong(i64 %366)
  store ptr %367, ptr %5, align 16
  %368 = call ptr @PyLong_FromLongLong(i64 %365)
  store ptr %368, ptr %357, align 8
  br label %369

369:
  %370 = phi i64 [ 16, %363 ], [ %372, %369 ]
  %371 = getelementptr inbounds nuw i8, ptr %5, i64 %370
  store ptr null, ptr %371, align 8
  %372 = add nuw nsw i64 %370, 8
  %373 = icmp eq i64 %372, 48
  br i1 %373, label %374, label %369

374:
  %375 = call ptr @PyLong_FromLongLong(i64 %231)
  store ptr %375, ptr %358, align 16
  %376 = call ptr @PyLong_FromLongLong(i64 %234)
  store ptr %376, ptr %359, align 8
  %377 = call ptr @PyLong_FromLongLong(i64 %237)
  store ptr %377, ptr %360, align 16
  %378 = call ptr @PyLong_FromUnsignedLongLong(i64 %344)
  store ptr %378, ptr %361, align 8
  %379 = load ptr, ptr %362, align 8
  %380 = call ptr @PyObject_Vectorcall(ptr %379, ptr %5, i64 6, ptr null)
  br label %381

381:
  %382 = phi i64 [ 0, %374 ], [ %385, %381 ]
  %383 = getelementptr inbounds nuw ptr, ptr %5, i64 %382
  %384 = load ptr, ptr %383, align 8
  call void @Py_DecRef(ptr %384)
  %385 = add nuw nsw i64 %382, 1
  %386 = icmp eq i64 %385, 6
  br i1 %386, label %387, label %381

387:
  %388 = icmp eq ptr %380, null
  br i1 %388, label %394, label %389

389:
  call void @Py_DecRef(ptr %380)
  %390 = call ptr @PyEval_SaveThread()
  %391 = load ptr, ptr %340, align 8
  %392 = call i32 %351(ptr %6, ptr %391, ptr %29, ptr null)
  call void @PyEval_RestoreThread(ptr %390)
  %393 = icmp eq i32 %392, 0
  br i1 %393, label %395, label %363

394:
  br label %423

395:
  %396 = getelementptr inbounds nuw i8, ptr %12, i64 144
  %397 = load ptr, ptr %396, align 8
  %398 = icmp eq ptr %397, null
  br i1 %398, label %419, label %399

399:
  %400 = call ptr @PyLong_FromLongLong(i64 %231)
  store ptr %400, ptr %4, align 16
  %401 = call ptr @PyLong_FromLongLong(i64 %234)
  %402 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store ptr %401, ptr %402, align 8
  %403 = call ptr @PyLong_FromLongLong(i64 %237)
  %404 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store ptr %403, ptr %404, align 16
  %405 = call ptr @PyLong_FromUnsignedLongLong(i64 %344)
  %406 = getelementptr inbounds nuw i8, ptr %4, i64 24
  store ptr %405, ptr %406, align 8
  %407 = load ptr, ptr %396, align 8
  %408 = call ptr @PyObject_Vectorcall(ptr %407, ptr %4, i64 4, ptr null)
  br label %409

409:
  %410 = phi i64 [ 0, %399 ], [ %413, %409 ]
  %411 = getelementptr inbounds nuw ptr, ptr %4, i64 %410
  %412 = load ptr, ptr %411, align 8
  call void @Py_DecRef(ptr %412)
  %413 = add nuw nsw i64 %410, 1
  %414 = icmp eq i64 %413, 4
  br i1 %414, label %415, label %409

415:
  %416 = icmp eq ptr %408, null
  br i1 %416, label %418, label %417

417:
  call void @Py_DecRef(ptr %408)
  br label %419

418:
  br label %423

419:
  %420 = getelementptr inbounds nuw i8, ptr %12, i64 152
  %421 = load ptr, ptr %420, align 8
  call void @Py_IncRef(ptr %421)
  %422 = load ptr, ptr %420, align 8
  br label %423

423:
  %424 = phi ptr [ null, %418 ], [ %422, %419 ], [ null, %263 ], [ null, %112 ], [ null, %319 ], [ null, %394 ], [ null, %223 ], [ null, %306 ], [ null, %214 ], [ null, %125 ], [ null, %71 ], [ null, %78 ], [ null, %138 ], [ null, %148 ]
  call void @llvm.stackrestore.p0(ptr %24)
  br label %425

425:
  %426 = phi ptr [ null, %16 ], [ %424, %423 ]
  ret ptr %426
}

declare ptr @PyLong_AsVoidPtr(ptr)

declare void @PyErr_SetString(ptr, ptr)

declare ptr @llvm.stacksave.p0()

declare void @llvm.stackrestore.p0(ptr)

declare i64 @PyLong_AsLongLong(ptr)

define internal fastcc zeroext i1 @convert(ptr %0, i64 %1, ptr %2, ptr %3) nounwind {
  %5 = alloca [2 x ptr], align 16
  call void @PyErr_Clear()
  %6 = call ptr @PyLong_FromLongLong(i64 %1)
  store ptr %6, ptr %5, align 16
  %7 = getelementptr inbounds nuw i8, ptr %5, i64 8
  store ptr %2, ptr %7, align 8
  call void @Py_IncRef(ptr %2)
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %9 = load ptr, ptr %8, align 8
  %10 = call ptr @PyObject_Vectorcall(ptr %9, ptr %5, i64 2, ptr null)
  br label %11

11:
  %12 = phi i64 [ 0, %4 ], [ %15, %11 ]
  %13 = getelementptr inbounds nuw ptr, ptr %5, i64 %12
  %14 = load ptr, ptr %13, align 8
  call void @Py_DecRef(ptr %14)
  %15 = add nuw nsw i64 %12, 1
  %16 = icmp eq i64 %15, 2
  br i1 %16, label %17, label %11

17:
  %18 = icmp eq ptr %10, null
  br i1 %18, label %23, label %19

19:
  %20 = call i64 @PyLong_AsUnsignedLongLong(ptr %10)
  store i64 %20, ptr %3, align 8
  call void @Py_DecRef(ptr %10)
  %21 = call ptr @PyErr_Occurred()
  %22 = icmp eq ptr %21, null
  br label %23

23:
  %24 = phi i1 [ %22, %19 ], [ false, %17 ]
  ret i1 %24
}

declare i64 @PyLong_AsUnsignedLongLong(ptr)

declare double @PyFloat_AsDouble(ptr)

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)

declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)

declare void @Py_DecRef(ptr)

declare ptr @PyLong_FromLongLong(i64)

declare ptr @PyLong_FromUnsignedLongLong(i64)

declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

declare void @PyErr_Clear()

declare void @Py_IncRef(ptr)

declare ptr @PyErr_Occurred()

define internal fastcc zeroext i1 @make_map(ptr %0, i64 %1, ptr %2, ptr %3, ptr %4) nounwind {
  %6 = alloca [2 x ptr], align 16
  %7 = call ptr @PyLong_FromLongLong(i64 %1)
  store ptr %7, ptr %6, align 16
  %8 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %9 = ptrtoint ptr %2 to i64
  %10 = call ptr @PyLong_FromUnsignedLongLong(i64 %9)
  store ptr %10, ptr %8, align 8
  %11 = getelementptr inbounds nuw i8, ptr %0, i64 232
  %12 = load ptr, ptr %11, align 8
  %13 = call ptr @PyObject_Vectorcall(ptr %12, ptr %6, i64 2, ptr null)
  br label %14

14:
  %15 = phi i64 [ 0, %5 ], [ %18, %14 ]
  %16 = getelementptr inbounds nuw ptr, ptr %6, i64 %15
  %17 = load ptr, ptr %16, align 8
  call void @Py_DecRef(ptr %17)
  %18 = add nuw nsw i64 %15, 1
  %19 = icmp eq i64 %18, 2
  br i1 %19, label %20, label %14

20:
  %21 = icmp ne ptr %13, null
  br i1 %21, label %22, label %26

22:
  %23 = call ptr @PyBytes_AsString(ptr %13)
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %4, ptr align 1 %23, i64 128, i1 false)
  %24 = getelementptr inbounds nuw i8, ptr %3, i64 88
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %24, ptr align 1 %23, i64 128, i1 false)
  call void @Py_DecRef(ptr %13)
  %25 = getelementptr inbounds nuw i8, ptr %3, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %25, ptr align 8 %2, i64 80, i1 false)
  store i64 1, ptr %3, align 8
  br label %26

26:
  ret i1 %21
}

declare ptr @PyBytes_AsString(ptr)

declare ptr @PyEval_SaveThread()

declare void @PyEval_RestoreThread(ptr)

declare i64 @llvm.umin.i64(i64, i64)
