"""The monitor as an estimator of scikit-learn, which is needed for this file only."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ModuleNotFoundError(
        "crossedge.monitoring.DriftDetector needs scikit-learn 1.6 or later: "
        "pip install scikit-learn",
        name="sklearn",
    ) from None

from crossedge.monitoring.monitor import Monitor
from crossedge.monitoring.state import MonitorState
from crossedge.verbs import two_sample


class DriftDetector(BaseEstimator):  # type: ignore[misc]
    """Watch batches for a change since `fit`, in the style of scikit-learn.

    There is no `predict`: that would speak of single rows, and a change is a matter of batches.

    Parameters
    ----------
    false_alarm_rate : float, optional
        As in `Monitor`; 0.01 by default.
    run_length : float, optional
        As in `Monitor`, instead of a rate.
    scale : {"robust", "std", "rank", "none"}, optional
        As in `Monitor`.
    max_points : int, optional
        As in `Monitor`.
    random_state : int, optional
        The seed.

    Attributes
    ----------
    monitor_ : Monitor
        The monitor, which `update` moves on.
    alarm_ : bool
        Whether there has been an alarm.
    n_features_in_ : int
        The number of columns.

    See Also
    --------
    crossedge.Monitor : The monitor without scikit-learn, which takes columns of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from crossedge.monitoring import DriftDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector(random_state=0).fit(rng.normal(size=(500, 3)))
    >>> for _ in range(3):
    ...     state = detector.update(rng.normal(size=(50, 3)) + 1)
    >>> detector.alarm_
    True
    """

    def __init__(
        self,
        *,
        false_alarm_rate: float | None = None,
        run_length: float | None = None,
        scale: str | None = None,
        max_points: int = 2000,
        random_state: Any = None,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.run_length = run_length
        self.scale = scale
        self.max_points = max_points
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> DriftDetector:  # noqa: ARG002
        """Take rows from before any change as the reference.

        Parameters
        ----------
        X : array
            (n, d) rows.
        y : object, optional
            Not used, as is usual.

        Returns
        -------
        DriftDetector
            Itself.
        """
        points = validate_data(self, X, ensure_min_samples=2)
        self._reference = points
        self.monitor_ = Monitor(
            points,
            false_alarm_rate=self.false_alarm_rate,
            run_length=self.run_length,
            scale=self.scale,
            max_points=self.max_points,
            rng=self.random_state,
        )
        return self

    def update(self, X: Any) -> MonitorState:
        """Compare one more batch with everything before it.

        Parameters
        ----------
        X : array
            (n, d) rows.

        Returns
        -------
        MonitorState
        """
        check_is_fitted(self)
        return self.monitor_.update(validate_data(self, X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Return the p-value of rows against the reference: small if they differ.

        The monitor does not move on.

        Parameters
        ----------
        X : array
            (n, d) rows.
        y : object, optional
            Not used, as is usual.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        points = validate_data(self, X, reset=False)
        seed = 0 if self.random_state is None else self.random_state
        found = two_sample(
            self._reference, points, scale=self.scale, rng=seed, max_points=self.max_points
        )
        return found.pvalue

    @property
    def alarm_(self) -> bool:
        """Whether there has been an alarm."""
        check_is_fitted(self)
        return self.monitor_.alarm
