"""Numbers in words: percentages, counts and lists for sentences."""

from collections.abc import Sequence

__all__ = ["STOPS", "count", "hold", "listing", "number", "percent", "stopped"]

# Sentences for stop reasons that contain the name of a parameter.
STOPS = {
    "reached max_iter": "",
    "converged: KL hardly falls any more": "",
    "no progress of KL in n_iter_without_progress iterations": "KL does not fall any more",
    "gradient below min_grad_norm": "converged: no force moves the points any more",
}


def percent(share: float) -> str:
    """Format `share` as a percentage with one decimal; never rounded to 100 % or 0 %.

    With no-break spaces: 36.2 %, > 99.9 %, < 0.1 %, 100 %.
    """
    if share >= 1.0 - 1e-9:
        return "100\u00a0%"
    if share > 0.9995:
        return ">\u00a099.9\u00a0%"
    if 0.0 < share < 0.0005:
        return "<\u00a00.1\u00a0%"
    exact = abs(100 * share - round(100 * share)) < 1e-9
    return (f"{100 * share:.0f}" if exact else f"{100 * share:.1f}") + "\u00a0%"


def number(value: float, digits: int = 3) -> str:
    """Format `value` with `digits` significant digits and a true minus sign.

    >>> number(-0.91234), number(12345.6), number(0.0)
    ('−0.912', '12,300', '0')
    """
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e6:
        text = f"{float(text):,.0f}" if abs(value) >= 1 else f"{float(text):f}"
    elif "e" not in text and abs(value) >= 1000:
        text = f"{float(text):,.0f}"
    return text.replace("-", "−")


def count(n: int, noun: str) -> str:
    """Format `n` with its noun: "1 component", "4 components", "1,797 rows"."""
    return f"{n:,}\u00a0{noun}" + ("" if n == 1 else "s")


def hold(n: int) -> str:
    """Verb for `n` components."""
    return "holds" if n == 1 else "hold"


def listing(words: Sequence[str]) -> str:
    """Join words with commas and a last "and"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def stopped(reason: str) -> str:
    """Why a map stopped, without names of parameters; empty if it ran to the end.

    `reason` is a value of `gnomon.tsne.descent.Stop`.
    """
    return STOPS.get(reason, reason)
