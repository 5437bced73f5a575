"""The page of a comparison: two maps of the same rows, and their differences."""

from gnomon.report.compared.pair_page import report_comparison

__all__ = ["report_comparison"]
