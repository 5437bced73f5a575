"""Whether the columns of a table should be standardised, and why."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.kinds import KIND, NEARLY_ALL, outsized
from gnomon.data.names import stem_of
from gnomon.data.refusals import as_seen
from gnomon.data.spread import Spread, measure_spread

__all__ = ["FOLD", "Scale", "choose_scale", "unit_of"]

FOLD = 10.0
LITTLE = 0.05  # share of the variance below which one of few columns counts little
FEW_COLUMNS = 10
REACHED = 0.9  # of the largest number: columns that reach it have the same range

# Units that a name may end in: body_mass_g, "length (cm)", "speed [m/s]". Behind an underscore
# "min", "a", "c" or "in" more often mean something else.
SUFFIX_UNITS = {
    *("nm", "um", "µm", "mm", "cm", "m", "km", "mm2", "cm2", "m2", "m²", "km2", "km²", "m3", "m³"),
    *("ml", "ug", "µg", "mg", "g", "kg", "lbs", "mmol", "ms", "sec", "hours", "days", "years"),
    *("degc", "hpa", "kpa", "mpa", "mbar", "psi", "kj", "kwh", "kcal", "kw", "mv", "kv", "hz"),
    *("khz", "mhz", "ghz", "rpm", "kmh", "mph", "ppm", "ppb", "pct", "percent", "%"),
    *("usd", "eur", "gbp", "bpm"),
}
UNITS = SUFFIX_UNITS | {
    *("in", "ft", "mi", "ha", "l", "t", "lb", "oz", "mol", "mg/l", "g/l", "mg/dl", "mmol/l"),
    *("s", "min", "h", "d", "°c", "c", "°f", "f", "k", "pa", "bar", "j", "w", "v", "a", "ma"),
    *("n", "m/s", "km/h", "m/s2", "m/s²", "db", "$", "€", "£", "deg", "°", "rad"),
}
_UNIT = re.compile(r".*?(?:_([^\W_]+(?:/\w+)?|%)|\s*[(\[]\s*([^()\[\]]+?)\s*[)\]])")


@dataclass(frozen=True)
class Scale:
    """Whether to standardise, and the reason in a few words."""

    standardize: bool
    why: str


def choose_scale(
    X: NDArray[Any],
    asked: bool | None = None,
    *,
    names: Sequence[str] | None = None,
    spread: Spread | None = None,
) -> Scale:
    """Standardise when spreads differ more than tenfold, or when the names have different units.

    Whole numbers of one range are left alone: pixels, answers and counts of one kind share a unit,
    although some hardly vary. Dividing those by their spread would only raise noise.

    Parameters
    ----------
    X : array (n, d)
    asked : bool, optional
        The choice of the user; None for advice.
    names : d names, optional
    spread : Spread, optional
        That of `X`, if it has been measured.
    """
    if asked is not None:
        return Scale(asked, "as asked")
    spread = measure_spread(X) if spread is None else spread
    varying = np.flatnonzero(spread.std > 0)
    stds = spread.std[varying]
    fold = float(stds.max() / stds.min()) if stds.size else 1.0
    if fold > FOLD:
        alike = _one_range(spread, varying, names) if spread.whole else ""
        if alike:
            return Scale(False, alike)
        most = "" if names is None else f" ({as_seen(names[varying[stds.argmax()]])})"
        times = f"{fold:,.0f}" if 100 <= fold < 1e6 else f"{fold:.3g}"
        return Scale(True, f"the columns' spreads differ {times}-fold{most}")
    units = [unit for name in names or () if (unit := unit_of(name)) is not None]
    different = list(dict.fromkeys(units))
    if len(different) > 1 and 2 * len(units) >= len(names or ()):
        return Scale(True, f"the columns have different units ({', '.join(different[:4])})")
    why = f"the columns' spreads are within {FOLD:g}-fold of each other"
    one_unit = len(different) == 1 and len(units) == len(names or ())
    return Scale(False, why if one_unit else why + _little(spread, names))


def _little(spread: Spread, names: Sequence[str] | None) -> str:
    """Name columns that hold little of the variance; of many columns, all hold little."""
    total = float((spread.std**2).sum())
    if names is None or not total or len(names) > FEW_COLUMNS:
        return ""
    shares = spread.std**2 / total
    low = [j for j in np.argsort(shares, kind="stable") if 0 < shares[j] < LITTLE]
    if not low:
        return ""
    named = ", ".join(f"{as_seen(names[j])} ({100 * shares[j]:.2g} %)" for j in low)
    count = "counts" if len(low) == 1 else "count"
    return f"; {named} {count} little by variance: standardising weighs all columns alike"


def _one_range(spread: Spread, varying: NDArray[np.intp], names: Sequence[str] | None) -> str:
    """What whole numbers have in common: a range, or that they are counts of one kind; or ""."""
    low, high = spread.low[varying], spread.high[varying]
    least, most = float(low.min()), float(high.max())
    # More than half of them: of two unlike columns, one always has the largest number.
    if np.mean((low == least) & (high >= REACHED * most)) > 0.5:
        return f"all columns are whole numbers from {least:g} to {most:g}"
    stems = Counter(stem_of(names[j]) for j in varying) if names is not None else Counter[None]()
    named = max((n for stem, n in stems.items() if stem is not None), default=0)
    shared = max(named, int(np.count_nonzero(low == 0))) >= NEARLY_ALL * varying.size
    strange = (outsized(high) > 0) & (low > least)  # a total, beside counts that are 0 somewhere
    if least >= 0 and varying.size >= KIND and shared and not strange.any():
        return f"all columns are counts of one kind, whole numbers from {least:g} to {most:g}"
    return ""


def unit_of(name: str) -> str | None:
    """The unit that the name of a column ends in, if it ends in one."""
    match = _UNIT.fullmatch(name)
    if match is None:
        return None
    behind, within = match.groups()
    if behind is not None:
        return behind if behind.casefold() in SUFFIX_UNITS else None
    return within if within.casefold() in UNITS else None
