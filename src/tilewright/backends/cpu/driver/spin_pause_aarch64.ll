declare void @llvm.aarch64.hint(i32)

; Tells the processor that this is a loop that waits: `yield`.
define internal void @pause() nounwind alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
