"""Two-sample tests of others, as published, in plain numpy: the columns of the scoreboard.

Every test is a function of two samples and a generator, and says whether it rejects at level 0.05.
Those that run over many labellings do it by one product of matrices for each kernel, K times all
labellings, because s'Ks for an indicator s of the first sample gives all three sums of the MMD.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial.distance import cdist, squareform
from scipy.special import logsumexp

LEVEL = 0.05
LABELLINGS = 2000  # of all tests but MMDAgg, beside the one observed
BATCH = 250
Test = Callable[[np.ndarray, np.ndarray, np.random.Generator], bool]


def off_diagonal(kernel: np.ndarray) -> np.ndarray:
    """Return the kernel less its mean off the diagonal, with a zero diagonal, in single precision.

    The unbiased MMD of a constant is zero, so the mean may go: what is left has no large part that
    cancels, and single precision suffices.
    """
    n = len(kernel)
    kernel = kernel - (kernel.sum() - kernel.trace()) / (n * (n - 1))
    np.fill_diagonal(kernel, 0)
    return kernel.astype(np.float32)


def labellings(n_x: int, n_y: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return indicators of the first sample as columns: the one observed, then random ones."""
    in_x = np.zeros((1 + count, n_x + n_y), np.float32)
    in_x[:, :n_x] = 1
    in_x[1:] = rng.permuted(in_x[1:], axis=1)
    return in_x.T.copy()


def squared_mmds(kernel: np.ndarray, in_x: np.ndarray) -> np.ndarray:
    """Return the unbiased squared MMD (Gretton et al. 2012, Lemma 6) of all labellings.

    kernel: as off_diagonal returns it, (n, n). in_x: as labellings returns it, (n, number).
    """
    n_x = int(in_x[:, 0].sum())
    n_y = len(in_x) - n_x
    degrees = kernel.sum(1, dtype=float)
    of_x = degrees @ in_x
    within_x = np.einsum("ij,ij->j", in_x, kernel @ in_x, dtype=float)
    between = of_x - within_x
    within_y = degrees.sum() - of_x - between
    return within_x / (n_x * (n_x - 1)) + within_y / (n_y * (n_y - 1)) - 2 * between / (n_x * n_y)


def rejects(kernels: list[np.ndarray], fuse: Callable, n_x: int, n_y: int, rng) -> bool:
    """Whether the observed statistic is among the largest 5% of those of all labellings.

    fuse turns the squared MMDs of all kernels, (kernels, labellings), into a statistic. Batches of
    labellings are looked at until too many are as large: the answer is that of all of them.
    """
    allowed = LEVEL * (1 + LABELLINGS)
    as_large, observed = 1, None
    for size in [BATCH] * (LABELLINGS // BATCH):
        in_x = labellings(n_x, n_y, size, rng)
        values = fuse(np.array([squared_mmds(kernel, in_x) for kernel in kernels]))
        observed = values[0]
        as_large += (values[1:] >= observed - 1e-6 * np.abs(values).max()).sum()
        if as_large > allowed:
            return False
    return True


def energy(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    """Energy distance (Szekely and Rizzo 2004): the MMD of minus the Euclidean distance."""
    points = np.concatenate([x, y])
    kernel = off_diagonal(-cdist(points, points))
    return rejects([kernel], lambda values: values[0], len(x), len(y), rng)


def median_mmd(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    """MMD with a Gaussian kernel whose bandwidth is the median distance of all points."""
    points = np.concatenate([x, y])
    distances = cdist(points, points)
    width = np.median(squareform(distances, checks=False))
    kernel = off_diagonal(np.exp(-((distances / width) ** 2) / 2))
    return rejects([kernel], lambda values: values[0], len(x), len(y), rng)


# Both aggregated tests use the kernels exp(-|x - y|_1 / width) and exp(-|x - y|_2^2 / width^2).
PROFILES = {
    "cityblock": lambda ratio: np.exp(-ratio),
    "euclidean": lambda ratio: np.exp(-(ratio**2)),
}


def mmdfuse(
    x: np.ndarray, y: np.ndarray, rng: np.random.Generator, temperature: str = "code"
) -> bool:
    """MMD-FUSE with normalised statistics (Biggs, Schrab and Gretton 2023).

    The statistic is log mean exp(lambda MMD^2_k / sqrt(N_k)) over 2 x 10 kernels k, where
    N_k = sum_{i != j} k(z_i, z_j)^2 / (n (n - 1)), n the size of the smaller sample. The paper's
    section 6 has lambda = sqrt(n (n - 1)), but the authors' code, which made the paper's figures,
    has lambda = n (n - 1), almost a maximum. That one has more power and is the default here.
    """
    points = np.concatenate([x, y])
    n = min(len(x), len(y))
    pairs = n * (n - 1)
    kernels, roots = [], []
    for metric, profile in PROFILES.items():
        distances = cdist(points, points, metric)
        for width in fuse_widths(squareform(distances, checks=False)):
            kernel = profile(distances / width)
            kernels.append(off_diagonal(kernel))
            roots.append(np.sqrt(((kernel**2).sum() - len(points)) / pairs))  # k(z, z) = 1
    scale = (pairs if temperature == "code" else np.sqrt(pairs)) / np.array(roots)[:, None]
    return rejects(kernels, lambda mmds: logsumexp(scale * mmds, axis=0), len(x), len(y), rng)


def fuse_widths(distances: np.ndarray) -> np.ndarray:
    """Return 10 bandwidths, evenly from half the 5% quantile to twice the 95% quantile."""
    positive = np.where(distances == 0, np.median(distances), distances)
    low, high = np.quantile(positive, [0.05, 0.95], method="lower")
    return np.linspace(low / 2, high * 2, 10)


def mmdagg(
    x: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    for_quantiles: int = 2000,
    for_level: int = 2000,
    steps: int = 50,
) -> bool:
    """MMDAgg (Schrab et al. 2023, Algorithm 1, section 5.2): 2 x 10 kernels, uniform weights.

    Samples of equal sizes are labelled by the wild bootstrap, others by permutations.
    """
    number = for_quantiles + for_level
    of_labellings = wild if len(x) == len(y) else permuted
    values = np.array(list(of_labellings(x, y, number, rng)))
    return aggregate(values, for_quantiles, steps)


def aggregate(values: np.ndarray, for_quantiles: int, steps: int) -> bool:
    """Whether any kernel passes its quantile, all at one level that makes them 5% together.

    values: (kernels, labellings), of which the first is the one observed, the next ones give the
    quantiles, and the last ones the level, by bisection.
    """
    known = np.sort(values[:, : 1 + for_quantiles], axis=1)
    fresh = values[:, 1 + for_quantiles :]

    def quantiles(u: float) -> np.ndarray:
        rank = int(np.ceil((1 + for_quantiles) * (1 - u / len(values))))
        return known[:, max(rank - 1, 0)]

    low, high = 0.0, float(len(values))
    for _ in range(steps):
        u = (low + high) / 2
        if (fresh > quantiles(u)[:, None]).any(0).mean() <= LEVEL:
            low = u
        else:
            high = u
    return bool((values[:, 0] > quantiles(low)).any())


def agg_widths(x: np.ndarray, y: np.ndarray, metric: str) -> np.ndarray:
    """Return 10 bandwidths, a geometric series from half the least to twice the largest distance.

    Distances are those between the samples, of 500 points each at most. Where the least is below
    0.1, their 5% quantile stands in for it, but at least 0.1.
    """
    distances = cdist(x[:500], y[:500], metric).ravel()
    least = distances.min()
    if least < 0.1:
        least = max(np.quantile(distances, 0.05, method="lower"), 0.1)
    return np.geomspace(least / 2, max(distances.max(), 0.3) * 2, 10)


def agg_kernels(x: np.ndarray, y: np.ndarray) -> Iterator[np.ndarray]:
    points = np.concatenate([x, y])
    for metric, profile in PROFILES.items():
        distances = cdist(points, points, metric)
        for width in agg_widths(x, y, metric):
            yield profile(distances / width)


def permuted(
    x: np.ndarray, y: np.ndarray, number: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    in_x = labellings(len(x), len(y), number, rng)
    for kernel in agg_kernels(x, y):
        yield squared_mmds(off_diagonal(kernel), in_x)


def wild(
    x: np.ndarray, y: np.ndarray, number: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    signs = rng.integers(0, 2, (len(x), 1 + number)).astype(np.float32) * 2 - 1
    signs[:, 0] = 1
    for kernel in agg_kernels(x, y):
        yield signed_sums(kernel, signs)


def signed_sums(kernel: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Return sum_{i != j} e_i e_j h_ij for columns e of signs: -1 swaps x_i with y_i.

    h_ij = k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(x_j, y_i).
    """
    n = len(signs)
    h = kernel[:n, :n] + kernel[n:, n:] - kernel[:n, n:] - kernel[n:, :n]
    np.fill_diagonal(h, 0)
    return np.einsum("ij,ij->j", signs, h.astype(np.float32) @ signs, dtype=float)


def friedman_rafsky(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
    """Edges of the minimum spanning tree that join the samples (Friedman and Rafsky 1979)."""
    import crossedge as ce

    found = ce.two_sample(
        x, y, ce.SpanningTree(), statistic="cross", n_resamples=LABELLINGS, rng=rng
    )
    return found.pvalue <= LEVEL


def classifier(make: Callable[[int], object]) -> Test:
    """Classifier two-sample test (Lopez-Paz and Oquab 2017): train on one half, test on the other.

    The scores of held-out points of both samples are compared by their ranks (Mann and Whitney),
    which suits samples of unequal sizes.
    """

    def test(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> bool:
        from scipy.stats import mannwhitneyu

        x, y = rng.permutation(x), rng.permutation(y)
        cut_x, cut_y = len(x) // 2, len(y) // 2
        train = np.concatenate([x[:cut_x], y[:cut_y]])
        labels = np.repeat([0, 1], [cut_x, cut_y])
        model = make(int(rng.integers(2**31))).fit(train, labels)
        of_x, of_y = (model.predict_proba(z)[:, 1] for z in (x[cut_x:], y[cut_y:]))
        return mannwhitneyu(of_y, of_x, alternative="greater").pvalue <= LEVEL

    return test


def logistic(seed: int) -> object:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", random_state=seed)
    )


def forest(seed: int) -> object:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, min_samples_leaf=5, random_state=seed)


PEERS: dict[str, Test] = {
    "MMD-FUSE": mmdfuse,
    "MMDAgg": mmdagg,
    "energy": energy,
    "MMD, median": median_mmd,
    "C2ST, logistic": classifier(logistic),
    "C2ST, forest": classifier(forest),
    "Friedman-Rafsky": friedman_rafsky,
}
