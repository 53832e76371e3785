"""`python -m benchmarks.cpu`"""

from benchmarks.cpu.against_torch import main

main()
