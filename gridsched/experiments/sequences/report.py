"""Studies of sequences as the page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gridsched import results
from gridsched.experiments.sequences.config import SequenceStudy
from gridsched.experiments.sequences.stages import means_table
from gridsched.figures.style import number
from gridsched.report.parts import figures, heading


def sequences_view(study: SequenceStudy, folder: Path) -> dict[str, Any]:
    """Everything the page says of a study of sequences."""
    dataset = results.read(folder / "study.nc")
    return {
        **heading(study, dataset),
        "template": "sequences.html.j2",
        "rows": [
            {
                **{key: row[key] for key in ("workload", "backfilling", "order", "waits")},
                "mean": f"{row['bounded_slowdown']:,.2f}",
                "interval": f"{number(row['low'])} to {number(row['high'])}",
                "to_last_start": f"{row['utilisation_to_last_start']:.3f}",
                "utilisation": f"{row['utilisation']:.3f}",
            }
            for row in means_table(dataset).to_dict("records")
        ],
        "facts": f"{dataset.sizes['replicate']} sequences of {study.length:,} jobs of each log",
        "figures": figures(folder, study.study_figures),
    }
