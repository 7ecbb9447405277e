"""The command: `crossedge`, `python -m crossedge`, and `torchrun -m crossedge` for several."""

import os
import signal
import sys
from typing import NoReturn

BROKEN_PIPE = 128 + 13  # exit codes as a shell reports them: 128 and the number of the signal
INTERRUPTED = 128 + 2


def command() -> NoReturn:
    """Run the command and end the process with its exit code.

    After an interrupt the process ends at once: abandoned work may be deep in a compiled loop, and
    must neither delay nor crash the end. Whoever reads the output may close the pipe early, which
    is no error.
    """
    try:
        try:
            from crossedge.cli import main

            code = main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:  # while `cli` was imported
        print("crossedge: interrupted", file=sys.stderr, flush=True)
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed again at the end
        code = BROKEN_PIPE
    if code == INTERRUPTED:
        os._exit(code)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the answer is out: end without a traceback
    sys.exit(code)


if __name__ == "__main__":
    command()
