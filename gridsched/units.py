"""Numbers and durations with few digits, as figures, reports and tables for people have them."""

from __future__ import annotations

_DURATIONS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """A duration in its largest fitting unit: 90 -> "1.5 min", 7200 -> "2 h"."""
    if seconds == 0:
        return "0"
    unit, length = next(((u, n) for u, n in _DURATIONS if abs(seconds) >= n), _DURATIONS[-1])
    return f"{number(seconds / length)} {unit}"


def number(value: float, *, zeros: bool = False) -> str:
    """A number with three digits, 12.3, 1.2k, 3.4M; with `zeros` always three, 1.20k."""
    size = abs(value)
    if 0 < size < 1e-3:
        return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")
    for suffix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if size >= 0.9995 * unit:
            return number(value / unit, zeros=zeros) + suffix
    digits = 0 if size >= 99.95 or size == 0 else 1 if size >= 9.995 else 2 if size >= 0.995 else 3
    text = f"{value:.{digits}f}"
    if not zeros and "." in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "\N{MINUS SIGN}")
