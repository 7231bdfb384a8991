"""Grades: how music compares with what it wants to be; for text see ``bleu`` and ``text`` in this package."""

from anyfill.evaluation.grades.bach import FEATURES, Grade, Summary, grade, grade_all, summary
from anyfill.evaluation.grades.keys import Key, find_key
from anyfill.evaluation.grades.reference import Reference
from anyfill.evaluation.grades.spelling import Protocol

__all__ = [
    "FEATURES",
    "Grade",
    "Key",
    "Protocol",
    "Reference",
    "Summary",
    "find_key",
    "grade",
    "grade_all",
    "summary",
]
