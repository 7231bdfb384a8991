"""Grades: how music compares with what it wants to be; for text see ``bleu`` and ``text`` in this package."""

from anyfill.music.grade import FEATURES, Grade, Summary, grade, grade_all, summary
from anyfill.music.key_profile import Key, find_key
from anyfill.music.reference import Reference
from anyfill.music.spelling import Protocol

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
