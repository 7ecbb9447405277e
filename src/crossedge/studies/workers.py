"""Workers of a power study: this process, others on this machine, or a Dask cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from crossedge.runtime.interrupts import checkpoint, run_interruptibly
from crossedge.runtime.threads import single_threaded
from crossedge.studies.candidates import Candidate, Pair
from crossedge.studies.folder import Answer
from crossedge.studies.grid import Cell, Point, seeds
from crossedge.studies.sampling import Sampler, draw

MAX_POOL_FAILURES = 3  # give up when so many pools in a row break before they finish a cell
CLUSTER_TIMEOUT_SECONDS = 30  # for a scheduler to answer, and for its first worker
Finished = tuple[Cell, Answer]


@dataclass(frozen=True, eq=False, repr=False)
class Work:
    """Everything that a worker needs to compute any cell; call it with a cell."""

    samplers: tuple[Sampler, ...]
    candidates: list[Candidate]
    points: list[Point]
    key: int

    def __call__(self, cell: Cell) -> Finished:
        with single_threaded():  # the parallelism is over workers
            return cell, self._answer(cell)

    def _answer(self, cell: Cell) -> Answer:
        point = self.points[cell.point]
        answer: Answer = {candidate.name: [] for candidate in self.candidates}
        for repetition in range(cell.first, cell.last):
            checkpoint()
            rng, seed = seeds(self.key, point, repetition)
            with _telling("the samplers", point):
                pair = Pair(*draw(self.samplers, rng, point))
            for candidate in self.candidates:
                with _telling(f"test {candidate.name!r}", point):
                    answer[candidate.name].append(candidate.pvalue(pair, seed, point))
        return answer

    def __repr__(self) -> str:
        return "cell of a power study"


@contextmanager
def _telling(who: str, point: Point) -> Iterator[None]:
    """Add the sampler or test and the point of the grid to errors raised inside."""
    values = ", ".join(f"{name}={value!r}" for name, value in point.items())
    where = f"{who} at {values}" if values else who
    try:
        yield
    except Exception as error:
        if type(error) in (TypeError, ValueError):
            raise type(error)(f"{where}: {error}") from error
        error.add_note(f"in {where}")  # other types may not take just a message
        raise


def finished(work: Work, cells: Sequence[Cell], jobs: int, dask: Any) -> Iterator[Finished]:
    """Yield every cell once with its p-values, in the order in which they finish."""
    if not cells:
        return
    if jobs == -1:
        jobs = need("joblib", "jobs").cpu_count()
    if dask is not None:
        yield from _on_cluster(work, cells, dask)
    elif jobs == 1:
        for cell in cells:
            yield _alone(work, cell)
    else:
        yield from _in_processes(work, cells, jobs)


def _alone(work: Work, cell: Cell) -> Finished:
    """Work on a cell in this process, so that Ctrl-C takes effect at once."""
    return run_interruptibly(lambda: work(cell))


def _in_processes(work: Work, cells: Sequence[Cell], jobs: int) -> Iterator[Finished]:
    """Work in processes; the unfinished cells of a pool that breaks go to a new pool."""
    joblib = need("joblib", "jobs")
    left, attempts = dict.fromkeys(cells), 0
    while left:
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        try:
            for cell, answer in parallel([joblib.delayed(work)(cell) for cell in left]):
                del left[cell]
                attempts = 0
                yield cell, answer
        except BrokenProcessPool:
            attempts += 1
            if attempts == MAX_POOL_FAILURES:
                raise ChildProcessError(
                    f"workers died {MAX_POOL_FAILURES} times in a row "
                    "before they had finished anything: is there enough memory? Try fewer jobs"
                ) from None


def _on_cluster(work: Work, cells: Sequence[Cell], dask: Any) -> Iterator[Finished]:
    """Work on a Dask cluster.

    The scheduler reassigns the cells of lost workers, and gives new workers a share. joblib's Dask
    backend is not used: on a cluster that still has a single core, it does all the work here.
    """
    distributed = need("distributed", "dask", "cluster")
    client, where = dask, "the cluster"
    if isinstance(dask, str):
        where = dask
        try:
            client = distributed.Client(dask, timeout=CLUSTER_TIMEOUT_SECONDS, set_as_default=False)
        except (OSError, ValueError):
            raise ConnectionError(
                f"no Dask scheduler answers at {dask}: start one with `dask scheduler`, "
                "and workers with `dask worker ADDRESS`"
            ) from None
    futures = []
    try:
        try:
            client.wait_for_workers(1, timeout=CLUSTER_TIMEOUT_SECONDS)
        except TimeoutError:
            raise ConnectionError(
                f"no worker is at {where}: start some with `dask worker ADDRESS`"
            ) from None
        study = uuid4().hex
        keys = [f"power-study-{study}-{place}" for place in range(len(cells))]
        futures = client.map(work, cells, key=keys)
        for future in distributed.as_completed(futures, loop=client.loop):
            yield future.result()
    except distributed.KilledWorker as error:
        raise ChildProcessError(
            f"several workers at {where} died of the same cell: is there enough memory?"
        ) from error
    except CancelledError:
        raise ConnectionError(f"the Dask scheduler at {where} is gone, or has cancelled") from None
    finally:
        for future in futures:
            future.release()
        if client is not dask:
            client.close()


def need(module: str, purpose: str, extra: str = "studies") -> Any:
    """Import an optional package, or raise ModuleNotFoundError that names the extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"{purpose} of power_study needs {module}: pip install 'crossedge[{extra}]'"
        ) from None


Advance = Callable[[], None]


@contextmanager
def progress_bar(shown: bool, total: int, done: int) -> Iterator[Advance]:
    """Show a progress bar, on a terminal only; yield a function that counts one cell."""
    if not shown:
        yield lambda: None
        return
    need("rich", "progress")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Left

    console = Console(stderr=True)
    columns = (TextColumn("power study"), BarColumn(), MofNCompleteColumn(), Elapsed(), Left())
    with Progress(
        *columns,
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=3600,
    ) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda: bar.advance(task)
