"""The command `crossedge`, also `python -m crossedge`, or `torchrun -m crossedge` in parallel."""

import os
import sys
from typing import NoReturn

# OpenMP reads this when torch is imported: waiting threads sleep, and leave the cores to others
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

BROKEN_PIPE, INTERRUPTED = 128 + 13, 128 + 2  # exit codes by which a shell reports these signals
WORK_THREAD_NAME = "crossedge"  # of threads that work while the main thread waits


def command() -> NoReturn:
    """Run the command and end the process with its exit code.

    If abandoned work is still running, the process ends at once: the work may be deep in a compiled
    loop, and must neither delay nor crash the exit. A reader that closes the pipe early is not an
    error.
    """
    try:
        try:
            import signal  # inside `try`, so that an interrupt meanwhile prints no traceback
            import threading

            from crossedge.cli.main import main

            code = main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        print("crossedge: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)
    except OSError as error:  # from the output: `main` handles all others
        # Python flushes the output once more at exit, which must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
        if not isinstance(error, BrokenPipeError):
            print(f"crossedge: {error}", file=sys.stderr)
            code = 2
    if any(thread.name == WORK_THREAD_NAME for thread in threading.enumerate()):
        os._exit(code)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is printed: exit without a traceback
    sys.exit(code)


if __name__ == "__main__":
    command()
