r"""Tables in LaTeX, with the rules of booktabs: ``\usepackage{booktabs}``."""

from __future__ import annotations

import pandas as pd

from experiments.harness.csv_tables import is_formula
from experiments.harness.tables import cell_text, is_number

__all__ = ["latex_table", "latex_text"]

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "`": r"\textasciigrave{}",
    "\N{MINUS SIGN}": r"\ensuremath{-}",
    "\N{INFINITY}": r"\ensuremath{\infty}",
}


def latex_text(text: str) -> str:
    r"""Text as LaTeX prints it; what cannot be printed is a space.

    Examples
    --------
    >>> print(latex_text("50% of {a_b} & c\\d"))
    50\% of \{a\_b\} \& c\textbackslash{}d
    """
    return "".join(_ESCAPES.get(character, character if character.isprintable() else " ") for character in text)


def latex_table(table: pd.DataFrame, *, caption: str = "", label: str = "") -> str:
    r"""Lay a table out for LaTeX: five significant digits, numbers to the right, empty where there is no value.

    Examples
    --------
    >>> print(latex_table(pd.DataFrame({"player": ["a_b"], "tvd": [0.5]}), caption="Distance", label="tab:tvd"))
    \begin{table}
    \centering
    \caption{Distance}
    \label{tab:tvd}
    \begin{tabular}{lr}
    \toprule
    player & tvd \\
    \midrule
    a\_b & 0.5 \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    sides = "".join("r" if is_number(column) else "l" for _, column in table.items())
    # a row that begins with "[" would be taken for an argument of the line end before it
    rows = [[_cell(value) for value in row] for row in table.itertuples(index=False, name=None)]
    lines = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{latex_text(caption)}}}"] if caption else []),
        *([rf"\label{{{label}}}"] if label else []),
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(_cell(str(column)) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    text = latex_text(cell_text(value))
    # nor is a formula one for what reads the rows as a table; braces are not printed
    return f"{{{text}}}" if text.startswith("[") or is_formula(text) else text
