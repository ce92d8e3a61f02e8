"""`gridsched compare`: what other policies would have done to the jobs of a log, and to whom."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gridsched.cli import calibrated
from gridsched.cli.logs import Log, find_trace, read_log
from gridsched.cli.options import (
    add_command,
    add_human,
    add_policy,
    add_simulation,
    add_trace,
    path,
    policies_given,
)
from gridsched.cli.printing import (
    UNKNOWN_TEXT,
    Times,
    facts_table,
    print_blocks,
    progress,
    quantity,
    table,
    with_interval,
)
from gridsched.cli.runs import fates, named_policies, preparation, prepared
from gridsched.cli.sites import add_site, configured, sites_of, told_of, use_site
from gridsched.cli.targets import check_folder, writing_folder
from gridsched.errors import WorkloadError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gridsched.calibration.trust import Trusted
    from gridsched.cli.clusters import Setting
    from gridsched.policies.local import LocalPolicy
    from gridsched.systems.base import Site

_MAX_NAMES = 5
_MAX_EXPLAINED = 3
_HOUR = 3600
_FILES = {
    "compare.csv": "means, quantiles and intervals of every policy",
    "users.csv": "every user: jobs, processor-hours, mean wait under every policy, change in hours",
    "groups.csv": "every group, as users.csv",
    "compare.svg": "figure",
    "compare.png": "the same figure",
    "figure.csv": "numbers of the figure",
    "compare.nc": "all of it as netCDF",
}
_CHANGES = {"counts.csv": "effect of each of nodes, memory, cancellations ... under the first policy"}
_INDEX = "index.json"


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "compare",
        "Compare policies with the recorded waits of a log, for all jobs and by user and group.",
        "gridsched compare our-export.txt --timezone Europe/Rome --policy easy,conservative",
        "gridsched compare our-export.txt --nodes nodes.yaml --without memory,gpus",
        "gridsched compare log.swf --policy all --warm-up 0.1 --out comparison",
        "gridsched compare october.txt --slurm-conf slurm.conf --change SchedulerParameters=bf_window=2880",
        "gridsched compare --site our-site.yaml --policy easy,conservative",
    )
    add_trace(parser, needed=False)
    add_policy(parser)
    add_site(parser.add_argument_group("site"))
    add_simulation(parser)
    calibrated.add_calibration(parser.add_argument_group("trust"))
    output = parser.add_argument_group("output")
    add_human(output)
    output.add_argument(
        "--no-changes",
        action="store_true",
        help="do not simulate the effect of each of nodes, memory and so on, which needs a run for each",
    )
    output.add_argument("--out", type=path, metavar="DIR", help="write tables, figure and netCDF to a folder")
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> None:
    from gridsched.comparison import left_aside

    use_site(options)
    find_trace(options.trace)
    policies = named_policies(options.policy, None)
    if options.out:
        check_folder(options.out, [*_FILES, *_CHANGES, *calibrated.FILES, _INDEX])
    log = read_log(options)
    setting = prepared(log, options, configured(options, log))
    sites = {}
    if options.slurm_conf is not None:
        sites = sites_of(options, log, setting, policies if policies_given(options) else ())
    print_blocks(facts_table(preparation(setting, options)))
    times = Times(options.human)
    trusted = None
    if options.calibrate:
        try:
            trusted = calibrated.calibrate(setting, policies, options, log)
            told = calibrated.blocks(trusted, log, setting, policies, times)
        except WorkloadError as error:
            told = [
                f"Cannot be calibrated: {error}, or leave out --calibrate.",
                "What was simulated without a calibration:",
            ]
        print()
        print_blocks(*told)
    with progress("simulating") as report:
        if not sites:
            compared, changes = _policies_compared(log, setting, policies, options, report)
        else:
            compared, changes = _sites_compared(log, setting, sites, options, report), None
    print()
    aside = left_aside(setting.workload, log.accounting, setting.cluster)
    aside = told_of(sites, aside, setting, options) if sites else aside
    print_blocks(
        *([] if trusted is None else [calibrated.CONFIGURED if sites else calibrated.NOT_CALIBRATED]),
        _schemes(compared, times, "configuration" if sites else "policy"),
        _explanation(compared, is_calibrated=options.calibrate),
        *_fates(compared),
        *([] if changes is None else _what_counts(changes, times)),
        *(part for kind in ("user", "group") for part in _changes(compared, kind, times)),
        "What this leaves out:",
        facts_table(aside),
    )
    if options.out:
        with progress(f"writing {options.out}"):
            files = _write(compared, changes, trusted, options, log, aside)
        print()
        print_blocks(facts_table([(str(options.out / name), what) for name, what in files.items()]))


def _policies_compared(
    log: Log,
    setting: Setting,
    policies: Sequence[LocalPolicy],
    options: argparse.Namespace,
    report: Callable[[str], Any],
) -> tuple[xr.Dataset, xr.Dataset | None]:
    """Policies beside recorded waits, and what each of nodes, memory and so on changes under the first."""
    from gridsched.aspects import aspects_of
    from gridsched.comparison import compare, what_each_changes

    workload, cluster = setting.workload, setting.cluster
    conventions: dict[str, Any] = {
        name: getattr(options, name) for name in ("estimates", "kill", "overrun", "passes", "warm_up")
    }
    compared = compare(workload, cluster, policies, names=log.names, report=report, **conventions)
    if options.no_changes or not aspects_of(workload, cluster):
        return compared, None
    return compared, what_each_changes(workload, cluster, policies[0], report=report, **conventions)


def _sites_compared(
    log: Log,
    setting: Setting,
    sites: Mapping[str, Site],
    options: argparse.Namespace,
    report: Callable[[str], Any],
) -> xr.Dataset:
    """Configurations beside recorded waits."""
    from gridsched.comparison import what_if

    names = ("estimates", "kill", "overrun", "passes", "warm_up", "seed")
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    return what_if(setting.workload, sites, names=log.names, report=report, **chosen)


# --- what is printed ------------------------------------------------------------------------------


def _schemes(compared: xr.Dataset, times: Times, what: str) -> Any:
    """Table of the policies, or configurations; the recorded schedule, where there is one, is first."""
    reference = compared.attrs["reference"]
    columns = [
        what,
        times.header("mean wait"),
        times.header("median"),
        times.header("95%"),
        "mean bounded slowdown",
        "utilisation",
        times.header(f"mean wait - {reference}"),
    ]
    rows = []
    for index, scheme in enumerate(compared["scheme"].values.tolist()):
        one = compared.isel(scheme=index)
        median, most = (float(one["wait_time_quantile"].sel(quantile=level)) for level in (0.5, 0.95))
        rows.append(
            (
                str(scheme),
                times.text(float(one["wait_time_mean"])),
                times.text(median),
                times.text(most),
                quantity(float(one["bounded_slowdown_mean"]), 2),
                quantity(float(one["utilisation"]), 3),
                _difference(one, times) if scheme != reference else UNKNOWN_TEXT,
            )
        )
    return table(columns, rows)


def _difference(one: xr.Dataset, times: Times) -> str:
    from gridsched.inference import IDENTICAL

    if str(one["wait_time_difference_reason"].values).startswith(IDENTICAL):
        return "none: identical waits"
    centre, low, high = (float(one[f"wait_time_difference{bound}"]) for bound in ("", "_low", "_high"))
    return with_interval(times.change(centre), centre, low, high, times.text)


def _explanation(compared: xr.Dataset, *, is_calibrated: bool) -> str:
    from gridsched.comparison import NO_EFFECT_ALONE
    from gridsched.inference import IDENTICAL
    from gridsched.metrics.jobs import RECORDED

    schemes = compared["scheme"].values.tolist()
    jobs = f"{compared.attrs['jobs_measured']:,} jobs measured"
    missing = compared.attrs["jobs_not_measured"]
    without = f", {missing:,} not (warm-up, never started, or no recorded wait)" if missing else ""
    reasons = dict.fromkeys(str(why) for why in compared["wait_time_difference_reason"].values)
    told = (IDENTICAL, NO_EFFECT_ALONE)
    why = [reason for reason in reasons if reason and not reason.startswith(told)]
    interval = " With ± or in brackets: 95% confidence intervals that hold together." if "" in reasons else ""
    if "replays" in compared.attrs:
        beside = " and by the difference of simulated from recorded waits" * (RECORDED in schemes)
        further = "where the change in one further run lies (95%), by their spread"
        bounds = f" With ± or in brackets: {further}{beside}."
        interval = f" Differences are means of {compared.attrs['replays']} replays." + bounds * bool(interval)
    if why:
        interval += f" Without one a difference is that of this log alone: {'; '.join(why)}."
    recorded = (
        _beside_recorded(compared)
        + ("." if is_calibrated else "; --calibrate fits the present policy first.")
        if RECORDED in schemes
        else "The log recorded too few waits to compare with."
    )
    return f"{jobs}{without}.{interval}\n{recorded}\nThe schedule of every policy was verified."


def _beside_recorded(compared: xr.Dataset) -> str:
    """How far simulated waits are from recorded ones, of the first schemes."""
    from gridsched.calibration.measures import CLOSE, FACTOR

    few = compared.attrs["jobs_measured"] < 2
    told, why = [], "fewer than two jobs are measured" if few else "nobody waited in the log"
    for index, scheme in list(enumerate(compared["scheme"].values.tolist()))[1 : 1 + _MAX_EXPLAINED]:
        ratio, correlation, near = (
            float(compared[f"explained_{name}"].values[index]) for name in ("ratio", "correlation", "near")
        )
        told.append(
            f"{scheme}: mean {quantity(ratio, 2)} times, rank correlation {quantity(correlation, 2)}, "
            f"near {near:.0%}"
            if math.isfinite(near)
            else f"{scheme}: not known, since {why}"
        )
    return (
        f"Simulated beside recorded waits (near: within {CLOSE // 60} min or a factor of {FACTOR}): "
        f"{'; '.join(told)}. Differences from recorded waits hold this error and have no interval"
    )


def _fates(compared: xr.Dataset) -> list[Any]:
    """Table of the outcomes of jobs that did not run once to their end."""
    from gridsched.comparison import FATES

    found = {
        str(scheme): {name: int(compared[name].values[index]) for name in FATES}
        for index, scheme in enumerate(compared["scheme"].values)
    }
    for scheme, counts in found.items():
        why = f"{scheme}: "
        counts |= {
            key.removeprefix(why): count
            for key, count in compared.attrs.items()
            if key.startswith(f"{why}rejected: ")
        }
    facts = fates(found)
    return [facts_table(facts)] if facts else []


def _what_counts(changes: xr.Dataset, times: Times) -> list[Any]:
    """Table of the effect of each of nodes, memory and so on."""
    policy = changes.attrs["policy"]
    columns = [
        "left out",
        times.header("mean wait"),
        times.header("95%"),
        "mean bounded slowdown",
        "utilisation",
        "rejected",
        "gave up",
        times.header("mean wait - all"),
    ]
    rows = []
    for index, name in enumerate(changes["left_out"].values.tolist()):
        one = changes.isel(left_out=index)
        rows.append(
            (
                str(name),
                times.text(float(one["wait_time_mean"])),
                times.text(float(one["wait_time_95"])),
                quantity(float(one["bounded_slowdown_mean"]), 2),
                quantity(float(one["utilisation"]), 3),
                quantity(float(one["jobs_rejected"])),
                quantity(float(one["jobs_gave_up"])),
                times.change(float(one["wait_time_difference"])) if index else UNKNOWN_TEXT,
            )
        )
    jobs = f"{changes.attrs['jobs_measured']:,} jobs that start in all of these runs"
    return [f"Effect of each under {policy}, over {jobs} (leave out with --without):", table(columns, rows)]


def _changes(compared: xr.Dataset, kind: str, times: Times) -> list[Any]:
    """Table of the users or groups that gain and lose most beside the reference."""
    from gridsched.figures.comparison import extremes, one_user_each
    from gridsched.metrics.jobs import RECORDED

    if compared.sizes["scheme"] < 2 or compared.sizes[kind] < 2:
        return []
    if kind == "group" and one_user_each(compared):
        return []
    schemes = [str(scheme) for scheme in compared["scheme"].values]
    reference, shown = compared.attrs["reference"], compared.attrs["shown"]
    beside = (
        schemes if schemes[0] == reference else [name for name in (RECORDED, reference) if name in schemes]
    )
    columns = [*dict.fromkeys([*beside, shown])]
    means = compared[f"{kind}_wait_time_mean"].sel(scheme=columns).values
    change = compared[f"{kind}_wait_time_change"].sel(scheme=shown).values
    rows = []
    for index in extremes(change, _MAX_NAMES):
        rows.append(
            (
                str(compared[kind].values[index]),
                quantity(float(compared[f"{kind}_jobs"].values[index])),
                *(times.text(float(mean)) for mean in means[:, index]),
                times.change(_HOUR * change[index]) if times.human else f"{change[index]:+,.1f}",
            )
        )
    if not rows:
        return [f"No {kind} waits more or less under {shown}."]
    gain, lose = int((change < 0).sum()), int((change > 0).sum())
    most = "; those with most to gain and lose" if len(rows) < gain + lose else ""
    headers = [
        kind,
        "jobs",
        *map(times.header, columns),
        f"{shown}, in all{'' if times.human else ' [h]'}",
    ]
    return [
        f"Mean wait by {kind}: under {shown} {gain:,} wait less than {reference}, {lose:,} more, "
        f"of {compared.sizes[kind]:,}{most}:",
        table(headers, rows),
    ]


# --- what is written ------------------------------------------------------------------------------


def _write(
    compared: xr.Dataset,
    changes: xr.Dataset | None,
    trusted: Trusted | None,
    options: argparse.Namespace,
    log: Log,
    aside: Sequence[tuple[str, str]],
) -> dict[str, str]:
    """Write all files, whole or not at all; which they are."""
    from gridsched import results
    from gridsched.figures.comparison import comparison
    from gridsched.figures.style import save

    files = _FILES | ({} if changes is None else _CHANGES) | ({} if trusted is None else calibrated.FILES)
    with writing_folder(options.out, [*_FILES, *_CHANGES, *calibrated.FILES, _INDEX]) as folder:
        save(*comparison(compared), folder / "compare")
        (folder / "compare.csv").rename(folder / "figure.csv")
        tables = {
            "compare.csv": _scheme_table(compared),
            "users.csv": _name_table(compared, "user"),
            "groups.csv": _name_table(compared, "group"),
        }
        if changes is not None:
            tables["counts.csv"] = changes.to_dataframe().reset_index()
        for name, rows in tables.items():
            rows.to_csv(folder / name, index=False, lineterminator="\n")
        if trusted is not None:
            calibrated.write(trusted, folder, log)
        results.write(compared, folder / "compare.nc")
        index = {
            "command": ["gridsched", *sys.argv[1:]],
            "source": compared.attrs["source"],
            "log": str(log.path),
            "sha256 of the log": log.workload.checksum,
            "left out of the simulation": dict(aside),
            "files": [
                {
                    "name": name,
                    "what": what,
                    "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
                }
                for name, what in files.items()
            ],
        }
        text = json.dumps(index, indent=2, ensure_ascii=False) + "\n"
        (folder / _INDEX).write_text(text, encoding="utf-8")
    return files


def _scheme_table(compared: xr.Dataset) -> pd.DataFrame:
    """One row a scheme."""
    import pandas as pd

    columns = {
        str(name): values.values for name, values in compared.data_vars.items() if values.dims == ("scheme",)
    }
    for level in compared["quantile"].values.tolist():
        columns[f"wait_time_{100 * level:g}%"] = compared["wait_time_quantile"].sel(quantile=level).values
    return pd.DataFrame({"scheme": compared["scheme"].values, **columns})


def _name_table(compared: xr.Dataset, kind: str) -> pd.DataFrame:
    """One row a user or group."""
    import pandas as pd

    columns = {
        kind: compared[kind].values,
        "jobs": compared[f"{kind}_jobs"].values,
        "processor_hours": compared[f"{kind}_work"].values,
    }
    for index, scheme in enumerate(compared["scheme"].values.tolist()):
        columns[f"mean_wait_time {scheme}"] = compared[f"{kind}_wait_time_mean"].values[index]
        if scheme != compared.attrs["reference"]:
            columns[f"change_hours {scheme}"] = compared[f"{kind}_wait_time_change"].values[index]
    return pd.DataFrame(columns)
