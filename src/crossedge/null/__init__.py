"""The laws that turn a statistic into a p-value, one to a file.

A law is an object with a `name`, a method `applies(problem)` and a method `log_pvalue(problem)`,
which returns an `Answer`. To add a law, write a file and add a line to the ladder below.

- `Permutation` compares with all labellings of the pooled sample, or with random ones.
- `Normal` compares the paper's t with a normal law.
- `Pearson3` compares with a gamma law that has the exact mean, variance and skewness.
- `Tail` asks the first law of the ladder that applies.
"""

from __future__ import annotations

from dataclasses import dataclass

from crossedge.null.cumulants import Cumulants
from crossedge.null.either import EitherOfTwo
from crossedge.null.enumeration import Enumeration
from crossedge.null.few_points import FewPoints
from crossedge.null.forest import ForestLaw
from crossedge.null.normal import Normal as Normal
from crossedge.null.pearson3 import Pearson3 as Pearson3
from crossedge.null.permutation import Permutation as Permutation
from crossedge.null.problem import Answer as Answer
from crossedge.null.problem import Law as Law
from crossedge.null.problem import Problem as Problem
from crossedge.null.problem import first_answer
from crossedge.null.tilted import Tilted
from crossedge.statistics import STATISTICS, Statistic

# The laws in the order in which `Tail` tries them: from the most accurate to the cheapest.
LINEAR: tuple[Law, ...] = (ForestLaw(), Tilted(), Cumulants())  # for linear statistics
LADDER: tuple[Law, ...] = (Enumeration(), FewPoints(), EitherOfTwo(LINEAR), *LINEAR)


@dataclass(frozen=True)
class Tail:
    """The most accurate p-value that is affordable, also far into the tail: null="tail".

    The first law of the ladder that applies gives the p-value:

    - all labellings, if there are at most a million;
    - the exact distribution of the cross-edge count, for graphs without cycles up to 2,000 points;
    - labellings tilted towards the observed value, up to 2,000 points: right to a few percent down
      to 1e-6 at least;
    - 99,999 random labellings, if there are more points and a sample has fewer than 20 of them;
    - a smooth law with four exact moments (three above 4,000 points).

    Tilted labellings are always the same, so that nothing but the samples decides on the p-value.
    Below what they reach, which is 1e-6 at least, the law of four moments extrapolates, and `law`
    says "extrapolated": such a p-value has the right order of magnitude and no more.

    It serves the statistics "cross", "weighted", "max", "mmd" and "energy". The attribute `law` of
    the result says which law answered. docs/method.md shows how accurate each of them is.

    Parameters
    ----------
    ladder : tuple of laws, optional
        The laws to try, in this order.

    See Also
    --------
    Permutation : Compare with random labellings.

    Examples
    --------
    >>> import crossedge as ce
    >>> found = ce.two_sample([0.0, 1.0, 2.0], [5.0, 6.0, 7.0], ce.SpanningTree(), null=ce.Tail())
    >>> found.pvalue, found.law
    (0.1, 'all 20 labellings')
    """

    ladder: tuple[Law, ...] = LADDER

    name = "tail"

    def __post_init__(self) -> None:
        laws = self.ladder if isinstance(self.ladder, tuple) else (None,)
        if not laws or not all(hasattr(law, "applies") for law in laws):
            raise TypeError(f"ladder={self.ladder!r} is not a tuple of laws: give one or more")

    def applies(self, problem: Problem) -> bool:
        """Return whether any law of the ladder applies."""
        return any(law.applies(problem) for law in self.ladder)

    def log_pvalue(self, problem: Problem) -> Answer:
        """Return log p by the first law that applies, at least that of a single labelling."""
        answer = first_answer(self.ladder, problem)
        return answer._replace(log_p=min(max(answer.log_p, problem.log_least), 0.0))


NULLS: dict[str, Law] = {law.name: law for law in (Permutation(), Normal(), Pearson3(), Tail())}


def null_named(null: object, statistic: Statistic | None, argument: str = "null") -> Law:
    """Return a law, given by name or as an object, or raise unless the statistic has it."""
    if isinstance(null, str):
        if null not in NULLS:
            known = ", ".join(repr(name) for name in NULLS)
            raise ValueError(f"{argument}={null!r} is unknown: choose from {known}")
        law = NULLS[null]
    elif isinstance(null, type):
        raise TypeError(f"{argument} is a class: give an instance, such as ce.Tail()")
    elif not (hasattr(null, "applies") and hasattr(null, "log_pvalue")):
        raise TypeError(
            f"{argument} is {null!r}, which is not a law: give a name, such as 'tail', "
            "or an object, such as ce.Tail()"
        )
    else:
        law = null  # type: ignore[assignment]
    if statistic is not None:
        check_law(statistic, law.name, argument)
    return law


def check_law(statistic: Statistic, name: str, argument: str) -> None:
    """Raise ValueError if the statistic does not have the law of this name."""
    known = {null for one in STATISTICS.values() for null in one.nulls}
    if name not in known or name in statistic.nulls:
        return  # whether another law applies, it says itself
    refusal = f"{argument}={name!r} does not go with statistic={statistic.name!r}"
    if not statistic.nulls:
        raise ValueError(f"{refusal}, whose law under equality is not known: leave {argument} out")
    raise ValueError(
        f"{refusal}, which has no such law: choose {argument}={statistic.nulls[-1]!r}, "
        f"or leave {argument} out"
    )
