"""`python -m experiments reproduce ...` and `python -m experiments corpus ...`: what `matchloom` does in a clone."""

import sys

from matchloom.cli import main

COMMANDS = ("reproduce", "corpus")

if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] not in COMMANDS:
        print(f"experiments: error: no command {sys.argv[1]!r}; choose one of {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1:] or ["reproduce", "--list"]))
