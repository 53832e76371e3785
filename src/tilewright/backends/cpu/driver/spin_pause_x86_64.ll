declare void @llvm.x86.sse2.pause()

; Tells the processor that this is a loop that waits.
define internal void @pause() nounwind alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
