"""Let an interrupt end any call at once, whatever the call is doing.

Python handles signals in the main thread, between two of its own instructions. A compiled loop has
no such instructions, so a signal would wait until the loop ends. An exception that is raised while
results are handed back, or in a callback or a finalizer, is lost or fatal. Therefore every public
call that may take long runs in a thread of its own while the main thread waits. An interrupt ends
the wait. The abandoned work ends at its next checkpoint.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

PATIENCE = 0.5  # seconds between two looks for signals, where waiting for a lock ignores these
GRACE = 0.5  # seconds to wait for abandoned work to reach a checkpoint
IMPORT_WAIT = 0.02  # seconds between two looks at an import that goes on
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"  # the file of its frames


class Abandoned(BaseException):
    """Raised by `checkpoint` to end abandoned work."""


def interruptible(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make an interrupt end a call of the function at once, with the exception of the handler."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return run_interruptibly(lambda: function(*args, **kwargs))

    return call


def run_interruptibly(work: Callable[[], Answer]) -> Answer:
    """Run the work in a thread of its own while the main thread waits, and return its answer.

    Only the main thread receives signals, so a call from any other thread runs there. A call under
    a profiler or debugger also runs in its own thread, since these would see only the waiting.
    """
    watched = sys.getprofile() is not None or sys.gettrace() is not None
    if watched or threading.current_thread() is not threading.main_thread():
        return work()
    return run_in_thread(work)


def run_in_thread(work: Callable[[], Answer]) -> Answer:
    """Run the work in a thread of its own, wait for it, and return its answer."""
    _wait_for_imports()
    call = _Call(work)
    try:
        call.thread.start()
        while not call.ended.wait(PATIENCE):
            pass
    except BaseException:
        call.abandoned = True
        if call.thread.is_alive():
            call.thread.join(GRACE)
            _abandoned.append(call.thread)
        raise
    answer: Answer = call.answer()
    return answer


def checkpoint() -> None:
    """Raise `Abandoned` if the work of this thread has been abandoned."""
    call: _Call | None = getattr(_here, "call", None)
    if call is not None and call.abandoned:
        raise Abandoned


def _wait_for_imports() -> None:
    """Wait until no abandoned work is importing modules.

    Two threads that import parts of one package at once may find it half imported.
    """
    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    while any(_is_importing(thread) for thread in _abandoned):
        time.sleep(IMPORT_WAIT)


def _is_importing(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != IMPORT_SYSTEM:
        frame = frame.f_back
    return frame is not None


_abandoned: list[threading.Thread] = []
_here = threading.local()


class _Call:
    """Work in a thread of its own, and its value or error."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.abandoned = work, False
        self.ended = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        # a daemon, so that the process does not wait for abandoned work at exit
        self.thread = threading.Thread(
            target=copy_context().run, args=(self.run,), name="crossedge", daemon=True
        )

    def run(self) -> None:
        _here.call = self
        try:
            self.value = self.work()
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def answer(self) -> Any:
        """Return the value of the work, or raise its error."""
        try:
            if self.error is not None:
                raise self.error
            return self.value
        finally:
            del self  # the traceback of the error refers to this frame
