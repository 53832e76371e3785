; For processors without such an instruction.
define internal void @pause() nounwind alwaysinline {
  ret void
}
