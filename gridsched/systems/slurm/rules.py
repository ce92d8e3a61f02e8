"""How a run of Slurm tells who preempted whom, and the rules that this keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from gridsched.engine.job_lifecycle import Fate
from gridsched.results import Variable
from gridsched.systems.slurm.controller import Outcome
from gridsched.systems.slurm.kernels import NoPreemption, Preemption
from gridsched.systems.slurm.preempting import CANCEL, MODES, REQUEUE, SUSPEND

Integers = NDArray[np.int64]

Preempted = Sequence[tuple[Integers, Preemption | NoPreemption, Outcome]]
"""For each cluster its jobs, who may preempt whom among them, and their outcomes."""


def preemption_variables(told: Preempted, jobs: int, hold: int) -> dict[str, Variable]:
    """Who preempted whom among so many jobs, when and how, and who may; nothing without preemption.

    Requeued jobs are held for `hold` seconds.
    """
    rows: list[Integers] = []
    pairs: list[Integers] = []
    group, exempt = np.full(jobs, -1, np.int64), np.zeros(jobs, np.int64)
    groups = 0
    for own, rules, outcome in told:
        if not isinstance(rules, Preemption):
            continue
        done = outcome.preemptions
        until = done["time"] + np.where(done["mode"] == REQUEUE, hold, 0)
        rows.append(np.stack([own[done["job"]], own[done["by"]], done["time"], done["mode"], until], axis=1))
        pairs.append(np.argwhere(rules.may).astype(np.int64) + groups)
        group[own], exempt[own] = rules.group + groups, rules.exempt
        groups += len(rules.may)
    if not rows:
        return {}
    all_rows, all_pairs = np.concatenate(rows), np.concatenate(pairs)
    names = ", ".join(f"{k} {name}" for k, name in enumerate(MODES) if k)
    of_preemptions = {
        "job": ("job index of one that was preempted", "1"),
        "by": ("job index of the one for which it was", "1"),
        "time": ("when", "s"),
        "mode": (f"how: {names}", "1"),
        "until": ("until when it was held", "s"),
    }
    resumed = np.concatenate([outcome.executions["resumed"] for *_, outcome in told])
    variables: dict[str, Variable] = {
        f"preemption_{name}": ("preemption", all_rows[:, k].copy(), text, unit)
        for k, (name, (text, unit)) in enumerate(of_preemptions.items())
    }
    variables |= {
        "segment_resumed": ("segment", resumed, "1 if the job was suspended before, and goes on", "1"),
        "preemption_group": ("job", group, "its partition or quality of service for preemption", "1"),
        "preemption_exempt": ("job", exempt, "time that it runs at least before it is killed", "s"),
    }
    for k, (name, text) in enumerate(
        (("upper", "group that preempts"), ("lower", "group that is preempted"))
    ):
        variables[f"preemption_{name}"] = ("preemption_pair", all_pairs[:, k].copy(), text, "1")
    return variables


def preemption_violations(run: xr.Dataset) -> list[str]:
    """What is wrong with the preemptions of a run: one line a broken rule, none where all is well.

    - only jobs of groups that may preempt others do;
    - who is preempted runs until then, and at least as long as it is exempt where it is killed;
    - a cancelled job is lost, a requeued one does not start before it is no longer held;
    - nobody is preempted for a job that never starts, unless that gave up or was lost.
    """
    if "preemption_job" not in run:
        return []
    v = {str(name): run[name].to_numpy() for name in run.variables}
    job, by, mode = v["preemption_job"], v["preemption_by"], v["preemption_mode"]
    may = set(zip(v["preemption_upper"].tolist(), v["preemption_lower"].tolist(), strict=True))
    group = v["preemption_group"]
    number = v["job_number"] if "job_number" in v else np.arange(len(group))
    segments: dict[int, list[tuple[int, int]]] = {}
    columns = (v["segment_job"], v["segment_start"], v["segment_end"])
    for each, start, end in zip(*(column.tolist() for column in columns), strict=True):
        segments.setdefault(each, []).append((start, end))
    broken = []
    for k in range(len(job)):
        who, time = int(job[k]), int(v["preemption_time"][k])
        own = segments.get(who, [])
        ended = [start for start, end in own if end == time]
        name = f"job {number[who]} is preempted at {time} s"
        if (int(group[by[k]]), int(group[who])) not in may:
            broken.append(f"{name} for job {number[by[k]]}, which may not preempt it")
        if not ended:
            broken.append(f"{name}, but does not run until then")
        elif mode[k] != SUSPEND and time - min(ended) < v["preemption_exempt"][who]:
            broken.append(f"{name} after {time - min(ended)} s, but is exempt for longer")
        if mode[k] == CANCEL and v["fate"][who] != Fate.LOST:
            broken.append(f"{name} and cancelled, but is not lost")
        if mode[k] == REQUEUE and any(time < start < v["preemption_until"][k] for start, _ in own):
            broken.append(f"{name} and held, but starts before {v['preemption_until'][k]} s")
    return broken[:10]
