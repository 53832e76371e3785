; Where threads run, on systems that leave nobody a say in it.

define internal void @forget_cpus() nounwind alwaysinline {
  ret void
}

define internal void @note_cpu(i64 %slot) nounwind alwaysinline {
  ret void
}

define internal void @forget_cpu(i64 %slot) nounwind alwaysinline {
  ret void
}

define internal void @spread_threads(i64 %threads) nounwind alwaysinline {
  ret void
}
