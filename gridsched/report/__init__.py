"""The report: one HTML page that holds everything it shows, and opens without a network."""

from gridsched.report.page import build_report

__all__ = ["build_report"]
