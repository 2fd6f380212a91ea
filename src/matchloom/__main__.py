"""`python -m matchloom` is the command `matchloom`."""

import sys

from matchloom.cli import main

if __name__ == "__main__":
    sys.exit(main())
