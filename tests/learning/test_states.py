"""States of training runs in files without code."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch

from crossedge.learning.states import read_state, write_state
from learning_cases import same

STATE = {
    "epoch": 3,
    "rate": 0.1,
    "name": None,
    "flags": [True, "text", 1e-300, float("inf")],
    "parameters": {
        0: torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(2, dtype=torch.bfloat16) / 3,
        "whole": torch.tensor(7),
        "bytes": torch.arange(4, dtype=torch.uint8),
        "none": torch.zeros(0, 3),
    },
}


def test_a_state_comes_back_bit_for_bit(tmp_path):
    write_state(tmp_path / "state.npz", STATE)
    found = read_state(tmp_path / "state.npz")
    assert same(found, STATE)
    assert found["parameters"]["half"].dtype == torch.bfloat16
    assert next(iter(found["parameters"])) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_the_optimizer_too(tmp_path):
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    write_state(tmp_path / "state.npz", optimizer.state_dict())
    other = torch.optim.Adam(layer.parameters(), lr=5.0)
    other.load_state_dict(read_state(tmp_path / "state.npz"))
    assert same(other.state_dict()["state"], optimizer.state_dict()["state"])
    assert other.param_groups[0]["lr"] == 1e-3
    assert other.param_groups[0]["betas"] == [0.9, 0.999]


def test_no_member_is_a_pickle(tmp_path):
    write_state(tmp_path / "state.npz", STATE)
    with zipfile.ZipFile(tmp_path / "state.npz") as archive:
        for name in archive.namelist():
            np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("code of a file was run",))


@pytest.mark.parametrize("kind", ["pickle", "objects", "torch", "text", "cut", "empty"])
def test_files_that_are_something_else_are_refused(tmp_path, kind):
    path = tmp_path / "state.npz"
    write_state(path, STATE)
    whole = path.read_bytes()
    if kind == "objects":
        np.savez(path, structure=np.array([Bomb()], object))
    elif kind == "torch":
        torch.save({"a": Bomb()}, path)
    else:
        contents = {
            "pickle": pickle.dumps(Bomb()),
            "text": b"hello",
            "cut": whole[: len(whole) // 2],
            "empty": b"",
        }
        path.write_bytes(contents[kind])
    with pytest.raises(ValueError, match="damaged"):
        read_state(path)


def test_what_is_no_data_is_not_written(tmp_path):
    with pytest.raises(TypeError, match="holds Bomb"):
        write_state(tmp_path / "state.npz", {"a": [Bomb()]})
    assert not list(tmp_path.iterdir())
