"""The page of a comparison, from what `gnomon.compare` found."""

from collections.abc import Sequence
from typing import Any

from gnomon.procrustes.compare import Comparison
from gnomon.report.build import render
from gnomon.report.columns import read_ids, read_labels
from gnomon.report.compared.content import ComparedContent, gather_comparison
from gnomon.report.compared.payload import compared_payload
from gnomon.report.compared.sections import compared_sections
from gnomon.report.report import Report

__all__ = ["build_comparison", "report_comparison"]


def report_comparison(
    found: Comparison,
    *,
    names: tuple[str, str] = ("a", "b"),
    ids: Any = None,
    labels: Any = None,
    title: str | None = None,
    reruns: Sequence[Any] = (),
    n_permutations: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Report:
    """One offline page with both maps, what changed between them, and how alike they are.

    See `Comparison.report`.
    """
    n = found.overlap_rows
    content = gather_comparison(
        found,
        names=(str(names[0]), str(names[1])),
        ids=read_ids(ids, None, n),
        labels=read_labels(labels, n),
        title=title,
        reruns=reruns,
        n_permutations=n_permutations,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return Report(build_comparison(content), content)


def build_comparison(content: ComparedContent) -> str:
    """The HTML text of the page."""
    sections = compared_sections(content)
    return render(content, sections, compared_payload(content, sections[0].lead))
