"""Training by two agents of torchrun that meet over the network, one of whose workers is killed."""

import socket
import subprocess
import sys

import pytest

from crossedge.learning.runs import RunFolder
from crossedge.learning.states import read_state
from learning_cases import same

SCRIPT = """
import os, signal, sys
import torch
from crossedge.__main__ import command
from crossedge.learning import datasets, learn, trainer

torch.set_num_threads(1)
datasets.MOONS_TRAIN_POINTS, learn.RESAMPLES, learn.LAWS["log_pvalue"] = 256, 100, "normal"
marker = sys.argv.pop()
next_epoch = trainer.Trainer._next_epoch

def die_once(self):
    if self.epoch == 2 and trainer.rank() == 1 and marker != "none" and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return next_epoch(self)

trainer.Trainer._next_epoch = die_once
command()
"""


def learn_on_two_nodes(folder, script, marker, log):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    agent = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "one"),
        *("--max-restarts", "2", str(script)),
    ]
    settings = ["--phases", "4x1e-3", "--batch", "64", "--weights", "gaussian"]
    command = [*agent, "learn", "moons", "--out", str(folder), *settings, str(marker)]
    with log.open("w") as file:
        nodes = [subprocess.Popen(command, stdout=file, stderr=file) for _ in range(2)]
        try:
            codes = [node.wait(300) for node in nodes]
        finally:
            for node in nodes:
                node.kill()
    assert codes == [0, 0], log.read_text()


@pytest.mark.slow
def test_a_killed_worker_costs_an_epoch_and_changes_nothing(tmp_path):
    script, marker = tmp_path / "script.py", tmp_path / "died"
    script.write_text(SCRIPT)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    learn_on_two_nodes(whole, script, "none", tmp_path / "whole.log")
    learn_on_two_nodes(broken, script, marker, tmp_path / "broken.log")
    assert marker.exists()
    states = [read_state(folder / "checkpoint.npz") for folder in (whole, broken)]
    assert states[0]["epoch"] == 4
    assert same(*states)
    lines = [RunFolder(folder).metrics() for folder in (whole, broken)]
    assert [line["loss"] for line in lines[0]] == [line["loss"] for line in lines[1]]
    assert [line["epoch"] for line in lines[1]] == [1, 2, 3, 4]
