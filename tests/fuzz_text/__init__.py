"""A structure-aware fuzzer of tile IR and Triton-C: no text may crash, hang, or show a traceback.

python -m tests.fuzz_text.run tile --count 50000 --compiled 0.15

corpus                       the texts that it starts from: goldens, kernels, mistakes
tile_mutations, c_mutations  changes after which many of them still are sentences
judge                        what becomes of a text, and what of that is a defect
smaller                      makes a text small that shows a defect
run, worker                  many texts in child processes, which may crash or hang
"""
