"""Platforms of centres: the paper's tables as they are stored, readings of the factor, files of one's own."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from math import ceil, inf
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gridsched.errors import ConfigurationError
from gridsched.experiments.kinds.jscheduler.platforms import NO_LOG, load_platform
from gridsched.io import resource
from gridsched.platform import Cluster
from gridsched.policies.local import POLICIES
from gridsched.systems.jscheduler.centres import Centre, CentrePlatform, Reading, offered_load
from gridsched.traces import clean, read_swf, registry, select_window
from tests.support.errors import refused
from tests.support.studies import changed
from tests.support.traces import workload

TABLE_1 = """\
NASA 128 4 sjbf, LANL-CM5 1024 1 fcfs, Par 416 1 easy, CTC-SP2 512 2 easy, KTH-SP2 100 4 easy,
SDSC-SP2 128 4 lxwf, Nirvana 2048 4 easy, OSC 178 4 sjbf, BLUE 1024 2 fcfs, HPC2N 240 4 easy,
DAS2-fs0 144 4 easy, DAS2-fs1 64 1 sjf, DAS2-fs2 64 5 sjbf, DAS2-fs3 64 1 sjbf, DAS2-fs4 64 5 fcfs,
SDSC-DS 184 5 easy, LPC 70x2 8 fcfs, LCG 100x250 5 easy, Sharcnet 6x128+1068+1536+3072+384 5 sjf,
Atlas 1152 3 fcfs, Thunder 1024 8 easy, CM5 1152 3 fcfs"""

TABLE_2 = """\
CTC-SP2 5249 29586 7.76 39.01, LCG 434.12 4320 4.3 23.32, DAS2-fs0 22.68 135 1.11 1.69,
DAS2-fs1 5576 43414 11.71 21.18, DAS2-fs2 29594 99109 6.33 14.44, DAS2-fs3 4.52 100 1.03 3.23,
DAS2-fs4 39053 192140 221 934.33, HPC2N 23980 87607 72.05 299.5, KTH-SP2 8864 54222 74.46 571.5,
LANL-CM5 126565 308231 1364 4061, LPC 133 1323 1.23 3.42, Atlas 1993 14217 3.18 12.97,
Thunder 18891 47758 138 366.8, BLUE 12383 27644 68.80 164.2, Par 453.12 12000 7.32 18.42,
OSC 1233.32 25433 5.443 24.43, SDSC-SP2 116.12 1233 1.45 4.22, NASA 232.45 2133 2.43 10.43,
Sharcnet 649 4432 43.6 749"""

OWN: dict[str, Any] = {
    "centres": [
        {
            "name": "Here",
            "resources": [[2, 4], [1, 16]],
            "factor": 2,
            "policy": "easy(2)",
            "file": "here.swf",
        },
        {"name": "There", "resources": [[1, 64]], "factor": 0.5, "policy": "fcfs", "log": "kth-sp2-1996"},
        {"name": "Elsewhere", "resources": [[1, 8]], "factor": 1, "policy": "sjf"},
    ]
}

KEYS = ["name", "resources", "factor", "policy", "log", "file", "absent", "paper", "other"]


def rows(table: str) -> dict[str, list[str]]:
    """Cells of a table, by the first of each row."""
    cells = [row.split() for row in table.replace("\n", " ").split(",")]
    return {name: rest for name, *rest in cells}


def expanded(processors: str) -> list[int]:
    """Processors of every resource of a cell such as 2x8+4."""
    pairs = [part.split("x") if "x" in part else ("1", part) for part in processors.split("+")]
    return [int(each) for number, each in pairs for _ in range(int(number))]


def own_platform(folder: Path, content: Any = OWN) -> Path:
    """A platform file with this content."""
    path = folder / "mine.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


# --- the platform of the paper --------------------------------------------------------------------


def test_platform_is_table_one() -> None:
    platform = load_platform()
    clusters, policies, centre_index = platform.resources("multiply")
    assert (len(clusters), sum(cluster.processors for cluster in clusters)) == (199, 41678)
    assert len({cluster.name for cluster in clusters}) == 199
    table = rows(TABLE_1)
    assert [centre.name for centre in platform.centres] == list(table)
    for index, (name, (processors, factor, policy)) in enumerate(table.items()):
        own = np.flatnonzero(centre_index == index)
        assert [clusters[m].processors for m in own] == expanded(processors)
        assert {clusters[m].speed for m in own} == {1 / int(factor)}
        assert {policies[m] for m in own} == {POLICIES[policy]}
        assert {clusters[m].name.split("/")[0] for m in own} == {name}
    assert "Table 1" in platform.source


def test_papers_results_are_table_two() -> None:
    found = {centre.name: dict(centre.paper) for centre in load_platform().centres if centre.paper}
    keys = ("wait_mean", "wait_p95", "slowdown_mean", "slowdown_p95")
    assert found == {
        name: dict(zip(keys, map(float, cells), strict=True)) for name, cells in rows(TABLE_2).items()
    }


def test_every_log_that_is_used_can_be_verified() -> None:
    logs = registry()
    for centre in load_platform().centres:
        known = centre.log is not None and bool(logs[centre.log].sha256_gz or logs[centre.log].sha256_content)
        assert known == (not centre.absent)
    used = [centre.log for centre in load_platform().centres if not centre.absent]
    assert (len(used), len(set(used))) == (15, 15)


def test_names_of_resources() -> None:
    clusters, _, centre_index = load_platform().resources("none")
    names = np.array([cluster.name for cluster in clusters])
    by_centre = {c.name: names[centre_index == m].tolist() for m, c in enumerate(load_platform().centres)}
    assert by_centre["KTH-SP2"] == ["KTH-SP2"]
    assert by_centre["LPC"][:2] + by_centre["LPC"][-1:] == ["LPC/01", "LPC/02", "LPC/70"]
    assert by_centre["LCG"][:2] + by_centre["LCG"][-1:] == ["LCG/001", "LCG/002", "LCG/100"]


# --- readings of the factor -----------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(0, 10_000_000), st.sampled_from(get_args(Reading)))
def test_factor_scales_run_times_as_it_is_read(factor: int, run_time: int, reading: Reading) -> None:
    centre = Centre(name="A", resources=((3, 2), (1, 5)), factor=factor, policy="sjbf")
    expected = {
        "multiply": run_time * factor,
        "divide": ceil(Fraction(run_time, factor)),
        "none": run_time,
    }[reading]
    platform = CentrePlatform((centre,))
    clusters, policies, centre_index = platform.resources(reading)
    pool, policy = platform.pool("A", reading)
    assert [cluster.processors for cluster in clusters] == [2, 2, 2, 5]
    assert (pool.processors, pool.name, policy.name) == (11, "A", "sjbf")
    assert {each.name for each in policies} == {"sjbf"}
    assert centre_index.tolist() == [0] * 4
    for cluster in (*clusters, pool):
        assert cluster.duration(np.array([run_time])).tolist() == [expected]


def test_pool_of_every_centre_has_the_processors_of_its_resources() -> None:
    platform = load_platform()
    for reading in get_args(Reading):
        clusters, policies, centre_index = platform.resources(reading)
        for index, centre in enumerate(platform.centres):
            pool, policy = platform.pool(centre.name, reading)
            own = np.flatnonzero(centre_index == index)
            assert pool.processors == sum(clusters[m].processors for m in own)
            assert {(clusters[m].speed, policies[m]) for m in own} == {(pool.speed, policy)}


def test_unknown_centre_and_reading() -> None:
    platform, wrong = load_platform(), cast(Any, "double")
    with refused("no centre 'KTH'; did you mean KTH-SP2"):
        platform.pool("KTH", "none")
    for ask in (lambda: platform.pool("LPC", wrong), lambda: platform.resources(wrong)):
        with refused("reading is 'double'; use one of multiply, divide, none"):
            ask()


# --- offered load ---------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 12)), min_size=1, max_size=8
    ),
    st.sampled_from([0.25, 1.0, 4.0]),
    st.booleans(),
)
def test_offered_load_is_work_per_capacity(
    jobs: list[tuple[int, int, int]], speed: float, node_exclusive: bool
) -> None:
    cluster = Cluster(processors=8, speed=speed, processors_per_node=4, node_exclusive=node_exclusive)
    submit, run, processors = (list(column) for column in zip(*jobs, strict=True))
    log = workload(submit_time=submit, run_time=run, requested_processors=processors)
    work = 0
    for seconds, wanted in zip(run, processors, strict=True):
        taken = 4 * ceil(wanted / 4) if node_exclusive else wanted
        if taken <= 8:
            work += taken * ceil(seconds / speed)
    span = max(submit) - min(submit)
    expected = work / (8 * span) if span else (inf if work else 0.0)
    assert offered_load(log, cluster) == pytest.approx(expected, rel=1e-12)


def test_no_jobs_offer_no_load() -> None:
    assert (
        offered_load(workload(submit_time=[], run_time=[], requested_processors=[]), Cluster(processors=1))
        == 0
    )


@pytest.mark.parametrize(
    ("name", "multiply", "unscaled"),
    [("NASA", 1.864, 0.466), ("KTH-SP2", 2.864, 0.716), ("DAS2-fs1", 0.122, 0.122), ("OSC", 0.277, 0.069)],
)
def test_offered_loads_of_the_archive(
    name: str, multiply: float, unscaled: float, archive_mirror: Path
) -> None:
    platform = load_platform()
    log = registry()[platform.centre(name).log or ""]
    jobs = clean(select_window(read_swf(archive_mirror / log.file), first_months=8))
    assert offered_load(jobs, platform.pool(name, "multiply")[0]) == pytest.approx(multiply, abs=5e-4)
    assert offered_load(jobs, platform.pool(name, "none")[0]) == pytest.approx(unscaled, abs=5e-4)


# --- platforms of one's own -----------------------------------------------------------------------


def test_platform_of_ones_own(tmp_path: Path) -> None:
    platform = load_platform(own_platform(tmp_path))
    assert [(each.file, each.log, each.absent, each.paper) for each in platform.centres] == [
        ("here.swf", None, "", None),
        (None, "KTH-SP2-1996", "", None),
        (None, None, NO_LOG, None),
    ]
    assert platform.source == "mine.yaml"
    clusters, policies, _ = platform.resources("divide")
    assert [(c.name, c.processors, c.speed) for c in clusters] == [
        ("Here/1", 4, 2.0),
        ("Here/2", 4, 2.0),
        ("Here/3", 16, 2.0),
        ("There", 64, 0.5),
        ("Elsewhere", 8, 1.0),
    ]
    assert (policies[0].name, policies[0].reservations) == ("easy(2)", 2)


def test_copy_of_the_papers_platform_is_the_same(tmp_path: Path) -> None:
    text = resource("resources", "jscheduler.yaml").read_text(encoding="utf-8")
    assert load_platform(own_platform(tmp_path, text)) == load_platform()
    assert repr(load_platform(own_platform(tmp_path, text))) == repr(load_platform())


def test_log_without_checksum_may_be_used_in_ones_own_platform(tmp_path: Path) -> None:
    content = changed(OWN, "centres.1.log", "SHARCNET-2005")
    assert load_platform(own_platform(tmp_path, content)).centres[1].absent == ""


MISTAKES: list[tuple[str, Any, str]] = [
    (
        "policy",
        "sjbff",
        r"centres\[Here\].policy: found 'sjbff'; unknown policy; did you mean sjbf\? known are fcfs,",
    ),
    ("policy", 3, r"centres\[Here\].policy: found 3; write text"),
    ("policy", "easy++", r"centres\[Here\].policy: found 'easy\+\+'; .*fused logs name no users"),
    ("resources", [], r"centres\[Here\].resources: found \[\]; write at least 1"),
    (
        "resources",
        [[1, 0]],
        r"centres\[Here\].resources\[item 1\]\[item 2\]: found 0; .*greater than or equal to 1",
    ),
    (
        "resources",
        [[0, 4]],
        r"centres\[Here\].resources\[item 1\]\[item 1\]: found 0; .*greater than or equal to 1",
    ),
    (
        "resources",
        [[2**15, 4]],
        r"resources\[item 1\]\[item 1\]: found 32768; .*less than or equal to 32767",
    ),
    ("resources", [[1, 2.5]], r"resources\[item 1\]\[item 2\]: found 2.5; write a whole number"),
    ("resources", [1, 4], r"centres\[Here\].resources\[item 1\]: found 1; write a list"),
    (
        "resources",
        [[1, 4, 2]],
        r"resources\[item 1\]: found \[1, 4, 2\]; write at most 2",
    ),
    ("resources", [[1]], r"resources\[item 1\]\[item 2\]: missing"),
    (
        "resources",
        [[4, 2**30]],
        r"centres\[Here\].*resources: 4294967296 processors; a centre can have 2147483647",
    ),
    ("factor", 0, r"centres\[Here\].factor: found 0; "),
    ("factor", -1, r"centres\[Here\].factor: found -1; "),
    ("factor", "fast", r"centres\[Here\].factor: found 'fast'; write a number"),
    ("factor", None, r"centres\[Here\].factor: found None; write a number"),
    ("factor", True, r"centres\[Here\].factor: found True; write a number"),
    ("factor", inf, r"centres\[Here\].factor: found inf; "),
    ("name", "There", r"centres: 'There' is there twice"),
    ("name", "THERE", r"centres: 'THERE' and 'There' would be one file"),
    ("name", "a/b", r"centres\[a/b\].name: found 'a/b'; use letters"),
    ("log", "KTH-SP2-1996", r"centres\[Here\].*log, file: give one of them"),
    ("paper", {"wait_mean": 1}, r"centres\[Here\].paper.wait_p95: missing"),
    (
        "paper",
        {"wait": 1},
        r"centres\[Here\].paper.wait: unknown key; .*known are wait_mean, wait_p95, slowdown_mean",
    ),
    ("polcy", "fcfs", r"centres\[Here\].polcy: unknown key; did you mean policy\?"),
    ("file", "runs/{name}.swf", r"centres\[Here\].file: found 'runs/{name}.swf'; a path has no braces"),
    ("paper", [1, 2, 3, 4], r"centres\[Here\].paper: found \[1, 2, 3, 4\]; "),
    ("absent", "", r"centres\[Here\].absent: found ''; "),
]
"""Keys of the first centre, with what is wrong with a value."""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        *((changed(OWN, f"centres.0.{key}", value), problem) for key, value, problem in MISTAKES),
        (
            changed(OWN, "centres.1.log", "KTH-SP2-1997"),
            r"centres\[There\].log: found 'KTH-SP2-1997'.*did you mean KTH-SP2-1996",
        ),
        ({"centres": []}, "centres: found .*; write at least 1"),
        ({}, "centres: missing"),
        ({"centres": OWN["centres"], "sorce": "me"}, "sorce: unknown key; did you mean source?"),
        ({"centres": ["KTH"]}, r"centres\[item 1\]: found 'KTH'; "),
        ("", "nothing in it; write key: value lines"),
        ("centres: [", "not YAML"),
        ("centres: []\ncentres: []\n", "the key 'centres' is there twice"),
    ],
)
def test_mistakes_in_a_file(content: Any, problem: str, tmp_path: Path) -> None:
    path = own_platform(tmp_path, content)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        load_platform(path)
    assert all(line.startswith(str(path)) for line in str(caught.value).splitlines())


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["fcfs", "A"]),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.integers(), inside, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["source", "centres"]) | st.integers(), ANYTHING, max_size=3),
    st.dictionaries(st.sampled_from(KEYS) | st.integers(), ANYTHING, max_size=4),
)
def test_whatever_is_in_a_file_is_read_or_refused_line_by_line(top: Any, centre: Any) -> None:
    first = {**OWN["centres"][0], **centre}
    for content in (top, {"centres": [first]}, {**top, "centres": [first, *OWN["centres"][1:]]}):
        with tempfile.TemporaryDirectory() as folder:
            path = own_platform(Path(folder), content)
            try:
                platform = load_platform(path)
            except ConfigurationError as error:
                message = str(error)
            else:
                names = [cluster.name for cluster in platform.resources("divide")[0]]
                assert len(set(names)) == len(names) > 0
                continue
        assert all(line.startswith(f"{path}: ") for line in message.splitlines())


def test_missing_file(tmp_path: Path) -> None:
    with refused("none.yaml: no such file"):
        load_platform(tmp_path / "none.yaml")
