"""Lines of Python that make a result again, from the file that was read."""

from collections.abc import Mapping
from typing import Any

__all__ = ["audit_lines", "audit_run_lines", "run_lines"]

WIDTH = 88
# Arguments of `gnomon.run` in the order in which they are written.
ORDER = (
    "label",
    "id",
    "features",
    "keep",
    "drop",
    "na",
    "decimal",
    "sheet",
    "layer",
    "use_rep",
    "normalize",
    "text",
    "image",
    "link",
    "missing",
    "scale",
    "n_components",
    "dimensions",
    "perplexity",
    "metric",
    "sample",
    "seed",
    "replay",
)

JOIN = """\
row_of = {{name: row for row, name in enumerate({data})}}
both = [(row_of[name], row) for row, name in enumerate({places}) if name in row_of]
X, Y = X[[row for row, _ in both]], Y[[row for _, row in both]]"""


def run_lines(call: Mapping[str, Any], stability: int | None = None) -> str:
    """Lines that make the page of a run; `call` has the arguments of `gnomon.run`, and `source`."""
    named = {} if stability is None else {"stability": stability}
    return "\n".join(
        [
            "import gnomon",
            "",
            *_given(call),
            f"result = {_run(call)}",
            f"result.report({_arguments(['report.html'], named)})",
        ]
    )


def audit_run_lines(call: Mapping[str, Any], audit: Mapping[str, Any], *, whole: bool) -> str:
    """Lines that audit the map of a run; `whole` if it was computed from all rows."""
    named = "labels=result.prepared.table.labels"
    made = "tsne=result.tsne, pca=result.pca" if whole else "map=Y"
    return "\n".join(
        [
            "import gnomon",
            "",
            *_given(call),
            f"result = {_run(call)}",
            f"X, Y = result.prepared.X, {'result.tsne' if whole else 'result.positions'}",
            f"found = gnomon.audit(X, Y, {named}{_more(audit)})",
            f"page = gnomon.report(X, {made}, audit=found, names=result.table.columns)",
            'page.save("report.html")',
        ]
    )


def audit_lines(
    data: Mapping[str, Any],
    places: Mapping[str, Any],
    audit: Mapping[str, Any],
    *,
    joined: str | None,
) -> str:
    """Lines that audit a map by another program.

    `data` and `places` have arguments of `gnomon.run` for the table and for the map. `joined` says
    how their rows are joined: by "ids", by the "numbers" of rows, or not at all.
    """
    lines = ["import gnomon", "", f"data = {_run(data)}", f"places = {_run(places)}"]
    lines.append("X, Y = data.prepared.X, places.prepared.X")
    if joined is not None:
        names = "{}.prepared.table.ids" if joined == "ids" else "{}.row_numbers"
        lines.append(JOIN.format(data=names.format("data"), places=names.format("places")))
    metric = _literal(audit["metric"])
    lines += [
        f"found = gnomon.audit(X, Y{_more(audit)})",
        f"page = gnomon.report(X, map=Y, metric={metric}, audit=found, names=data.table.columns)",
        'page.save("report.html")',
    ]
    return "\n".join(lines)


def _given(call: Mapping[str, Any]) -> list[str]:
    return ["# data: the table that was given"] if call.get("source") is None else []


def _run(call: Mapping[str, Any]) -> str:
    """The call of `gnomon.run`, on several lines if one is too long."""
    others = {name: call[name] for name in ORDER if name in call}
    source = call.get("source")
    first = "data" if source is None else _literal(source)
    parts = [first, *(f"{name}={_literal(value)}" for name, value in others.items())]
    line = f"gnomon.run({', '.join(parts)})"
    if len(line) <= WIDTH:
        return line
    return "gnomon.run(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _arguments(first: list[Any], named: Mapping[str, Any]) -> str:
    return ", ".join([*map(_literal, first), *(f"{k}={_literal(v)}" for k, v in named.items())])


def _more(named: Mapping[str, Any]) -> str:
    return "".join(f", {name}={_literal(value)}" for name, value in named.items())


def _literal(value: Any) -> str:
    """`value` as Python source, text in double quotes where it can be."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    text = repr(value)
    if isinstance(value, str) and text[0] == "'" and '"' not in text:
        return f'"{text[1:-1]}"'
    return text
