"""Products of matrices inside compiled loops."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crossedge.runtime import products
from crossedge.runtime.products import add_product


def part_of_more(rng, rows, columns):
    """A matrix whose rows lie apart, with NaN in between."""
    whole = np.full((rows + 1, columns + 3), np.nan)
    part = whole[:rows, 1 : columns + 1]
    part[:] = rng.normal(size=(rows, columns))
    return part


@pytest.mark.parametrize("sizes", [(5, 7, 6), (1, 1, 1), (64, 3, 2), (4, 0, 3), (0, 3, 2)])
@pytest.mark.parametrize("turn_left", [False, True])
@pytest.mark.parametrize("turn_right", [False, True])
@pytest.mark.parametrize("old", [0.0, 1.0, -0.5])
def test_products(sizes, turn_left, turn_right, old):
    rows, inner, columns = sizes
    rng = np.random.default_rng(0)
    left = part_of_more(rng, *((inner, rows) if turn_left else (rows, inner)))
    right = part_of_more(rng, *((columns, inner) if turn_right else (inner, columns)))
    out = part_of_more(rng, rows, columns)
    product = (left.T if turn_left else left) @ (right.T if turn_right else right)
    expected = old * out + product
    if old == 0:
        out[:] = np.nan  # as memory may be that was used before
    add_product(out, old, left, turn_left, right, turn_right)
    np.testing.assert_allclose(out, expected, atol=1e-13)


@pytest.mark.parametrize("torch_has_it", [True, False])
def test_either_library_will_do(monkeypatch, torch_has_it):
    if not torch_has_it:
        monkeypatch.setattr(Path, "glob", lambda *_: iter(()))
    dgemm = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13)(products._address())
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), np.zeros((4, 5))
    letter, factors = np.frombuffer(b"N", np.uint8), np.array([1.0, 0.0])
    sizes = np.array([5, 4, 3], np.int32)
    n, m, k = (sizes.ctypes.data + 4 * place for place in range(3))
    letter_at, one, zero = letter.ctypes.data, factors.ctypes.data, factors.ctypes.data + 8
    arrays = b.ctypes.data, n, a.ctypes.data, k, zero, c.ctypes.data, n
    dgemm(letter_at, letter_at, n, m, k, one, *arrays)
    np.testing.assert_allclose(c, a @ b)


SHORT_LIVED = """
import numpy as np
from crossedge.runtime.products import add_product

rng = np.random.default_rng(0)
for n in (3, 40, 200):
    a, b, out = rng.normal(size=(3, n, n))
    expected = out + a @ b.T
    add_product(out, 1.0, a, False, b, True)
    np.testing.assert_allclose(out, expected)
"""


def test_memory_lives_as_long_as_its_address_is_used(tmp_path):
    """Compiled with references given up at once, and with memory that is spoilt when freed."""
    spoilt = {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "NUMBA_LLVM_REFPRUNE_PASS": "0",
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
        "MALLOC_PERTURB_": "165",
    }
    command = [sys.executable, "-c", SHORT_LIVED]
    subprocess.run(command, check=True, env=os.environ | spoilt, timeout=300)
