"""When two distances are equal but for rounding."""

# Two distances within this factor of each other are a tie: data rounded to 0.1 have ties in plan
# but, by the rounding of 0.1 itself, not in binary. Continuous data hardly ever come so close.
TIE = 1 + 1e-12
# At temperatures below this share of a distance, only such ties can be told from differences.
COLD = 1e-14
