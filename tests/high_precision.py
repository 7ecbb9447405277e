"""The smoothed models in as many digits as they need, by the formulas that lose digits."""

import mpmath as mp


def tree_marginals(distances, temperature, direction=None):
    """mu = w R from the inverse of the Laplacian, or its change along a direction of log w."""
    n = len(distances)
    span = float(distances.max()) / float(temperature)
    with mp.workdps(int(60 + 3 * span / 2.3)):
        w = mp.matrix(n, n)
        for i in range(n):
            for j in range(i):
                exponent = -mp.mpf(float(distances[i, j])) / mp.mpf(float(temperature))
                w[i, j] = w[j, i] = mp.exp(exponent)
        inverse = _laplacian(w) ** -1
        R = _resistances(inverse, n)
        if direction is None:
            return [[float(w[i, j] * R[i, j]) for j in range(n)] for i in range(n)]
        dw = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                dw[i, j] = w[i, j] * mp.mpf(float(direction[i, j]))
        dR = _resistances(-inverse * _laplacian(dw) * inverse, n)
        return [
            [float(dw[i, j] * R[i, j] + w[i, j] * dR[i, j]) for j in range(n)] for i in range(n)
        ]


def _laplacian(w):
    """With the last vertex grounded."""
    n = w.rows - 1
    grounded = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            grounded[i, j] = mp.fsum(w[i, :]) if i == j else -w[i, j]
    return grounded


def _resistances(inverse, n):
    R = mp.matrix(n, n)
    for i in range(n):
        for j in range(i):
            if i == n - 1:
                R[i, j] = inverse[j, j]
            else:
                R[i, j] = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
            R[j, i] = R[i, j]
    return R


def row_marginals(distances, k, temperature, direction=None):
    """P(chosen) of k among one row of distances, or its change along a direction of log w."""
    with mp.workdps(60):
        low = min(float(d) for d in distances)
        w = [mp.exp(-(mp.mpf(float(d)) - low) / mp.mpf(float(temperature))) for d in distances]
        c = [mp.mpf(0)] * len(w) if direction is None else [mp.mpf(float(v)) for v in direction]
        Z, dZ = _symmetric_polynomial(w, c, k)
        values = []
        for i in range(len(w)):
            e, de = _symmetric_polynomial(w[:i] + w[i + 1 :], c[:i] + c[i + 1 :], k - 1)
            mu = w[i] * e / Z
            values.append(float(mu if direction is None else mu * (c[i] + de / e - dZ / Z)))
        return values


def _symmetric_polynomial(w, c, k):
    e, de = [mp.mpf(1)] + [mp.mpf(0)] * k, [mp.mpf(0)] * (k + 1)
    for weight, change in zip(w, c, strict=True):
        for j in range(k, 0, -1):
            de[j] += weight * (de[j - 1] + change * e[j - 1])
            e[j] += weight * e[j - 1]
    return e[k], de[k]


def sparse_tree_marginals(n, i, j, length, temperature):
    """mu = w R for the edges of a sparse graph."""
    span = float(length.max()) / float(temperature)
    with mp.workdps(int(60 + 3 * span / 2.3)):
        values = [mp.exp(-mp.mpf(float(d)) / mp.mpf(float(temperature))) for d in length]
        w = mp.matrix(n, n)
        for a, b, value in zip(i.tolist(), j.tolist(), values, strict=True):
            w[a, b] = w[b, a] = value
        R = _resistances(_laplacian(w) ** -1, n)
        return [
            float(value * R[a, b])
            for a, b, value in zip(i.tolist(), j.tolist(), values, strict=True)
        ]
