"""The stages of a study that draw; apart from the others, which need not load the drawing libraries."""

from __future__ import annotations

from pathlib import Path

from gridsched import figures, results
from gridsched.figures.multicluster_gantt import schedule_gantt
from gridsched.study.multicluster_example import handed_over


def draw_study(figure: str, dataset: str | Path, svg: str | Path) -> None:
    """Draw one figure of a study dataset as SVG, with PNG and CSV of the same name beside it."""
    figures.save(*figures.STUDY_FIGURES[figure](results.read(dataset)), _stem(svg))


def draw_prediction(figure: str, dataset: str | Path, svg: str | Path) -> None:
    """Draw one figure of how good the predictions of a study are."""
    figures.save(*figures.PREDICTION_FIGURES[figure](results.read(dataset)), _stem(svg))


def draw_example(figure: str, dataset: str | Path, svg: str | Path) -> None:
    """Draw one figure of the worked example of MUSCLE."""
    example = results.read(dataset)
    shown = handed_over(example) if figure == "example_handed_over" else example
    figures.save(*schedule_gantt(shown), _stem(svg))


def draw_scenario(figure: str, dataset: str | Path, scenario: str, svg: str | Path) -> None:
    """Draw one figure of one scenario of a study of grids."""
    figures.save(*figures.SCENARIO_FIGURES[figure](results.read(dataset), scenario=scenario), _stem(svg))


def draw_calendar_case(figure: str, dataset: str | Path, case: str, svg: str | Path) -> None:
    """Draw one figure of one case of a study of imprecise calendars."""
    figures.save(*figures.CASE_FIGURES[figure](results.read(dataset), case=case), _stem(svg))


def draw_load(dataset: str | Path, workload: str, svg: str | Path) -> None:
    """Draw utilisation and queue length over time for one workload of a study dataset."""
    figures.save(*figures.load_series(results.read(dataset), workload=workload), _stem(svg))


def draw_workload(dataset: str | Path, svg: str | Path) -> None:
    """Draw what a workload looks like."""
    figures.save(*figures.workload_characterisation(results.read(dataset)), _stem(svg))


def draw_gantt(chunk: str | Path, run: str, svg: str | Path) -> None:
    """Draw the schedule of one run of a small workload."""
    stacked = results.read(chunk)
    index = list(stacked["run"].values).index(run)
    figures.save(*figures.gantt(results.unstack_run(stacked, index)), _stem(svg))


def _stem(svg: str | Path) -> Path:
    return Path(svg).with_suffix("")
