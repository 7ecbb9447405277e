"""Tolerances within which distances count as equal, or as 0."""

# Two distances within this factor of each other tie. Data rounded to 0.1 have ties on paper but not
# in binary, where 0.1 itself is rounded. Distances of continuous data are hardly ever so close.
TIE = 1 + 1e-12
# At temperatures below this fraction of a distance, rounding could separate distances that tie, so
# differences within TIE are set to 0.
COLD = 1e-14
# Distances below 0 count as 0 if they are above minus this fraction of the largest one: rounding
# gives them, as in 1 - cosine.
NEGATIVE = 1e-6
