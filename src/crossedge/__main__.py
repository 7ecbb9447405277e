"""The command: `crossedge`, `python -m crossedge`, and `torchrun -m crossedge` for several."""

import os
import sys
from typing import NoReturn

# read when torch is imported: threads that wait shall sleep, not keep the cores from other work
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

BROKEN_PIPE, INTERRUPTED = 128 + 13, 128 + 2  # as a shell reports these signals
WORK = "crossedge"  # the name of threads that work while the main thread waits


def command() -> NoReturn:
    """Run the command and end the process with its exit code.

    If work was abandoned and has not ended, the process ends at once: it may be deep in a compiled
    loop, and must neither delay nor crash the end. Whoever reads the output may close the pipe
    early, which is no error.
    """
    try:
        try:
            import signal  # here, like all that can be: an interrupt above prints a traceback
            import threading

            from crossedge.cli import main

            code = main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        print("crossedge: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)
    except OSError as error:  # of the output: `main` has seen to all others
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed again at the end
        code = BROKEN_PIPE
        if not isinstance(error, BrokenPipeError):
            print(f"crossedge: {error}", file=sys.stderr)
            code = 1
    if any(thread.name == WORK for thread in threading.enumerate()):
        os._exit(code)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the answer is out: end without a traceback
    sys.exit(code)


if __name__ == "__main__":
    command()
