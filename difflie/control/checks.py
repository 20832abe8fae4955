"""Checks of a problem before it is compiled."""

from __future__ import annotations

from .problem import Problem


def check_problem(problem: Problem) -> None:
    pass
