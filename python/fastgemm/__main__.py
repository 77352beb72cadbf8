"""`python -m fastgemm`, also installed as the script `fastgemm`."""

import sys

from ._cli import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
