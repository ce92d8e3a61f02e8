"""Known pitfalls: each check on a study that falls in, and on one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from gridsched.experiments.config import Study, study_from
from gridsched.presentation.pitfalls import CHECKS, pitfalls

LOG: dict[str, Any] = {"name": "K", "archive": "KTH-SP2-1996"}
OTHER: dict[str, Any] = {"name": "S", "archive": "SDSC-SP2-1998"}


def study(*scenarios: dict[str, Any], **more: Any) -> Study:
    """A study of local policies."""
    values = {
        "name": "x",
        "title": "x",
        "scenarios": list(scenarios or (LOG,)),
        "schedulers": ["easy", "sjbf"],
    }
    return study_from({**values, **more})


def grid(**more: Any) -> Study:
    """A study of the arena."""
    clusters = {"clusters": [LOG, OTHER]}
    values = {"name": "x", "title": "x", "kind": "arena", "schedulers": ["local", "central"]}
    return study_from({**values, "scenarios": [{"name": "g", **clusters}], **more})


def stream(speed_up: float) -> Study:
    """A study of a multicluster that replays a log."""
    point = {"clusters": [{"name": "A", "processors": 100}], "stream": LOG, "jobs": {"speed_up": speed_up}}
    values = {"name": "x", "title": "x", "kind": "multicluster", "schedulers": ["muscle"]}
    return study_from({**values, "scenarios": [{"name": "p", **point}]})


def dataset(**variables: Any) -> xr.Dataset:
    """A dataset of these variables."""
    return xr.Dataset(variables)


def slowdowns(mean: float) -> xr.Dataset:
    """Bounded slowdowns of which the median is 2."""
    return xr.Dataset(
        {"bounded_slowdown_mean": mean, "bounded_slowdown_median": 2.0},
    )


TRIMMED = {"metrics": {"warm_up": 0.1, "cool_down": 0.1}}
BOTH = (LOG, OTHER)
RAW: dict[str, Any] = {"name": "D", "archive": "DAS2-fs1-2003"}


@pytest.mark.parametrize(
    ("name", "exposed", "safe"),
    [
        ("warm-up and drain", (study(), dataset()), (study(**TRIMMED), dataset())),
        ("saturation", (study(), dataset(utilisation=0.95)), (study(), dataset(utilisation=0.6))),
        ("saturation", (grid(), dataset(offered_load=1.1)), (grid(), dataset(offered_load=np.nan))),
        ("single log", (study(), dataset()), (study(*BOTH), dataset())),
        ("single log", (study(), dataset()), (study({**LOG, "resampling": {}}), dataset())),
        ("unclean log", (study(RAW), dataset()), (study(LOG), dataset())),
        ("perfect estimates", (study(estimates=["actual"]), dataset()), (study(), dataset())),
        (
            "perfect estimates",
            (study(), dataset(jobs_without_requested_time=90, jobs=100)),
            (study(), dataset(jobs_without_requested_time=9, jobs=100)),
        ),
        ("average of slowdowns", (study(), slowdowns(70.0)), (study(), slowdowns(7.0))),
        ("no intervals", (study(), dataset(a_low=np.nan)), (study(), dataset(a_low=1.0))),
        ("no intervals", (grid(), dataset(a=1.0)), (grid(), dataset(a=("replicate", [1.0] * 5)))),
        ("no intervals", (grid(), dataset(a=("replicate", [1.0] * 4))), (grid(), dataset(a_low=1.0))),
        ("load by squeezing", (grid(loads=[1.0, 1.2]), dataset()), (grid(), dataset())),
        (
            "load by squeezing",
            (study({**LOG, "resampling": {"squeeze": 1.2}}), dataset()),
            (study({**LOG, "resampling": {"users": 1.2}}), dataset()),
        ),
        ("load by squeezing", (stream(2.0), dataset()), (stream(1.0), dataset())),
        ("no feedback", (study(), dataset()), (study({**LOG, "feedback": {}}), dataset())),
    ],
)
def test_checks_tell_studies_apart(
    name: str, exposed: tuple[Study, xr.Dataset], safe: tuple[Study, xr.Dataset]
) -> None:
    found = {each.name: each for each in pitfalls(*exposed)}
    assert name in found
    assert found[name].remedy == CHECKS[name].remedy
    assert name not in {each.name for each in pitfalls(*safe)}


def test_means_that_shaking_changes_much_are_named() -> None:
    """By scheduler; other replicates may differ as they like."""

    def waits(kind: str) -> xr.Dataset:
        return xr.Dataset(
            {
                "wait_time_mean": (
                    ("scenario", "scheduler", "replicate"),
                    [[[90.0, 100, 110], [99.0, 100, 101], [5.0, 5, 5]]],
                )
            },
            {
                "scheduler": ["far", "near", "same"],
                "scenario": ["s"],
                "replicates_are": ("scenario", [kind]),
            },
        )

    shaken = {each.name: each.found for each in pitfalls(study(), waits("shaken logs"))}
    assert shaken["unstable mean"].endswith("by more than 10%: far.")
    assert "unstable mean" not in {each.name for each in pitfalls(study(), waits("resampled logs"))}


def test_predictors_that_learn_from_other_ends_are_named() -> None:
    values = {
        "name": "x",
        "title": "x",
        "kind": "self-scheduling",
        "scenarios": [{"name": "r"}],
        "schedulers": [{"name": "K", "scheduler": "jscheduler"}],
    }
    names = [
        {each.name for each in pitfalls(study_from({**values, "estimates": estimates}), dataset())}
        for estimates in (["predicted"], ["predicted", "retrained"])
    ]
    assert ["overlap of training and test" in each for each in names] == [True, False]
