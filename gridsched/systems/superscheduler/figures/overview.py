"""Figures of a grid study: all of them by name, and those that compare schemes and local policies.

They show the metrics of H. Shan, L. Oliker and R. Biswas, "Job superscheduler architecture and performance in
computational grid environments" (SC 2003), section 3.2. Variants of schemes are compared in
`figures.variants`, the clusters of one scenario in `figures.clusters` and
`figures.transfers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridsched.figures import grid_panels, panels, style
from gridsched.systems.superscheduler.figures.clusters import grid_utilisation, grid_waits
from gridsched.systems.superscheduler.figures.findings import FINDINGS as FINDINGS
from gridsched.systems.superscheduler.figures.transfers import grid_flows
from gridsched.systems.superscheduler.figures.variants import grid_sensitivity

_USUAL_SCHEME = "s-i"
_RELATIVE = {
    "response_time_mean": "mean response",
    "wait_time_mean": "mean wait",
    "wait_time_deviation": "wait deviation",
}
_SHARES = {"grid_efficiency": "grid efficiency", "transferred": "jobs transferred"}
_TIMES = ("wait_time_mean", "response_time_mean")


class ScenarioFigure(Protocol):
    """A figure of one scenario of a grid study."""

    def __call__(self, study: xr.Dataset, *, scenario: str) -> style.Drawing:
        """Draw it."""


# --- schemes --------------------------------------------------------------------------------------


@style.styled
def grid_overview(study: xr.Dataset, *, policy: str | None = None) -> style.Drawing:
    """Every scheme by the five metrics of the paper, as in its Figures 3 and 4.

    Mean response, mean wait and deviation of the wait are ratios to the reference scheme, paired by
    replicate. Grid efficiency and the fraction of jobs transferred are as they are. A row is a scheme, a
    marker in it a scenario; a dash stands where a metric does not apply.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study; its attribute `reference` names the scheme to compare with.
    policy : str, optional
        Local policy; the first of the study if not given.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, metric, relative_to (the reference scheme, or empty), home, mean,
        low, high, replicates; fractions for efficiency and jobs transferred. Not drawn, but told beside the
        figure, are the wait of the users of each cluster (wait_time_mean_home), the share of all waiting
        that is theirs (waiting_share), and the wait of all users but those of the cluster with the most
        waiting under the reference scheme (wait_time_mean_others).

    Raises
    ------
    ConfigurationError
        If the study has no such policy or not the reference scheme.
    """
    chosen = study.sel(policy=[panels.choose(study, "policy", policy)])
    reference = grid_panels.reference_of(study)
    relative = [grid_panels.ratios(chosen, metric, reference) for metric in _RELATIVE]
    shares = [grid_panels.means(chosen, metric) for metric in _SHARES]
    numbers = pd.concat([*relative, *shares, *_home_rows(chosen, reference)], ignore_index=True)
    numbers["home"] = numbers["home"].fillna("")
    if numbers.empty:
        return grid_panels.nothing("no scheme was run with this local policy"), numbers
    schemes = grid_panels.known(study, "scheme", numbers)
    looks = grid_panels.shade_looks(grid_panels.known(study, "scenario", numbers))
    height = grid_panels.row_height(len(looks)) * max(len(schemes), 3)
    figure = style.new_figure(2 * (height + 0.5))
    grid = list(figure.subplots(2, 3).flat)
    for axes, (metric, label) in zip(grid, {**_RELATIVE, **_SHARES}.items(), strict=False):
        rows = numbers[numbers["metric"] == metric]
        _scheme_panel(axes, rows, schemes, looks, relative=metric in _RELATIVE)
        against = f"\nrelative to {grid_panels.fitting(reference, 1.0)}" if metric in _RELATIVE else ""
        axes.set_xlabel(label + against)
    _legend_panel(grid[-1], looks, numbers)
    return figure, numbers


def _home_rows(chosen: xr.Dataset, reference: str) -> list[pd.DataFrame]:
    """Who gains and loses behind the mean of all: one cluster with most of the waiting can hide the rest."""
    jobs = chosen["jobs_home"]
    waiting = (chosen["wait_time_mean_home"] * jobs).where(jobs > 0)
    own = waiting.sel(scheme=reference, drop=True)
    share = grid_panels.ratio_rows(own, own.sum("home", min_count=1), "waiting_share")
    most = own.mean("replicate").fillna(-1.0).idxmax("home")
    is_other = (chosen["home"] != most) & waiting.notnull()
    others = waiting.where(is_other).sum("home", min_count=1) / jobs.where(is_other).sum("home", min_count=1)
    rest = grid_panels.ratio_rows(
        others, others.sel(scheme=reference, drop=True), "wait_time_mean_others", reference
    )
    return [
        grid_panels.ratios(chosen, "wait_time_mean_home", reference),
        share.dropna(subset=["mean"]).assign(scheme=reference),
        rest,
    ]


def _scheme_panel(
    axes: Axes,
    rows: pd.DataFrame,
    schemes: Sequence[str],
    looks: Mapping[str, style.SchemeStyle],
    *,
    relative: bool,
) -> None:
    """One metric: a row a scheme, a lane a scenario."""
    if rows.empty:
        style.no_data(axes, "no data")
        return
    grid_panels.label_rows(axes, [style.plain(scheme, 22) for scheme in schemes])
    (grid_panels.ratio_axis if relative else grid_panels.share_axis)(axes, rows, 5)
    grid_panels.dots(axes, rows, ("scheme", schemes), ("scenario", looks))


def _legend_panel(axes: Axes, looks: Mapping[str, style.SchemeStyle], numbers: pd.DataFrame) -> None:
    """Legend in the place of a panel."""
    axes.set_axis_off()
    entries = [
        *((grid_panels.handle(look), grid_panels.fitting(scenario, 1.5)) for scenario, look in looks.items()),
        *grid_panels.interval_entry(numbers),
    ]
    axes.legend(*zip(*entries, strict=True), loc="upper left")


# --- local policies -------------------------------------------------------------------------------


@style.styled
def grid_policies(study: xr.Dataset, *, scheme: str | None = None) -> style.Drawing:
    """Local policies under one scheme and under the reference scheme, as in the paper's Figure 5.

    Mean wait, mean response, both also as ratios to the same policy under the reference scheme, and the
    fraction of jobs transferred. A row is a policy, a row of panels a scenario.

    Parameters
    ----------
    study : xarray.Dataset
        A grid study; its attribute `reference` names the scheme to compare with.
    scheme : str, optional
        The scheme; s-i if not given, or the first other than the reference where the study has no s-i.

    Returns
    -------
    tuple of Figure and DataFrame
        Columns scenario, policy, scheme, metric, relative_to (the reference scheme, or empty), mean, low,
        high, replicates; seconds for times, fractions for jobs transferred.

    Raises
    ------
    ConfigurationError
        If the study has no such scheme or not the reference scheme.
    """
    reference = grid_panels.reference_of(study)
    chosen = panels.choose(study, "scheme", scheme or _usual_scheme(study, reference))
    pair = list(dict.fromkeys([reference, chosen]))
    numbers = _policy_numbers(study.sel(scheme=pair), reference)
    policies = grid_panels.known(study, "policy", numbers)
    looks = {name: look for name, look in grid_panels.scheme_looks(study).items() if name in pair}
    height = grid_panels.row_height(len(pair)) * max(len(policies), 2)
    figure, grid = _scenario_rows(panels.labels(study, "scenario"), height)
    for scenario, axes in grid.items():
        _policy_panels(axes, numbers[numbers["scenario"] == scenario], policies, looks)
    against = f"relative to {grid_panels.fitting(reference, 0.4)}"
    texts = ["mean wait", "mean response", f"mean wait\n{against}", f"mean response\n{against}"]
    for panel, text in zip(list(grid.values())[-1], [*texts, "jobs transferred"], strict=True):
        panel.set_xlabel(text)
    grid_panels.legend(figure, looks, numbers)
    return figure, numbers


def _usual_scheme(study: xr.Dataset, reference: str) -> str:
    schemes = panels.labels(study, "scheme")
    if _USUAL_SCHEME in schemes:
        return _USUAL_SCHEME
    return next((scheme for scheme in schemes if scheme != reference), reference)


def _policy_numbers(study: xr.Dataset, reference: str) -> pd.DataFrame:
    ratios = pd.concat([grid_panels.ratios(study, metric, reference) for metric in _TIMES])
    absolute = [grid_panels.means(study, metric) for metric in (*_TIMES, "transferred")]
    return pd.concat([*absolute, ratios[ratios["scheme"] != reference]], ignore_index=True)


def _scenario_rows(scenarios: Sequence[str], height: float) -> tuple[Figure, dict[str, list[Axes]]]:
    """Five panels a scenario in a row, its name above the first of them."""
    figure = style.new_figure(len(scenarios) * (height + 0.45) + 0.65)
    grid = figure.subplots(len(scenarios), 5, squeeze=False)
    rows = {scenario: list(row) for scenario, row in zip(scenarios, grid, strict=True)}
    for scenario, axes in rows.items():
        grid_panels.title_across(axes, scenario, 5.0)
    return figure, rows


def _policy_panels(
    axes: Sequence[Axes],
    rows: pd.DataFrame,
    policies: Sequence[str],
    looks: Mapping[str, style.SchemeStyle],
) -> None:
    """The five panels of a scenario."""
    is_ratio = rows["relative_to"] != ""
    parts = [
        *((rows[(rows["metric"] == metric) & ~is_ratio], grid_panels.time_axis) for metric in _TIMES),
        *((rows[(rows["metric"] == metric) & is_ratio], grid_panels.ratio_axis) for metric in _TIMES),
        (rows[rows["metric"] == "transferred"], grid_panels.share_axis),
    ]
    for panel, (part, set_axis) in zip(axes, parts, strict=True):
        if part.empty:
            style.no_data(panel, "no data")
            continue
        grid_panels.label_rows(panel, [style.plain(policy, 22) for policy in policies])
        set_axis(panel, part, 3)
        grid_panels.dots(panel, part, ("policy", policies), ("scheme", looks))


# --- all figures ----------------------------------------------------------------------------------

GRID_FIGURES: dict[str, Callable[[xr.Dataset], style.Drawing]] = {
    "grid_overview": grid_overview,
    "grid_policies": grid_policies,
    "grid_sensitivity": grid_sensitivity,
}
"""Figures of a whole grid study by name."""

SCENARIO_FIGURES: dict[str, ScenarioFigure] = {
    "grid_waits": grid_waits,
    "grid_utilisation": grid_utilisation,
    "grid_flows": grid_flows,
}
"""Figures of one scenario of a grid study by name."""

__all__ = [
    "GRID_FIGURES",
    "SCENARIO_FIGURES",
    "ScenarioFigure",
    "grid_flows",
    "grid_overview",
    "grid_policies",
    "grid_sensitivity",
    "grid_utilisation",
    "grid_waits",
]
