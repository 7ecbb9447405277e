"""The only package that deals with numba, threads, BLAS, interrupts and memory."""
