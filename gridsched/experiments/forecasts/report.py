"""Studies of forecasts as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gridsched import results
from gridsched.experiments.forecasts.config import ForecastStudy
from gridsched.experiments.forecasts.stages import coverage_table
from gridsched.forecasting.judging import CORRECTIONS, METHODS, RANGES
from gridsched.report.parts import figures, heading
from gridsched.units import duration


def forecasts_view(study: ForecastStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of forecasts."""
    dataset = results.read(folder / "study.nc")
    table = coverage_table(dataset)
    table = table[(table["range"] == RANGES[0]) & (table["correction"] != CORRECTIONS[1])]
    made = dataset["made"].sum("truth").to_series()
    return {
        **heading(study, dataset),
        "template": "forecasts.html.j2",
        "rows": [
            {
                "workload": row["workload"],
                "truth": row["truth"],
                "method": METHODS[row["predictor"]],
                "correction": {"raw": "none"}.get(row["correction"], row["correction"]),
                "coverage": f"{row['coverage']:.1%}",
                "interval": f"{max(row['coverage_low'], 0):.0%} to {row['coverage_high']:.0%}",
                "width": duration(row["width"]),
                "median_width": duration(row["median_width"]),
                "score": duration(row["score"]),
                "error": duration(row["error"]),
            }
            for row in table.to_dict("records")
        ],
        "facts": ", ".join(f"{name}: {int(count):,} forecasts" for name, count in made.items()),
        "policy": dataset.attrs["policy"],
        "figures": figures(folder, study.study_figures),
    }
