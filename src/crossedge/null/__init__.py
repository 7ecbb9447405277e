"""The law of a statistic when labels are exchangeable: exact moments, permutations, p-values."""
