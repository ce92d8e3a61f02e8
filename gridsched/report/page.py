"""The page, made from `reports/page.html.j2` and the templates of its parts.

Variables of the templates are escaped, so no text of a log or of a configuration can become markup, and the
page lets no script run but its own, known by its checksum. Figures are embedded as images, their numbers as
links to data.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gridsched import results
from gridsched.io import atomic_write, resource
from gridsched.report.arena import arena_view
from gridsched.report.calendars import calendar_view
from gridsched.report.claims import VERDICTS, claims_view
from gridsched.report.dynamic_grid import dynamic_view
from gridsched.report.grid import grid_view
from gridsched.report.local import local_view
from gridsched.report.models import models_view
from gridsched.report.multicluster import multicluster_view
from gridsched.report.parts import data_address
from gridsched.report.self_scheduling import self_scheduling_view
from gridsched.report.templates import template
from gridsched.study.config import (
    ArenaStudy,
    CalendarStudy,
    DynamicGridStudy,
    GridStudy,
    LocalStudy,
    ModelStudy,
    MulticlusterStudy,
    SelfSchedulingStudy,
    Study,
)


def build_report(studies: Sequence[Study], target: str | Path, *, claims: str | Path | None = None) -> None:
    """Write the report page of finished studies.

    Parameters
    ----------
    studies : sequence of Study
        The studies, in the order of the page.
    target : path
        HTML file to write, in the folder of results, which has one folder a study.
    claims : path, optional
        Table of the claims of the papers, see `gridsched.study.claim_stages.evaluate_claims`.
    """
    views = [VIEWS[type(study)](study, Path(target).parent / study.name) for study in studies]
    style, script = (resource("reports", f"page.{end}").read_text(encoding="utf-8") for end in ("css", "js"))
    papers = [] if claims is None else claims_view(claims)
    page = template("page.html.j2").render(
        studies=views,
        # Studies of one's own need not begin with what papers say of others
        papers=papers if any(paper.judged for paper in papers) else [],
        claims_csv="" if claims is None else data_address(Path(claims), "text/csv"),
        verdicts=VERDICTS,
        style=style,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        source=results.provenance()["source"],
    )
    with atomic_write(target) as temporary:
        temporary.write_text(page, encoding="utf-8")


VIEWS: dict[type[Study], Callable[[Any, Path], dict[str, Any]]] = {
    LocalStudy: local_view,
    GridStudy: grid_view,
    ModelStudy: models_view,
    SelfSchedulingStudy: self_scheduling_view,
    CalendarStudy: calendar_view,
    MulticlusterStudy: multicluster_view,
    DynamicGridStudy: dynamic_view,
    ArenaStudy: arena_view,
}
"""What the page says of one study, by its kind."""
