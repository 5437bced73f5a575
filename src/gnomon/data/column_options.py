"""What the user said about columns: their roles, and how numbers are written in them."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from gnomon.data.columns import Reading
from gnomon.data.names import as_names, find_name, find_names, vector_of
from gnomon.data.raw import RawTable
from gnomon.data.refusals import OptionError, lacks_columns, quoted
from gnomon.data.table import SHOWN
from gnomon.errors import ParameterTypeError, refuse
from gnomon.inputs import check_choice

__all__ = ["ColumnOptions", "as_column_options", "check_reading", "found_in"]


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


def as_column_options(**given: Any) -> ColumnOptions:
    """The options as Python gives them, checked: fields of `ColumnOptions`, None for its default.

    Several names are a list or a tuple; one name may stand for itself.
    """
    options = ColumnOptions(**given)
    for option in ("label", "id", *SHOWN):
        if (name := getattr(options, option)) is not None and not isinstance(name, str):
            refuse(option, "be the name of a column", name, kind=True)
    if options.sheet is not None and not isinstance(options.sheet, str):
        refuse("sheet", "be the name of a sheet", options.sheet, kind=True)
    for option in ("layer", "use_rep"):
        if (key := getattr(options, option)) is not None and not isinstance(key, str):
            refuse(option, "be a key of an AnnData file", key, kind=True)
    if options.layer is not None and options.use_rep is not None:
        raise OptionError("layer and use_rep are mutually exclusive.", "Leave one out.")
    if options.normalize is not None:
        if options.normalize != "log1p":
            raise OptionError(f"normalize must be log1p; got {quoted(str(options.normalize))}.")
        if options.use_rep not in (None, "X"):
            raise OptionError(
                "normalize is for counts, and use_rep names a representation.", "Leave one out."
            )
    if options.decimal is not None:
        check_choice("decimal", options.decimal, (".", ","))
    several: dict[str, Any] = {}
    for option in ("keep", "drop", "na", "columns", "features"):
        names = getattr(options, option)
        if names is not None or option in ("keep", "drop", "na"):
            several[option] = as_names(option, names)
    return replace(options, **several)


def check_reading(function: str, reading: Mapping[str, Any]) -> None:
    """Refuse names in `reading` that `function` does not have, with a name that is alike."""
    known = [*(field.name for field in fields(ColumnOptions)), "spool"]
    for name in reading:
        if name not in known:
            known.remove("columns")  # for models; users name `features`
            close = difflib.get_close_matches(name, known, 1)
            way = f"Did you mean `{close[0]}`?" if close else f"It has {', '.join(known)}."
            raise ParameterTypeError(f"{function} has no parameter `{name}`. {way}")


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
