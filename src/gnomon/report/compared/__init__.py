"""The page of a comparison: two maps of the same rows, and what changed between them."""

from gnomon.report.compared.page import report_comparison

__all__ = ["report_comparison"]
