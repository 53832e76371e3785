"""Tile IR that the tests of the tools work on."""

SCALE = """\
func @scale(%x: ptr<f32>, %out: ptr<f32>, %factor: f32) {
  %pid = cf.program_id {axis = 0} : i32
  %block = arith.constant {value = 64} : i32
  %start = arith.mul %pid, %block : i32
  %starts = tile.splat %start {shape = [64]} : tile<64xi32>
  %range = tile.range {start = 0, end = 64} : tile<64xi32>
  %i = arith.add %starts, %range : tile<64xi32>
  %xs = tile.splat %x {shape = [64]} : tile<64xptr<f32>>
  %p = mem.offset %xs, %i : tile<64xptr<f32>>
  %v = mem.load %p : tile<64xf32>
  %one = arith.constant {value = 1.0} : tile<64xf32>
  %same = arith.mul %v, %one : tile<64xf32>
  %factors = tile.splat %factor {shape = [64]} : tile<64xf32>
  %scaled = arith.mul %same, %factors : tile<64xf32>
  %outs = tile.splat %out {shape = [64]} : tile<64xptr<f32>>
  %q = mem.offset %outs, %i : tile<64xptr<f32>>
  mem.store %q, %scaled
  cf.return
}
"""
"""out = x * factor for 64 elements of each program, with a multiplication by one to remove."""
