"""The page, made from `reports/page.html.j2` and the templates of its parts.

Variables of the templates are escaped, so no text of a log or of a configuration can become markup, and the
page lets no script run but its own, known by its checksum. Figures are embedded as images, their numbers as
links to data; long tables are linked from the folder beside the page.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from gridsched.experiments.config import Study
from gridsched.io import resource
from gridsched.presentation.claims import VERDICTS, claims_view
from gridsched.presentation.glossary import glossary
from gridsched.presentation.sections import study_section
from gridsched.presentation.sources import sources
from gridsched.presentation.templates import write_page


def build_report(studies: Sequence[Study], target: str | Path, *, claims: str | Path | None = None) -> None:
    """Write the report page of finished studies.

    Parameters
    ----------
    studies : sequence of Study
        The studies, in the order of the page.
    target : path
        HTML file to write, in the folder of results, which has one folder a study.
    claims : path, optional
        Table of the claims of the papers, see `gridsched.experiments.claim_stages.evaluate_claims`.
    """
    folder = Path(target).parent
    script = resource("reports", "page.js").read_text(encoding="utf-8")
    papers = [] if claims is None else claims_view(claims)
    write_page(
        target,
        "page.html.j2",
        studies=[study_section(study, folder / study.name) for study in studies],
        glossary=glossary(),
        # Studies of one's own need not begin with what papers say of others
        papers=papers if any(each["evaluated"] or each["over_readings"] for each in papers) else [],
        claims_csv="" if claims is None else os.path.relpath(claims, folder),
        verdicts=VERDICTS,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        sources=sources(studies),
    )
