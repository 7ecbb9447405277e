"""The paper's figures, from public names only."""
