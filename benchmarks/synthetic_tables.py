"""How good are generated tables? Learn one of 3,000 rows, and test its sample on new rows.

`python benchmarks/synthetic_tables.py` takes some minutes. The table has whole numbers, amounts of
money, categories, booleans and dates that depend on each other, and cells are missing.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import crossedge as ce
from crossedge.learning import Configuration, Run
from crossedge.learning.recipes import own_recipe
from crossedge.learning.sources import load_own

ROWS, NEW_ROWS = 3000, 1000


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Aarau", "Basel", "Chur"], rows, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.normal(40 + 10 * (city == "Chur"), 12), 18, 90).round().astype(int)
    income = np.round(np.exp(rng.normal(3 + 0.02 * age - 0.5 * (city == "Basel"), 0.4)), 2)
    days = (rng.integers(0, 1500, rows) - 3 * age).clip(0)
    frame = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "city": city,
            "member": rng.random(rows) < 1 / (1 + np.exp(-(age - 40) / 10)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D"),
            "kids": pd.array(rng.poisson(1.2, rows), "Int64"),
        }
    )
    for name, share in (("income", 0.1), ("kids", 0.05), ("city", 0.05)):
        frame.loc[rng.random(rows) < share, name] = None
    return frame


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    new = people(NEW_ROWS, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.csv"
        people(ROWS, 0).to_csv(path, index=False)
        dataset = load_own(Configuration(str(path)))
        run = Run.begin(f"{folder}/run", own_recipe(str(path), dataset.train), dataset=dataset)
        for _ in run.trainer.run():
            pass
        made = [run.rows(NEW_ROWS, seed) for seed in (1, 2)]
    samples = {"generated": made[0], "generated, again": made[1], "real": people(NEW_ROWS, 2)}
    print("| rows | p against new rows | evidence |\n|---|---|---|")
    for name, sample in samples.items():
        result = ce.two_sample(new, sample, n_resamples=999, rng=0)
        print(f"| {name} | {result.pvalue:.3f} | {result.statistic:.1f} |", flush=True)


if __name__ == "__main__":
    main()
