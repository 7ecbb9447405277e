"""The experiments of the paper, run again with the public names of the library."""
