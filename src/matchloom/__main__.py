"""`python -m matchloom` is the command `matchloom`. It imports little, so that Ctrl-C is quiet from the start."""

import signal
import sys


def run() -> int:
    """Run the command. While Python still imports it, Ctrl-C ends the process at once and without a traceback."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # and not where a shell has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from matchloom.cli import main

    signal.signal(signal.SIGINT, handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())
