"""Blocks of work on several threads."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from crossedge.runtime import threads
from crossedge.runtime.threads import in_threads


@pytest.fixture(params=["openmp", "pool"])
def team(request, monkeypatch):
    """Both ways to have threads, and two of them."""
    if request.param == "pool":
        monkeypatch.setattr(threads, "_openmp", lambda: None)
    elif threads._openmp() is None:
        pytest.skip("torch has no OpenMP that we know here")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield request.param
    torch.set_num_threads(before)


def test_answers_in_the_order_of_the_blocks(team):
    assert in_threads(lambda block: block**2, range(50)) == [block**2 for block in range(50)]


def test_two_threads_work_at_once(team):
    """Each waits for the other: one alone would never get past."""
    meeting = threading.Barrier(2, timeout=60)
    assert len(set(in_threads(lambda _: (meeting.wait(), threading.get_ident())[1], [0, 1]))) == 2


def test_one_thread_where_torch_has_one(team):
    torch.set_num_threads(1)
    assert set(in_threads(lambda _: threading.get_ident(), range(9))) == {threading.get_ident()}


def test_work_inside_work_goes_on_in_its_thread(team):
    def outer(_):
        inner = in_threads(lambda _: threading.get_ident(), range(5))
        return set(inner) == {threading.get_ident()}

    assert all(in_threads(outer, range(6)))


@pytest.mark.parametrize("at", [0, 7])
def test_errors_reach_the_caller(team, at):
    def work(block):
        if block == at:
            raise KeyError("this one")
        time.sleep(0.001)

    with pytest.raises(KeyError, match="this one"):
        in_threads(work, range(8))
    assert in_threads(lambda block: block, range(4)) == [0, 1, 2, 3]


def test_from_several_threads_at_once(team):
    found = {}

    def use(name):
        found[name] = [sum(in_threads(lambda block: block + name, range(20))) for _ in range(20)]

    users = [threading.Thread(target=use, args=(name,)) for name in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join(60)
    assert found == {name: [190 + 20 * name] * 20 for name in range(3)}


def answer_of_child(work):
    """What a forked process answers."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(work()))
    child.start()
    try:
        return queue.get(timeout=60)
    finally:
        child.kill()


def threads_of_its_own():
    torch.set_num_threads(2)
    return in_threads(lambda block: block + 1, range(10))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_works(team):
    in_threads(lambda block: block, range(10))
    assert answer_of_child(threads_of_its_own) == list(range(1, 11))
    if team == "openmp":  # else torch in a child is as torch is: it hangs if its parent had threads
        assert answer_of_child(lambda: float(torch.ones(600, 600).exp_().sum())) > 0


FORK = """
import multiprocessing
import os
import numpy as np
import torch
import crossedge as ce

torch.set_num_threads(2)
points = np.random.default_rng(0).normal(size=(100, 3))
distances = torch.from_numpy(np.linalg.norm(points[:, None] - points, axis=2))
ce.SpanningTree(1.0)(distances)
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=lambda: queue.put(float(ce.SpanningTree(1.0)(distances).sum())))
child.start()
try:
    print(queue.get(timeout=60))
finally:
    child.kill()
"""


def test_a_forked_child_works_after_products_alone():
    """In a process of its own, where nothing else has used torch's threads."""
    command = [sys.executable, "-c", FORK]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert float(found.stdout) == pytest.approx(2 * 99)


def test_interrupts_are_not_lost(team):
    """A timer raises them at any moment of many short calls."""
    if team == "pool":
        pytest.skip("Python's own pool may not survive them")

    class Interrupt(BaseException):
        pass

    def interrupt(*_):
        raise Interrupt

    def use_until_interrupted(after):
        signal.setitimer(signal.ITIMER_REAL, after)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            assert in_threads(lambda block: block, range(2)) == [0, 1]

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for turn in range(60):
            with pytest.raises(Interrupt):
                use_until_interrupted(0.0005 + 0.00003 * turn)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert in_threads(lambda block: block, range(4)) == [0, 1, 2, 3]


def test_one_thread_for_a_while():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads.single_threaded():
            assert torch.get_num_threads() == threads.team_size() == 1
            with threads.single_threaded():
                assert threads.team_size() == 1
            assert threads.team_size() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("given", ["3", "", "0", "two"])
def test_without_torch_the_environment_or_the_cores_decide(given):
    code = "from crossedge.runtime import threads; print(threads._threads())"
    known = {**os.environ, "OMP_NUM_THREADS": given}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=known)
    expected = 3 if given == "3" else len(os.sched_getaffinity(0))
    assert int(found.stdout) == expected, found.stderr
