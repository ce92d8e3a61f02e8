"""Ticks of axes: enough of them, whatever the values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gridsched.figures import style


@given(
    low=st.floats(0.01, 1e6),
    ratio=st.floats(10, 1e8),
    ticks=st.integers(4, 6),
    unit=st.sampled_from(["s", "1"]),
)
def test_a_logarithmic_axis_has_two_labels_or_more(
    low: float, ratio: float, ticks: int, unit: style.Unit
) -> None:
    high = min(low * ratio, 8e8)
    axes = style.new_figure(2.0).subplots()
    begin, end = style.set_axis(axes.xaxis, [low, high], unit, log=True, ticks=ticks)
    inside = [place for place in axes.get_xticks() if begin <= place <= end]
    assert 2 <= len(inside) <= 2 * ticks
