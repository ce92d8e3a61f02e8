"""Ask calibrated sites what is known, and write the table: `python -m tests.trust [--write] [--cores 2]`.

Exit code 1 if, on the logs that are judged on, intervals hold the truth too rarely or too often, signs are
wrong, or too few questions are answered.
"""

from __future__ import annotations

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridsched.calibration.layers import ORDERS
from gridsched.calibration.measures import EXPLAINED, NOT, PARTLY
from gridsched.calibration.site import site_of
from gridsched.calibration.trust import FEWEST_JOBS, LESS, MORE, trusted_changes
from gridsched.errors import WorkloadError
from tests.trust.worlds import CHOSEN, JUDGED, worlds

PAGE = Path(__file__).parents[2] / "docs" / "calibration-reference.md"
BETWEEN = re.compile(r"(<!-- trust -->\n).*(<!-- end of trust -->)", re.DOTALL)

JOBS = 6000
"""Jobs of each log."""

LARGE = 0.1
"""A true change is large from this share of the mean wait on."""

HELD, MOST_WRONG, LEAST_ANSWERED = (0.9, 0.97), 0.02, 0.5
"""What is required of intervals, signs, and answers to questions with large changes."""

REFUSED = "cannot be calibrated"

ALL = -2
"""In place of the number of a user: the jobs of all."""

BY_USER = f"{EXPLAINED}, single users"

NO_ANSWER: dict[str, Any] = {"low": np.nan, "high": np.nan, "verdict": "", "jobs": 0}

COLUMNS = [
    "logs",
    "headline",
    "worlds",
    "questions",
    "with an interval",
    "interval holds the truth",
    "wrong sign",
    "large changes",
    "of them with an interval",
    "with a sign",
]


def asked(log: str, jobs: int) -> list[dict[str, Any]]:
    """A row for each question about each world of a log: about all jobs, and about those of each user."""
    rows = []
    for world in worlds(log, jobs):
        second = np.arange(len(world.jobs)) >= len(world.jobs) // 2
        answers: list[dict[Any, Any]] = [{"policy": name} for name in world.truth]
        headline = REFUSED
        try:
            told = trusted_changes(
                site_of(world.jobs, world.processors),
                {name: ORDERS[name] for name in world.truth},
                user=world.jobs.user,
            )
        except WorkloadError as error:
            print(f"{log}, {world.name}: {error}", file=sys.stderr)
        else:
            users = told.groups.get("user", pd.DataFrame()).to_dict("records")
            answers, headline = [*told.changes.to_dict("records"), *users], told.headline
        for answer in answers:
            user = answer.get("number", ALL)
            mine = second & ((user == ALL) | (world.jobs.user == user))
            recorded = float(world.jobs.wait_time[mine].mean())
            truth = float(world.truth[answer["policy"]][mine].mean()) - recorded
            rows.append(
                {
                    "log": log,
                    "world": world.name,
                    "headline": headline,
                    "recorded": recorded,
                    "truth": truth,
                    "user": user,
                    **NO_ANSWER,
                    **answer,
                }
            )
    return rows


def counted(rows: pd.DataFrame) -> dict[str, Any]:
    """What the answers to some questions are worth."""
    has = rows["low"].notna()
    held = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
    sign = rows["verdict"].map({LESS: -1, MORE: 1}).fillna(0)
    large = rows["truth"].abs() > LARGE * rows["recorded"]
    return {
        "worlds": len(rows[["log", "world"]].drop_duplicates()),
        "questions": len(rows),
        "with an interval": int(has.sum()),
        "interval holds the truth": held[has].mean(),
        "wrong sign": (sign * rows["truth"] < 0)[has].mean(),
        "large changes": int(large.sum()),
        "of them with an interval": has[large].mean(),
        "with a sign": (sign != 0)[large].mean(),
    }


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts by headline, on the logs of the choice and on the others, and those of single users."""
    found = []
    for role, logs in (("chosen on", CHOSEN), ("judged on", JUDGED)):
        here = rows[rows["log"].isin(logs)]
        mine = here[here["user"] == ALL]
        users = here[(here["user"] != ALL) & (here["headline"] == EXPLAINED) & (here["jobs"] >= FEWEST_JOBS)]
        for headline in (EXPLAINED, PARTLY, NOT, REFUSED, "all"):
            part = mine if headline == "all" else mine[mine["headline"] == headline]
            if len(part):
                found.append({"logs": role, "headline": headline, **counted(part)})
        if len(users):
            found.append({"logs": role, "headline": BY_USER, **counted(users)})
    return pd.DataFrame(found, columns=COLUMNS)


def as_markdown(table: pd.DataFrame) -> str:
    """The table as the page has it."""
    shares = [name for name in COLUMNS if pd.api.types.is_float_dtype(table[name])]
    text = table.astype(dict.fromkeys(shares, object))
    for name in shares:
        text[name] = [f"{100 * value:.1f} %" if np.isfinite(value) else "" for value in table[name]]
    lines = [COLUMNS, ["---"] * len(COLUMNS), *text.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--write", action="store_true", help="write the table of docs/calibration-reference.md"
    )
    options.add_argument("--cores", type=int, default=2, help="logs at once")
    options.add_argument("--jobs", type=int, default=JOBS, help="jobs of each log")
    options.add_argument("--logs", nargs="+", default=[*CHOSEN, *JUDGED], help="logs (default: all)")
    options.add_argument("--out", type=Path, help="file for all questions and answers (CSV)")
    given = options.parse_args()
    with ProcessPoolExecutor(given.cores) as pool:
        rows = pd.DataFrame(chain.from_iterable(pool.map(partial(asked, jobs=given.jobs), given.logs)))
    if given.out:
        rows.to_csv(given.out, index=False)
    table = summary(rows)
    print(as_markdown(table))
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        text = as_markdown(table)
        PAGE.write_text(
            BETWEEN.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page), encoding="utf-8"
        )
    judged = table[table["logs"] == "judged on"]
    told = judged[~judged["headline"].isin(("all", BY_USER)) & (judged["with an interval"] > 0)]
    good = (
        told["interval holds the truth"].between(*HELD).all()
        and (told["wrong sign"] <= MOST_WRONG).all()
        and (judged.loc[judged["headline"] == "all", "of them with an interval"] >= LEAST_ANSWERED).all()
    )
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
