"""Small tables of HTML for notebooks, and text that no page takes for commands."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Colours and fonts are those of the notebook, so that tables suit light and dark ones. Lines are in
# the colour of the text, made fainter.
TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
TITLE = "text-align:left;font-weight:600;padding:0.2em 0 0.4em"
NAME = (
    "text-align:left;vertical-align:top;font-weight:normal;opacity:0.75;white-space:nowrap;"
    "padding:0.15em 1.2em 0.15em 0;background:transparent"
)
VALUE = (
    "text-align:left;vertical-align:top;white-space:pre-wrap;padding:0.15em 0;"
    "background:transparent"
)


def html_table(title: object, rows: Iterable[tuple[object, object]]) -> str:
    """Return a table of names and values with a title, as HTML in which all text is escaped.

    The table has no colours of its own, so it suits light and dark notebooks alike.

    Parameters
    ----------
    title : object
        The caption: its text is used.
    rows : iterable of pairs
        A name and a value in each row: their texts are used.

    Returns
    -------
    str

    Examples
    --------
    >>> "<b>" in html_table("a < b", [("name", "<b>")])
    False
    """
    lines = [f'<table style="{TABLE}">', f'<caption style="{TITLE}">{_text(title)}</caption>']
    lines += [
        f'<tr><th scope="row" style="{NAME}">{_text(name)}</th>'
        f'<td style="{VALUE}">{_text(value)}</td></tr>'
        for name, value in rows
    ]
    return "\n".join([*lines, "</table>"])


def visible(value: object) -> str:
    """Return the text of a value without characters that control a terminal or a page.

    Each becomes a replacement character: controls, the marks that turn the direction of text, and
    halves of surrogate pairs, which no encoding can write.
    """
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in str(value))


def _text(value: object) -> str:
    return escape(visible(value))
