"""Workers of power studies: the same numbers on any, also if some of them are killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import crossedge as ce
from study_cases import ONE_THREAD, equal, normals, tiny, wait_for


class TestWorkers:
    def test_any_number_of_processes(self):
        tests = {"tree": ce.SpanningTree(0.5), "energy": ce.EnergyKernel()}
        options = {"tests": tests, "grid": {"n": range(5, 13)}}  # more cells than are begun at once
        assert equal(tiny(normals(1), **options), tiny(normals(1), jobs=2, **options))

    def test_threads_do_not_matter_and_stay_as_they_were(self):
        import torch

        seen = []
        watch = lambda x, y, rng: seen.append(torch.get_num_threads()) or 1.0  # noqa: E731
        options = {"tests": {"a": None, "b": watch}, "grid": {"n": [40]}, "repetitions": 3}
        one = tiny(normals(0.5), **options)
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert equal(one, tiny(normals(0.5), **options))
            assert torch.get_num_threads() == 2
            assert set(seen) == {1}
        finally:
            torch.set_num_threads(threads)

    def test_a_killed_process_is_replaced(self, tmp_path):
        flag = str(tmp_path / "killed")

        def fatal(rng, n):
            if n == 9 and not os.path.exists(flag):
                open(flag, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + 1

        found = tiny(fatal, grid={"n": [6, 9]}, jobs=2)
        assert os.path.exists(flag)
        assert equal(found, tiny(fatal, grid={"n": [6, 9]}))


class TestCluster:
    @pytest.fixture
    def cluster(self, tmp_path):
        """A scheduler and two workers that nobody starts again."""
        file = tmp_path / "scheduler.json"
        dask = [sys.executable, "-m", "dask"]
        options = ["--no-dashboard", "--scheduler-file", str(file)]
        command = [*dask, "scheduler", "--port", "0", "--host", "127.0.0.1", *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ONE_THREAD}
        processes = [subprocess.Popen(command, **quiet)]
        try:
            wait_for(file.exists, *processes)
            command = [*dask, "worker", "--no-nanny", "--nthreads", "1", *options]
            command += ["--local-directory", str(tmp_path)]
            processes += [subprocess.Popen(command, **quiet) for _ in range(2)]
            wait_for(lambda: file.read_text().endswith("}"), *processes)
            yield json.loads(file.read_text())["address"], processes[1:]
        finally:
            for process in processes:
                process.kill()
                process.wait()

    @pytest.mark.slow
    def test_a_worker_is_killed_half_way(self, cluster, tmp_path):
        from distributed import Client

        address, workers = cluster
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        left = []

        def slow(x, y, rng):
            time.sleep(0.005)
            return float(rng.random())

        def traced(rng, n):
            (tmp_path / f"by-{os.getpid()}").touch()
            return rng.normal(size=(n, 2)), rng.normal(size=(n, 2)) + 1

        tests = {"tree": ce.SpanningTree(), "slow": slow}
        options = {"tests": tests, "grid": {"n": [6, 7, 8]}, "repetitions": 100}
        folder = tmp_path / "study"

        def kill_one():
            wait_for(lambda: len(list(folder.glob("cells/*.json"))) >= 3)
            workers[0].kill()
            left.append(12 - len(list(folder.glob("cells/*.json"))))

        killer = threading.Thread(target=kill_one)
        killer.start()
        found = tiny(traced, dask=address, folder=folder, **options)
        killer.join()
        assert {file.name for file in tmp_path.glob("by-*")} == {f"by-{one.pid}" for one in workers}
        assert workers[0].wait() == -signal.SIGKILL
        assert left[0] > 0
        assert equal(found, tiny(traced, **options))

    def test_nobody_answers(self, monkeypatch):
        monkeypatch.setattr("crossedge.studies.workers.CLUSTER_TIMEOUT_SECONDS", 0.2)
        with pytest.raises(ConnectionError, match="no Dask scheduler answers at tcp"):
            tiny(dask="tcp://127.0.0.1:9")
