"""`python -m benchmarks.compile_time`"""

from benchmarks.compile_time.against_triton import main

main()
