"""Let an interrupt end any call at once, whatever the call is doing.

Python handles signals in the main thread, between two of its own instructions. A compiled loop has
none, so the process would be deaf until the loop ends; and an exception that is raised while
results are handed back, or in a callback or a finalizer, is lost or fatal. So every public call
that may take long does its work in a thread of its own while the main thread waits. An interrupt
ends the wait. The work, for which nobody waits any more, ends at its next checkpoint.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

PATIENCE = 0.5  # seconds: where locks are deaf to signals (Windows), how long they may be
GRACE = 0.5  # seconds that abandoned work has to reach a checkpoint, before it is left to itself


class Abandoned(BaseException):
    """Raised by `checkpoint` in work for which nobody waits any more."""


def interruptible(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make an interrupt end calls of the function at once, with the exception of the handler."""

    @wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        return run_interruptibly(lambda: function(*args, **kwargs))

    return call


def run_interruptibly(work: Callable[[], Answer]) -> Answer:
    """Do the work in a thread of its own while the main thread waits.

    Only the main thread receives signals: a call from any other one does its work there. And so
    does one that somebody profiles or debugs, who would see nothing but the waiting.
    """
    watched = sys.getprofile() is not None or sys.gettrace() is not None
    if watched or threading.current_thread() is not threading.main_thread():
        return work()
    call = _Call(work)
    try:
        call.thread.start()
        while not call.ended.wait(PATIENCE):
            pass
    except BaseException:
        call.abandoned = True
        if call.thread.is_alive():
            call.thread.join(GRACE)
        raise
    answer: Answer = call.answer()
    return answer


def checkpoint() -> None:
    """End the work of this thread here if nobody waits for it any more."""
    call: _Call | None = getattr(_here, "call", None)
    if call is not None and call.abandoned:
        raise Abandoned


_here = threading.local()


class _Call:
    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.abandoned = work, False
        self.ended = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        # a daemon: a process that was told to end does not wait for abandoned work
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
        try:
            if self.error is not None:
                raise self.error
            return self.value
        finally:
            del self  # the traceback of the error refers to this frame
