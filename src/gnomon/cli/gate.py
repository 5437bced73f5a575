"""`--fail-if "neighbours < 0.8"`: conditions on what a comparison found.

The grammar is NAME (< | <= | > | >=) NUMBER, or NUMBER %. It is parsed, never evaluated.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from gnomon.cli.run_lines import RunLines

__all__ = ["FIGURES", "Condition", "ConditionType", "judge", "refuse_failed", "verdict_of"]

# Short names that --fail-if takes, with the entry of the command's JSON that each stands for; the
# names of these entries are taken too.
FIGURES = {
    "neighbours": "neighbor_overlap",
    "neighbors": "neighbor_overlap",
    "changed": "changed",
    "disparity": "disparity",
    "correlation": "correlation",
    "angular_distance": "angular_distance",
    "rmsd": "rmsd",
    "rv": "rv",
    "cka": "unbiased_cka",
    "p": "p_value",
    "rows": "n",
    "only_a": "n_only_a",
    "only_b": "n_only_b",
}
KNOWN = FIGURES | {entry: entry for entry in FIGURES.values()}
GRAMMAR = re.compile(
    r"\s*([A-Za-z_]+)\s*(<=|>=|<|>)\s*"
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(%?)\s*"
)
COMPARE: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "<": (operator.lt, "below {}"),
    "<=": (operator.le, "{} or less"),
    ">": (operator.gt, "above {}"),
    ">=": (operator.ge, "{} or more"),
}


@dataclass(frozen=True)
class Condition:
    """A figure, how it is compared, and with what."""

    name: str
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.limit:g}"

    def holds(self, value: float) -> bool:
        """Whether `value` meets the condition, so that the command must fail."""
        return COMPARE[self.sign][0](value, self.limit)

    def sentence(self, value: float) -> str:
        """What the figure is, in digits that show on which side of the limit it lies."""
        short = f"{value:.4g}"
        shown = short if self.holds(float(short)) == self.holds(value) else repr(value)
        if not self.holds(value):
            return f"{self.name} {shown} (fails if {self.sign} {self.limit:g})"
        return f"{self.name} is {shown}, {COMPARE[self.sign][1].format(f'{self.limit:g}')}"


class ConditionType(click.ParamType[Condition]):
    """Text such as ``neighbours < 0.8``, as a condition."""

    name = "condition"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Condition:
        """Parse it; anything else is wrong usage."""
        if isinstance(value, Condition):
            return value
        found = GRAMMAR.fullmatch(value)
        if found is None:
            self.fail(
                f"'{value}' is no condition: NAME, then <, <=, > or >=, then a number, such as "
                "'neighbours < 0.8'.",
                param,
                ctx,
            )
        name, sign, number, percent = found.groups()
        if name not in KNOWN:
            close = get_close_matches(name, KNOWN, 1)
            meant = f" Did you mean '{close[0]}'?" if close else ""
            self.fail(
                f"There is no figure '{name}'; there are {', '.join(FIGURES)}.{meant}", param, ctx
            )
        if not math.isfinite(limit := float(number)):
            self.fail(f"'{number}' is too large a number.", param, ctx)
        return Condition(name, sign, limit / 100 if percent else limit)


def judge(conditions: Sequence[Condition], numbers: dict[str, Any]) -> list[dict[str, Any]]:
    """Every condition with the value of its figure and whether it holds, ready for JSON."""
    from gnomon.errors import DataError

    verdicts = []
    for condition in conditions:
        value = numbers[KNOWN[condition.name]]
        if value is None or not math.isfinite(value):
            raise DataError(
                f"--fail-if '{condition}' cannot be judged: {condition.name} is unknown for "
                f"{numbers['n']:,} rows. Compare more rows, or leave the condition out."
            )
        verdicts.append(
            {
                "condition": str(condition),
                "name": condition.name,
                "value": value,
                "limit": condition.limit,
                "holds": condition.holds(value),
            }
        )
    return verdicts


def verdict_of(conditions: Sequence[Condition], verdicts: Sequence[dict[str, Any]]) -> str | None:
    """Say which conditions hold, or that none does; None without conditions."""
    if any(each["holds"] for each in verdicts):
        return f"A condition of --fail-if holds: {_listed(conditions, verdicts, held=True)}."
    if verdicts:
        return f"No condition of --fail-if holds: {_listed(conditions, verdicts, held=False)}."
    return None


def refuse_failed(
    conditions: Sequence[Condition], verdicts: Sequence[dict[str, Any]], words: "RunLines"
) -> None:
    """Say what was judged; conditions that hold end the command, with exit code 5."""
    from gnomon.errors import ConditionError

    if any(each["holds"] for each in verdicts):
        raise ConditionError(verdict_of(conditions, verdicts))
    if verdicts:
        words.say("Passed", _listed(conditions, verdicts, held=False))


def _listed(
    conditions: Sequence[Condition], verdicts: Sequence[dict[str, Any]], *, held: bool
) -> str:
    pairs = zip(conditions, verdicts, strict=True)
    return "; ".join(c.sentence(v["value"]) for c, v in pairs if v["holds"] == held)
