"""Drawing in SVG: elements as text, all of it escaped; scales; ticks.

Colours and fonts are classes, which the style sheet of the page sets for light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape

import numpy as np

from crossedge.html import visible
from crossedge.runtime.types import Floats


def drawing(key: str, width: float, height: float, title: str, story: str, parts: list[str]) -> str:
    """Return a whole drawing with its title and, in words, what it shows."""
    return (
        f'<svg class="{key.partition("-")[0]}" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{key}-title {key}-story">'
        f'<title id="{key}-title">{safe(title)}</title>'
        f'<desc id="{key}-story">{safe(story)}</desc>{"".join(parts)}</svg>'
    )


def safe(text: object) -> str:
    """Return text that no page takes for markup."""
    return escape(visible(text))


def words(x: float, y: float, text: object, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text at a place."""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}"'
        f"{_class(kind)}>{safe(text)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a straight line."""
    return f'<path d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"{_class(kind)}/>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    """Return a rectangle."""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
        f'height="{number(max(height, 0))}"{_class(kind)}/>'
    )


def path(xs: Iterable[float], ys: Iterable[float], kind: str, closed: bool = False) -> str:
    """Return a line through many places."""
    places = "L".join(f"{number(x)} {number(y)}" for x, y in zip(xs, ys, strict=True))
    return f'<path d="M{places}{"Z" if closed else ""}"{_class(kind)}/>'


def dots(xs: Floats, ys: Floats, kind: str) -> str:
    """Return many points in one path: lines so short that one sees only their caps."""
    places = "".join(f"M{number(x)} {number(y)}h.1" for x, y in zip(xs, ys, strict=True))
    return f'<path d="{places}"{_class(kind)}/>' if places else ""


def number(value: float) -> str:
    """Return a coordinate with one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")


def linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the map that takes low to start and high to end."""
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most so many round numbers between two, evenly spaced."""
    if not high > low:
        return [low]
    power = math.floor(math.log10((high - low) / most))
    for step in (10.0**power * factor for factor in (1, 2, 5, 10, 20)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [float(f"{place * step:.12g}") for place in range(first, last + 1)]
    return []


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def finite(values: Floats) -> Floats:
    """Return the values that are finite numbers."""
    kept: Floats = values[np.isfinite(values)]
    return kept
