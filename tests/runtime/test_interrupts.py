"""Real interrupts, at many moments of calls that would take long."""

import contextvars
import cProfile
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from crossedge.runtime.interrupts import Abandoned, checkpoint, interruptible, run_interruptibly


def test_the_answer_comes_back():
    @interruptible
    def add(a, *, b):
        return a + b, threading.current_thread() is threading.main_thread()

    assert add(1, b=2) == (3, False)


def test_an_error_comes_back_with_its_place():
    def failing_work():
        raise KeyError("this one")

    with pytest.raises(KeyError, match="this one") as error:
        run_interruptibly(failing_work)
    assert any(entry.name == "failing_work" for entry in error.traceback)


def test_other_threads_do_their_own_work():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(run_interruptibly(threading.get_ident) == threading.get_ident())
    )
    thread.start()
    thread.join()
    assert found == [True]


def test_a_profiler_sees_the_work():
    profiler = cProfile.Profile()
    thread = profiler.runcall(lambda: run_interruptibly(threading.current_thread))
    assert thread is threading.main_thread()


def test_work_inside_work_goes_on_in_its_thread():
    def outer():
        return run_interruptibly(threading.get_ident) == threading.get_ident()

    assert run_interruptibly(outer)


def test_context_variables_are_those_of_the_caller():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(7)
    assert run_interruptibly(variable.get) == 7


def test_a_checkpoint_lets_work_pass_that_is_waited_for():
    assert run_interruptibly(lambda: checkpoint() or 1) == 1
    checkpoint()


ABANDON = """
import os, signal, threading, time
from crossedge.runtime.interrupts import Abandoned, checkpoint, run_interruptibly

ended = []

def work():
    try:
        while True:
            checkpoint()
            time.sleep(0.01)
    except Abandoned:
        ended.append(True)
        raise

threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run_interruptibly(work)
except KeyboardInterrupt:
    print(ended)
"""


def test_abandoned_work_ends_at_its_next_checkpoint():
    assert issubclass(Abandoned, BaseException)
    assert not issubclass(Abandoned, Exception)
    found = subprocess.run([sys.executable, "-c", ABANDON], capture_output=True, timeout=60)
    assert found.stdout.decode().strip() == "[True]", found.stderr


MANY = """
import os, signal, sys, threading, time
import numpy as np, torch
import crossedge as ce

rng = np.random.default_rng(0)
many = rng.normal(size=(2, 12_000, 6))
some = rng.normal(size=(2, 300, 6))
points = torch.from_numpy(rng.normal(size=(2, 900, 3)))
calls = {
    "tree": lambda: ce.two_sample(*many, ce.SpanningTree()),
    "neighbours": lambda: ce.two_sample(*many, ce.NearestNeighbours(5)),
    "default": lambda: ce.two_sample(*many),
    "tilted": lambda: ce.two_sample(some[0], some[1] + 0.3, ce.SpanningTree(), null="tail"),
    "cold": lambda: ce.two_sample(*many[:, :900], ce.SpanningTree(1e-3)),
    "loss": lambda: [ce.TwoSampleLoss(ce.SpanningTree(0.01))(*points) for _ in range(99)],
}
call = calls[sys.argv[1]]
ce.two_sample(*many[:, :30])
slowest = 0.0
for moment in sys.argv[2:]:
    at = []
    def send(at=at):
        at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(float(moment), send).start()
    try:
        while True:
            call()
    except KeyboardInterrupt:
        slowest = max(slowest, time.monotonic() - at[0])
print("alive", slowest)
sys.stdout.flush()
os._exit(0)
"""


CALLS = ["tree", "neighbours", "default", "tilted", "cold", "loss"]


def interrupted(call, count):
    """Send so many interrupts at random moments of a call that takes seconds."""
    moments = [f"{moment:.3f}" for moment in np.random.default_rng(1).uniform(0.01, 1.2, count)]
    command = [sys.executable, "-c", MANY, call, *moments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    word, slowest = found.stdout.split()
    assert word == "alive"
    assert float(slowest) < 20  # two seconds on a machine that has time; never minutes


@pytest.mark.parametrize("call", ["tree", pytest.param("loss", marks=pytest.mark.slow)])
def test_an_interrupt_ends_a_call(call):
    interrupted(call, 3)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_interrupts_at_many_moments(call):
    interrupted(call, 30)


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.5])
def test_an_interrupt_while_modules_are_imported(moment):
    code = """
import sys
print("ready", flush=True)
import crossedge as ce
import numpy as np
x = np.random.default_rng(0).normal(size=(20_000, 6))
while True:
    ce.two_sample(x, x, ce.SpanningTree())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(moment)
    process.send_signal(2)
    _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert process.returncode in (-2, 130)  # by the signal, not by a crash


def test_a_call_waits_for_an_import_that_was_abandoned(tmp_path):
    """Two threads that import parts of a package with cycles at once would break it."""
    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(1.5)\nwhole = True\n")
    code = """
import os, signal, sys, threading
from crossedge.runtime.interrupts import run_interruptibly
def load():
    import imported_slowly
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run_interruptibly(load)
except KeyboardInterrupt:
    print(run_interruptibly(lambda: hasattr(sys.modules["imported_slowly"], "whole")))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert found.stdout == "True\n", found.stderr
