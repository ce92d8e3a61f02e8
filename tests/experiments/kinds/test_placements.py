"""Studies of placements: what is measured, by hand and by a naive scheduler; configuration, figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from gridsched.errors import ConfigurationError
from gridsched.experiments.batches import Work
from gridsched.experiments.claims import load_claims
from gridsched.experiments.config import load_config
from gridsched.experiments.kinds import placements as kinds
from gridsched.experiments.kinds.placements import (
    FOLDER,
    SCENARIOS,
    PlacementStudy,
    gpus_of,
    read_cluster,
)
from gridsched.io import read_yaml
from gridsched.nodes import NodeType
from gridsched.results import read
from tests.conftest import REPOSITORY
from tests.support.errors import refused
from tests.support.fields import assert_fields
from tests.support.nodes import jobs_of
from tests.support.studies import message_about, study_in

STUDY: dict[str, Any] = {
    "name": "tiny",
    "kind": "placements",
    "title": "Tiny",
    "nodes": "nodes.csv",
    "pods": "pods.csv",
    "placements": ["random", "packed", "fragments"],
    "node_orders": ["random", "name"],
    "replicates": 3,
    "seed": 7,
}
SEED = 1


def write_tables(folder: Path) -> Path:
    """Twelve nodes of three kinds, two of them without GPUs, and sixty pods of which some share a GPU."""
    rng = np.random.default_rng(5)
    kinds = [(32_000, 131_072, 0), (64_000, 262_144, 2), (96_000, 393_216, 8)]
    rows = [(f"n{i:02}", *kinds[min(i // 2, 2) if i < 6 else 1 + i % 2]) for i in range(12)]
    nodes = pd.DataFrame(rows, columns=["sn", "cpu_milli", "memory_mib", "gpu"])
    nodes.assign(model="A").to_csv(folder / "nodes.csv", index=False)
    asked = [(0, 0), (1, 250), (1, 600), (1, 1000), (2, 1000), (4, 1000)]
    gpus = [asked[kind] for kind in rng.integers(0, len(asked), 60)]
    pods = pd.DataFrame(gpus, columns=["num_gpu", "gpu_milli"])
    pods.insert(0, "name", [f"p{i}" for i in range(60)])
    pods["cpu_milli"] = rng.choice([0, 2_000, 8_000, 16_000], 60)
    pods["memory_mib"] = rng.choice([1_024, 16_384, 65_536], 60)
    pods.to_csv(folder / "pods.csv", index=False)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the tables of the study."""
    monkeypatch.chdir(write_tables(tmp_path))
    monkeypatch.delenv(FOLDER, raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study and all that belongs to it, in a folder."""
    return study_in(write_tables(tmp_path_factory.mktemp("placements")), study_of, SEED, shown=True)


@pytest.fixture(scope="module")
def dataset(made: Path) -> xr.Dataset:
    return read(made / "tiny" / "study.nc")


def study_of(**changes: Any) -> PlacementStudy:
    return PlacementStudy.model_validate({**STUDY, **changes})


# --- what is measured -----------------------------------------------------------------------------


def filled(nodes: pd.DataFrame, pods: pd.DataFrame) -> list[bool]:
    """Which pods a naive first fit places, that knows the GPUs of each node; GPUs in use come first."""
    cores, memory = nodes["cpu_milli"].tolist(), nodes["memory_mib"].tolist()
    devices = [[1000] * gpus for gpus in nodes["gpu"]]
    placed = []
    pod: Any
    for pod in pods.itertuples():
        wanted_cores = pod.cpu_milli or 100
        for n, free in enumerate(devices):
            if pod.gpu_spec and nodes["model"].iloc[n] not in pod.gpu_spec.split("|"):
                continue
            if cores[n] < wanted_cores or memory[n] < pod.memory_mib // wanted_cores * wanted_cores:
                continue
            fitting = sorted((each, d) for d, each in enumerate(free) if each >= pod.gpu_milli)
            if pod.num_gpu and len(fitting) < pod.num_gpu:
                continue
            for _, d in fitting[: pod.num_gpu]:
                free[d] -= pod.gpu_milli
            cores[n] -= wanted_cores
            memory[n] -= pod.memory_mib
            placed.append(True)
            break
        else:
            placed.append(False)
    return placed


@pytest.mark.parametrize("models", [[""], ["", "A", "B", "A|B"]])
@pytest.mark.parametrize("order", ["random", "name", "reverse"])
def test_first_fit_by_hand(folder: Path, order: Any, models: list[str]) -> None:
    # Memory a multiple of what our processors divide, so that nothing is rounded
    pods = pd.read_csv("pods.csv").assign(memory_mib=0)
    pods["gpu_spec"] = np.where(pods["num_gpu"] > 0, np.resize(models, len(pods)), "")
    listed_nodes = pd.read_csv("nodes.csv")
    listed_nodes.assign(model=np.resize(["A", "B", "B"], len(listed_nodes))).to_csv("nodes.csv", index=False)
    pods.to_csv("pods.csv")
    kinds.run_placement("first_fit", order, 0, 3, 1.5, "nodes.csv", "pods.csv", "run.nc")
    run = read("run.nc")
    machines, _, listed = read_cluster("nodes.csv", "pods.csv")
    nodes = pd.read_csv("nodes.csv", index_col="sn")
    nodes = nodes.loc[[node.name for node in kinds.ordered(machines, order, 3)]]
    total = int(nodes["gpu"].sum()) * 1000
    drawn = pods.iloc[kinds.draw_pods(listed, 1.5 * total, 3).job_number - 1]
    placed = filled(nodes, drawn)
    gpus = (drawn["num_gpu"] * drawn["gpu_milli"]).tolist()
    for share in (0.2, 1.0, 1.5):
        asked, given, count, come = 0, 0, 0, 0
        for each, is_placed in zip(gpus, placed, strict=True):
            if asked + each >= share * total:
                break
            asked += each
            come += 1
            given += each * is_placed
            count += is_placed
        then = run.sel(arrived=share)
        assert_fields(then, allocated=given / total, waiting=pytest.approx((asked - given) / total))
        assert (int(then["pods_arrived"]), int(then["pods_placed"])) == (come, count)
    assert run["allocated_full"] == run["allocated"].sel(arrived=1.0)
    assert run["allocated"].sel(arrived=1.5) < 1


def test_pods_all_come_once_before_some_come_again() -> None:
    pods = jobs_of(
        submit_time=[0, 0, 0],
        run_time=[-1, -1, -1],
        requested_processors=[1, 1, 1],
        requested_gpus=[-1, -1, 2],
        gpu_share=[500, -1, -1],
    )
    drawn = kinds.draw_pods(pods, 9000, 4)
    gpus = gpus_of(drawn).tolist()
    assert sorted(drawn.job_number[:3].tolist()) == [1, 2, 3]
    assert sum(gpus) >= 9000 > sum(gpus[:-1])
    assert len(set((drawn.submit_time + drawn.run_time).tolist())) == 1
    assert len(kinds.draw_pods(pods, 100, 4)) == 3
    assert kinds.draw_pods(pods, 9000, 4).job_number.tolist() == drawn.job_number.tolist()
    assert kinds.draw_pods(pods, 9000, 5).job_number.tolist() != drawn.job_number.tolist()


def test_orders_of_nodes() -> None:
    nodes = [NodeType(name=f"n{i}", cores=1) for i in (3, 1, 0, 2)]

    def names(order: Any, seed: int = 1) -> list[str]:
        return [node.name for node in kinds.ordered(nodes, order, seed)]

    assert names("name") == ["n0", "n1", "n2", "n3"]
    assert names("reverse") == ["n3", "n2", "n1", "n0"]
    drawn = {tuple(names("random", seed)) for seed in range(9)}
    assert len(drawn) > 1
    assert {tuple(sorted(order)) for order in drawn} == {("n0", "n1", "n2", "n3")}


def at(dataset: xr.Dataset, **where: Any) -> xr.Dataset:
    return dataset.sel(scenario=SCENARIOS["random"], estimates="requested", **where)


def test_the_dataset_has_every_run(dataset: xr.Dataset) -> None:
    assert dataset["allocated"].dims == ("scenario", "scheduler", "estimates", "replicate", "arrived")
    assert_fields(
        dataset,
        scheduler=STUDY["placements"],
        node_order=["random", "name"],
        baseline=["nodes in random order"] * 2,
    )
    allocated = dataset["allocated"]
    assert ((allocated <= dataset["arrived"] + 1e-9) & (allocated <= 1)).all()
    assert (allocated.diff("arrived") >= 0).all()
    assert (dataset["pods_placed"] <= dataset["pods_arrived"]).all()
    assert dataset["cluster_nodes"].values.tolist() == [10, 10]
    # The same pods under all placements, others in each replicate
    arrived = dataset["pods_arrived"].squeeze("estimates").values
    assert (arrived == arrived[:1, :1]).all()
    assert len({tuple(each) for each in arrived[0, 0]}) == 3


# --- figures and findings -------------------------------------------------------------------------


def test_orders_of_nodes_are_compared_by_pairs_of_replicates(made: Path, dataset: xr.Dataset) -> None:
    numbers = pd.read_csv(made / "tiny" / "figures" / "node-orders.csv")
    full = dataset["allocated_full"].squeeze("estimates").mean("replicate")
    for row in numbers[numbers["scenario"] == "nodes by name"].to_dict("records"):
        change = full.sel(scenario="nodes by name") - full.sel(scenario="nodes in random order")
        assert row["difference"] == pytest.approx(float(change.sel(scheduler=row["scheduler"])), abs=1e-9)
    assert {each.name for each in study_of(node_orders=["name"]).specifications} == {"ranking", "waiting"}


def test_findings_on_waiting_say_who_falls_behind(dataset: xr.Dataset) -> None:
    *_, waiting = study_of(node_orders=["random"]).specifications
    rows = [
        (SCENARIOS["random"], name, arrived, arrived - min(arrived, most))
        for name, most in (("random", 0.8), ("packed", 0.9))
        for arrived in (0.7, 0.8, 0.9, 1.0, 1.1)
    ]
    numbers = pd.DataFrame(rows, columns=["scenario", "scheduler", "arrived", "low"])
    (line,) = kinds.falling_behind(numbers, waiting, {})
    assert line == (
        "Nodes in random order: under random pods wait for 1 % of the GPUs once 90 % are requested, "
        "under packed once 100 % are."
    )
    assert "less than 1 %" in kinds.falling_behind(numbers.assign(low=0.0), waiting, {})[0]


def test_conventions_say_how_large_the_cluster_is(dataset: xr.Dataset) -> None:
    assert study_of().conventions(dataset)[0].startswith("10 nodes with ")


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"placements": ["packt"]}, "placements[item 1]: found 'packt'"),
        ({"placements": ["packed", "packed"]}, "placements: 'packed' is there twice"),
        ({"node_orders": ["random", "random"]}, "node_orders: 'random' is there twice"),
        ({"arrived": 0.5}, "arrived: found 0.5"),
        ({"replicates": 0}, "replicates: found 0"),
        ({"seed": -1}, "seed: found -1"),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    assert words in message_about(tmp_path, {**STUDY, **changes})


def test_tables_that_are_not_there_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER, raising=False)
    shipped = str(REPOSITORY / "config" / "studies" / "placements.yaml")
    config, studies = load_config({"studies": [shipped]})
    with refused(
        "nodes: found 'openb_node_list_all_node.csv.gz'; there is no such file",
        "alibaba/clusterdata, cluster-trace-gpu-v2023",
        FOLDER,
        error=ConfigurationError,
        one_line=True,
    ):
        Work(config, studies)


def test_tables_of_the_folder_that_the_environment_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = {task.name: task.key for task in study_of().experiment(SEED).tasks}
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(ConfigurationError, match=r"nodes: found 'nodes\.csv'"):
        study_of().check_files()
    monkeypatch.setenv(FOLDER, str(folder))
    study_of().check_files()
    assert {task.name: task.key for task in study_of().experiment(SEED).tasks} == before


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nodes.csv", "sn,cpu_milli\nn,1\n", "nodes.csv:1: no column memory_mib, gpu"),
        ("nodes.csv", "sn,cpu_milli,memory_mib,gpu\nn,1,1,0\n", "nodes.csv: no node has GPUs"),
        ("nodes.csv", "sn,cpu_milli,memory_mib,gpu\nn,1,1,x\n", "nodes.csv:2: gpu is 'x'"),
        ("pods.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,0,0\n", "pods.csv: no pod asks for GPUs"),
        ("pods.csv", "", "pods.csv:1: no column cpu_milli"),
    ],
)
def test_tables_that_cannot_be_read(folder: Path, name: str, content: str, words: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with refused(words, one_line=True):
        read_cluster("nodes.csv", "pods.csv")


def test_the_shipped_study_has_the_placements_of_the_ledger() -> None:
    shipped = PlacementStudy.model_validate(read_yaml(REPOSITORY / "config" / "studies" / "placements.yaml"))
    claims = [one for one in load_claims() if one.source is not None and one.source.study == "placements"]
    assert claims
    assert {str(one.source.select.get("scheduler", "random")) for one in claims if one.source} <= set(
        map(kinds.label_of, shipped.placements)
    )
