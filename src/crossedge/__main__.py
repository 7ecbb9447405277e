"""`python -m crossedge`, and `torchrun -m crossedge` for several processes."""

import sys

from crossedge.cli import main

if __name__ == "__main__":
    sys.exit(main())
