"""What the user said about columns: their roles, and how numbers are written in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnomon.data.columns import Reading
from gnomon.data.names import as_names, find_name, find_names, vector_of
from gnomon.data.raw import RawTable
from gnomon.data.refusals import OptionError, lacks_columns, quoted
from gnomon.data.table import SHOWN
from gnomon.errors import refuse
from gnomon.inputs import check_choice

__all__ = ["ColumnOptions", "as_column_options", "found_in"]


@dataclass(frozen=True)
class ColumnOptions:
    """What the user said about columns, as the options' values."""

    label: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    decimal: str | None = None
    text: str | None = None
    image: str | None = None
    link: str | None = None
    sheet: str | None = None
    layer: str | None = None
    use_rep: str | None = None
    normalize: str | None = None

    @property
    def shown(self) -> dict[str, str]:
        """Columns that a page shows, by role."""
        return {role: name for role in SHOWN if (name := getattr(self, role)) is not None}

    @property
    def asked(self) -> dict[str, str]:
        """By which option columns are wanted as features; names as in the file if `found_in`."""
        return dict.fromkeys(self.features or (), "features") | dict.fromkeys(self.keep, "keep")

    def reading(self, decimal: str) -> Reading:
        """How numbers are written in text whose decimal mark seems to be `decimal`."""
        return Reading(self.na, self.decimal or decimal, stated=self.decimal is not None)


def as_column_options(
    *,
    label: Any = None,
    id: Any = None,
    keep: Any = None,
    drop: Any = None,
    na: Any = None,
    columns: Any = None,
    features: Any = None,
    decimal: Any = None,
    text: Any = None,
    image: Any = None,
    link: Any = None,
    sheet: Any = None,
    layer: Any = None,
    use_rep: Any = None,
    normalize: Any = None,
) -> ColumnOptions:
    """The options as Python gives them, checked."""
    named = (("label", label), ("id", id), ("text", text), ("image", image), ("link", link))
    for option, name in named:
        if name is not None and not isinstance(name, str):
            refuse(option, "be the name of a column", name, kind=True)
    if sheet is not None and not isinstance(sheet, str):
        refuse("sheet", "be the name of a sheet", sheet, kind=True)
    for option, key in (("layer", layer), ("use_rep", use_rep)):
        if key is not None and not isinstance(key, str):
            refuse(option, "be a key of an AnnData file", key, kind=True)
    if layer is not None and use_rep is not None:
        raise OptionError("layer and use_rep are mutually exclusive.", "Leave one out.")
    if normalize is not None:
        if normalize != "log1p":
            raise OptionError(f"normalize must be log1p; got {quoted(str(normalize))}.")
        if use_rep not in (None, "X"):
            raise OptionError(
                "normalize is for counts, and use_rep names a representation.", "Leave one out."
            )
    if decimal is not None:
        check_choice("decimal", decimal, (".", ","))
    return ColumnOptions(
        label=label,
        id=id,
        keep=as_names("keep", keep),
        drop=as_names("drop", drop),
        na=as_names("na", na),
        columns=None if columns is None else as_names("columns", columns),
        features=None if features is None else as_names("features", features),
        decimal=decimal,
        text=text,
        image=image,
        link=link,
        sheet=sheet,
        layer=layer,
        use_rep=use_rep,
        normalize=normalize,
    )


def found_in(options: ColumnOptions, raw: RawTable) -> ColumnOptions:
    """The names as the file spells them; contradictions are refused."""
    # What stands beside an array comes first in errors: labels and ids are among it.
    known = (*raw.columns, *raw.matrix_names)

    def find(option: str, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(find_name(option, name, known, raw.name) for name in names)

    label, id_name = find("label", _one(options.label)), find("id", _one(options.id))
    keep = find_names("keep", options.keep, raw.names, raw.name)
    drop = find_names("drop", options.drop, raw.names, raw.name)
    for option, names in (("label", label), ("id", id_name), ("keep", keep)):
        both = set(names) & set(drop)
        if both:
            raise OptionError(
                f"Column {quoted(min(both))} is named by both {option} and drop.", "Name it once."
            )
    shown: dict[str, Any] = {role: find(role, (name,))[0] for role, name in options.shown.items()}
    for role, name in shown.items():
        if name in (*label, *keep):
            other = "label" if name in label else "keep"
            raise OptionError(
                f"Column {quoted(name)} is named by both {role} and {other}.", "Name it once."
            )
    features = options.features
    if features is not None:
        features = find_names("features", features, raw.names, raw.name, raw.beside)
    return replace(
        options,
        label=label[0] if label else None,
        id=id_name[0] if id_name else None,
        keep=keep,
        drop=drop,
        features=features,
        columns=_model_columns(options.columns, raw),
        **shown,
    )


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _model_columns(columns: tuple[str, ...] | None, raw: RawTable) -> tuple[str, ...] | None:
    """The columns that a model needs; a file without names has them in the model's order."""
    if columns is None:
        return None
    if not raw.named and len(raw.names) == len(columns):
        return raw.names
    there = set(raw.names)
    vectors = {name for name in columns if name not in there and vector_of(name) in raw.columns}
    absent = [name for name in columns if name not in there and name not in vectors]
    if absent:
        raise lacks_columns(raw.name, absent, len(columns))
    return tuple(dict.fromkeys(vector_of(name) if name in vectors else name for name in columns))
