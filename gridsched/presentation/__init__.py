"""What people see of results: figures of seven forms, findings, tables, and the report page.

A figure is a `Specification`: which measures, against what, by which form. Its numbers come from the table of
measures of a study through `gridsched.inference`, and its finding is made from these numbers alone.
"""

from gridsched.experiments.specification import Specification as Specification
from gridsched.presentation.drawing import draw as draw
from gridsched.presentation.drawing import finding as finding
from gridsched.presentation.numbers import numbers as numbers
