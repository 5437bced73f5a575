"""The page of a comparison, from the result of `gnomon.compare`."""

from typing import Any

from gnomon.procrustes.compare import Comparison
from gnomon.report.arguments import given_ids, read_labels
from gnomon.report.build import render
from gnomon.report.compared.pair_content import ComparedContent, gather_comparison
from gnomon.report.compared.pair_payload import compared_payload
from gnomon.report.compared.pair_sections import compared_sections
from gnomon.report.report import Report

__all__ = ["build_comparison", "gather_compared", "report_comparison"]


def report_comparison(found: Comparison, **asked: Any) -> Report:
    """One offline page with both maps, their differences and their similarity.

    `asked` are the parameters of `Comparison.report`.
    """
    content = gather_compared(found, **asked)
    return Report(build_comparison(content), content)


def gather_compared(
    found: Comparison,
    *,
    names: tuple[str, str] = ("a", "b"),
    ids: Any = None,
    labels: Any = None,
    **asked: Any,
) -> ComparedContent:
    """Everything that the page of a comparison is made from; see `Comparison.report`."""
    n = found.overlap_rows
    if ids is None and found.ids is not None and n == found.n:
        ids = found.ids
    return gather_comparison(
        found,
        names=(str(names[0]), str(names[1])),
        ids=given_ids(ids, None, n),
        labels=read_labels(labels, n),
        **asked,
    )


def build_comparison(content: ComparedContent) -> str:
    """Build the HTML text of the page."""
    sections = compared_sections(content)
    return render(content, sections, compared_payload(content, sections[0].lead))
