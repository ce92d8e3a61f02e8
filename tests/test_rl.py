"""The environment of queue orders: what is seen, done and measured, in single environments and in vectors."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast, get_args

import gymnasium
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation

from gridsched import rl
from gridsched.engine.committed import FEATURES, LONGEST_WAIT
from gridsched.errors import GridschedError
from gridsched.experiments.collection import ALL
from gridsched.experiments.kinds.sequences import MEASURES, run_sequences
from gridsched.results import read
from gridsched.sequences import SequenceBackfilling
from gridsched.traces import read_swf
from tests.oracles.committed import Choice, Job, choices
from tests.support.errors import refused
from tests.support.nodes import workload_of

PROCESSORS = 6
LENGTH = 12
VISIBLE = 4
LABELS = {"scenario": "own", "scheduler": "fcfs", "estimates": "requested"}


def drawn_jobs(seed: int, count: int = 40) -> list[Job]:
    rng = random.Random(seed)
    submits = sorted(rng.randint(0, 150) for _ in range(count))
    runs = [rng.randint(0, 20) for _ in submits]
    return [
        Job(submit, run, max(1, run + rng.choice([0, 0, 3, -2])), rng.randint(1, PROCESSORS))
        for submit, run in zip(submits, runs, strict=True)
    ]


def given(seed: int, **changes: Any) -> dict[str, Any]:
    """Parameters of a small environment; VISIBLE of up to LENGTH waiting jobs are seen."""
    own = {"workload": workload_of(drawn_jobs(seed)), "processors": PROCESSORS, "length": LENGTH}
    return {**own, "visible": VISIBLE, **changes}


def made(seed: int = 1, **changes: Any) -> Any:
    return gymnasium.make(rl.ID, **given(seed, **changes))


def made_vector(clusters: int, mode: str, seed: int = 1, *, own: bool = True, **changes: Any) -> Any:
    """Copies that step in one kernel (`own`), or single environments behind the same interface."""
    chosen = given(seed, **changes)
    if own:
        return gymnasium.make_vec(rl.ID, clusters, "vector_entry_point", autoreset_mode=mode, **chosen)
    return gymnasium.make_vec(rl.ID, clusters, "sync", {"autoreset_mode": mode}, **chosen)


def seen(jobs: list[Job], choice: Choice, longest: int) -> np.ndarray[Any, Any]:
    """The observation as the docs say it."""
    rows = np.zeros((VISIBLE, len(FEATURES)))
    for place, j in enumerate(choice.queue[:VISIBLE]):
        job = jobs[j]
        rows[place] = (
            min(1, (choice.now - job.submit) / LONGEST_WAIT),
            job.estimate / longest,
            job.processors / PROCESSORS,
            job.processors <= choice.free,
            choice.free / PROCESSORS,
        )
    return rows


@pytest.mark.random_cases(3)
@pytest.mark.parametrize("backfilling", get_args(SequenceBackfilling))
def test_steps_are_those_of_a_naive_scheduler(backfilling: SequenceBackfilling, seed: int) -> None:
    """Random actions: observations, masks, times, and measures at the end."""
    jobs = drawn_jobs(seed)
    longest = max(job.estimate for job in jobs)
    env, rng = made(seed, backfilling=backfilling), random.Random(seed)
    for start in range(0, len(jobs) - LENGTH, 5):
        part = jobs[start : start + LENGTH]
        naive = choices(part, PROCESSORS, backfills=backfilling == "shadow")
        observation, info = env.reset(options={"start": start})
        assert info["start"] == start
        choice = next(naive)
        while True:
            assert info["time"] == choice.now
            assert info["action_mask"].sum() == min(VISIBLE, len(choice.queue))
            np.testing.assert_array_equal(observation, seen(part, choice, longest).astype(np.float32))
            action = rng.randrange(min(VISIBLE, len(choice.queue)))
            observation, reward, ended, truncated, info = env.step(action)
            assert truncated is False
            try:
                choice = naive.send(choice.queue[action])
            except StopIteration as done:
                starts = done.value
                break
            assert (reward, ended) == (0.0, False)
        assert ended is True
        assert not observation.any()
        waits = [begin - job.submit for begin, job in zip(starts, part, strict=True)]
        slowdowns = [
            max(1, (wait + job.run) / max(job.run, 10)) for wait, job in zip(waits, part, strict=True)
        ]
        assert info["bounded_slowdown_mean"] == pytest.approx(np.mean(slowdowns))
        assert info["wait_time_mean"] == pytest.approx(np.mean(waits))
        assert reward == -info["bounded_slowdown_mean"]


# --- the interface of Gymnasium -------------------------------------------------------------------


@pytest.mark.parametrize("backfilling", get_args(SequenceBackfilling))
@pytest.mark.parametrize("visible", [1, VISIBLE, 128])
def test_the_checker_of_gymnasium_has_nothing_to_say(visible: int, backfilling: SequenceBackfilling) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(visible=visible, backfilling=backfilling).unwrapped)


def test_wrappers_see_an_ordinary_environment() -> None:
    env = FlattenObservation(made(max_episode_steps=3))
    observation, _ = env.reset(seed=1)
    assert observation.shape == (VISIBLE * len(FEATURES),)
    ends = [env.step(0)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)], "only a limit of steps truncates"


def played(env: Any, seed: int | None) -> list[tuple[Any, ...]]:
    """A sequence with random valid actions."""
    steps: list[tuple[Any, ...]] = [env.reset(seed=seed)]
    env.action_space.seed(seed)
    while len(steps) == 1 or not steps[-1][2]:
        steps.append(env.step(env.action_space.sample()))
    return steps


def test_seeds_reproduce_and_differ() -> None:
    first, again, other = (played(made(), seed) for seed in (7, 7, 8))
    assert data_equivalence(first, again, exact=True)
    assert not data_equivalence(first, other)
    env = made(starts=[3, 20])
    assert {env.reset(seed=seed)[1]["start"] for seed in range(20)} == {3, 20}


def test_samples_are_valid_and_masks_agree() -> None:
    env = made(workload=workload_of([Job(0, 5, 5, PROCESSORS)] * 20))
    _, info = env.reset(seed=2)
    env.action_space.seed(1)
    counts = []
    for _ in range(LENGTH):
        masks = env.unwrapped.action_masks()
        assert masks.dtype == np.bool_
        np.testing.assert_array_equal(masks, info["action_mask"] == 1)
        counts.append(int(masks.sum()))
        *_, ended, _, info = env.step(env.action_space.sample())
    assert ended
    assert max(counts) == VISIBLE
    assert env.unwrapped.action_masks().tolist() == [True] + [False] * (VISIBLE - 1)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (2, "action 2 at 1 s: 2 jobs wait, so that only 0 to 1 are valid; see action_masks()"),
        (4, "action 4 at 1 s: the action space is 0 to 3"),
        (-1, "action -1 at 1 s: the action space is 0 to 3"),
        (0.5, "action 0.5 at 1 s: the action space is 0 to 3"),
    ],
)
def test_invalid_actions_are_named_and_change_nothing(action: Any, reason: str) -> None:
    jobs = [Job(0, 5, 5, 6), Job(1, 5, 5, 6), Job(1, 5, 5, 6), Job(1, 5, 5, 6)]
    env = made(workload=workload_of(jobs), length=4).unwrapped
    env.reset(options={"start": 0})
    with pytest.raises(InvalidAction, match=r"action 1 at 0 s: one job waits, so that only 0 is valid"):
        env.step(1)
    env.step(0)
    env.step(0)
    assert env.action_masks().sum() == 2
    with pytest.raises(InvalidAction, match=re.escape(reason.replace("at 1 s", "at 5 s"))):
        env.step(action)
    assert env.action_masks().sum() == 2
    env.step(1)
    assert env.step(0)[2]
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(0)


def begun(**options: Any) -> object:
    return made().reset(options=options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: made(reward="bounded_slowdown"), "did you mean bounded_slowdown_mean?"),
        (lambda: made(backfilling="easy"), "use one of none, shadow"),
        (lambda: made(length=41), "needs 41 jobs, the log has 40"),
        (lambda: made(starts=[29]), "a sequence from 29 on needs 41 jobs, the log has 40"),
        (lambda: made(starts=[]), "starts is empty"),
        (lambda: made(processors=None), "give processors"),
        (lambda: made(processors=5), "a job asks for 6 of 5 processors"),
        (lambda: made(visible=0), "visible is 0"),
        (lambda: made(length=2.5), "length is 2.5; it must be a whole number"),
        (lambda: made(workload="KTH-SP3"), "no log of the archive"),
        (lambda: begun(starts=1), "option 'starts'; use start; did you mean start"),
        (lambda: begun(start=29), "a sequence from 29 on"),
        (lambda: rl.QueueOrder(cast(Any, "fastest")), "order is 'fastest'"),
        (lambda: rl.QueueOrder("fcfs", waits=cast(Any, "none")), "waits is 'none'"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: Callable[[], object], message: str) -> None:
    with refused(message, error=GridschedError):
        wrong()


@pytest.mark.parametrize("reward", rl.REWARDS)
def test_rewards_are_measures_better_when_larger(reward: str) -> None:
    *_, (_, value, _, _, info) = played(made(reward=reward), 1)
    assert value == (info[reward] if reward.startswith("utilisation") else -info[reward])


def test_a_utilisation_in_no_time_is_a_number() -> None:
    jobs = workload_of([Job(0, 5, 5, 1), Job(0, 5, 5, 1)])
    env = made(workload=jobs, length=2, reward="utilisation_to_last_start")
    *_, (_, reward, _, _, info) = played(env, 1)
    assert reward == 0
    assert info["utilisation_makespan"] == 2 / PROCESSORS


def test_without_gymnasium_the_extra_is_named() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import gridsched.rl"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: gridsched.rl needs gymnasium: pip install 'gridsched[rl]'"
    )


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.random_cases(2)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("backfilling", get_args(SequenceBackfilling))
def test_a_vector_is_as_many_single_environments(
    backfilling: SequenceBackfilling, mode: str, seed: int
) -> None:
    """Step by step: all that is returned, over several sequences in each copy."""
    own = made_vector(5, mode, seed, backfilling=backfilling)
    single = made_vector(5, mode, seed, own=False, backfilling=backfilling)
    assert own.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert own.observation_space == single.observation_space
    assert own.action_space == single.action_space
    assert data_equivalence(own.reset(seed=seed), single.reset(seed=seed), exact=True)
    rng = np.random.default_rng(seed)
    for _ in range(3 * LENGTH):
        waiting = own.unwrapped.action_masks().sum(1)
        actions = rng.integers(waiting)
        assert data_equivalence(own.step(actions), single.step(actions), exact=True)
    start = np.arange(5)
    reset = own.reset(options={"start": start})[1]
    np.testing.assert_array_equal(reset["start"], start)


def test_a_vector_begins_sequences_when_it_is_told() -> None:
    envs = made_vector(2, "Disabled", starts=[0], visible=LENGTH)
    with pytest.raises(ResetNeeded, match="environment 0; call reset"):
        envs.step([0, 0])
    envs.reset(options={"start": [0, 1]})
    ended = np.zeros(2, np.bool_)
    while not ended.any():
        ended = envs.step(envs.action_space.sample())[2]
    with pytest.raises(ResetNeeded, match=f"environment {np.argmax(ended)}; call reset"):
        envs.step([0, 0])
    _, infos = envs.reset(options={"reset_mask": ended, "start": 5})
    assert infos["start"][ended].tolist() == [5] * int(ended.sum())
    np.testing.assert_array_equal(infos["_start"], ended)


def test_a_vector_may_be_reset_in_parts() -> None:
    envs = made_vector(2, "NextStep", starts=[0], visible=LENGTH)
    envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ResetNeeded, match="environment 1; call reset"):
        envs.step([0, 0])
    envs.reset(options={"reset_mask": [False, True]})
    ends = np.zeros(2, np.int64)
    while ends.min() < 2:
        ends += envs.step(envs.action_space.sample())[2]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1, 0], "action 1 at 1[0-9]* s in environment 1: one job waits"),
        ([0, 0], "give an array of 3 whole numbers"),
        ([0.0, 0.0, 0.0], "give an array of 3 whole numbers"),
    ],
)
def test_invalid_actions_of_a_vector_are_named(actions: list[float], message: str) -> None:
    envs = made_vector(3, "NextStep", workload=workload_of([Job(k + 1, 1, 1, 1) for k in range(40)]))
    with pytest.raises(ResetNeeded):
        envs.step([0, 0, 0])
    envs.reset(options={"start": [0, 11, 20]})
    with pytest.raises(InvalidAction, match=message):
        envs.step(actions)
    with pytest.raises(GridschedError, match="2 seeds for 3 environments"):
        envs.reset(seed=[1, 2])


# --- baselines ------------------------------------------------------------------------------------


def written(jobs: list[Job], path: Path) -> Path:
    """A log of the jobs."""
    lines = [
        f"{k + 1} {job.submit} -1 {job.run} {job.processors} -1 -1 {job.processors} {job.estimate} "
        "-1 1 1 1 1 1 -1 -1 -1"
        for k, job in enumerate(jobs)
    ]
    path.write_text(f"; MaxProcs: {PROCESSORS}\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def finished(env: Any, policy: Callable[[Any], Any], start: int) -> dict[str, float]:
    """Measures of a sequence under a policy."""
    _, info = env.reset(options={"start": start})
    ended = False
    while not ended:
        *_, ended, _, info = env.step(policy(env))
    return {name: info[name] for name in MEASURES}


def first_ends(envs: Any, policy: Callable[[Any], Any]) -> list[dict[str, float]]:
    """Measures of the first sequence of each copy under a policy."""
    found: dict[int, dict[str, float]] = {}
    while len(found) < envs.num_envs:
        *_, ended, _, infos = envs.step(policy(envs))
        for c in np.flatnonzero(ended).tolist():
            found.setdefault(c, {name: infos[name][c] for name in MEASURES})
    return [found[c] for c in range(envs.num_envs)]


@pytest.mark.parametrize("waits", ["true", "unset"])
@pytest.mark.parametrize("backfilling", get_args(SequenceBackfilling))
@pytest.mark.parametrize("order", ["fcfs", "shortest", "wfp3", "unicep", "f1"])
def test_baselines_have_the_numbers_of_the_study(
    order: Any, backfilling: SequenceBackfilling, waits: Any, tmp_path: Path
) -> None:
    """To the last bit, in single environments and in a vector, on a log with jobs of no run time."""
    log, starts = written(drawn_jobs(3), tmp_path / "own.swf"), [0, 3, 9]
    run_sequences("own", None, starts, LENGTH, order, backfilling, waits, log, LABELS, tmp_path / "run.nc")
    study = read(tmp_path / "run.nc").sel(group=ALL)
    policy = rl.QueueOrder(order, waits=waits)
    env = gymnasium.make(rl.ID, workload=log, length=LENGTH, visible=LENGTH, backfilling=backfilling)
    for replicate, start in enumerate(starts):
        found = finished(env, policy, start)
        assert found == {name: float(study[name][replicate]) for name in MEASURES}
    envs = gymnasium.make_vec(
        rl.ID,
        num_envs=len(starts),
        vectorization_mode="vector_entry_point",
        workload=str(log),
        length=LENGTH,
        visible=LENGTH,
        backfilling=backfilling,
    )
    envs.reset(options={"start": starts})
    ends = first_ends(envs, policy)
    assert ends == [{name: float(study[name][k]) for name in MEASURES} for k in range(len(starts))]


def test_a_published_baseline_comes_out_to_the_printed_decimals(
    archive_mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WFP3 without backfilling on HPC2N, ten sequences in one vector; the log is found by its name."""
    monkeypatch.setenv("GRIDSCHED_MIRRORS", str(archive_mirror))
    starts = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]
    envs = gymnasium.make_vec(
        rl.ID, num_envs=10, workload="HPC2N-2002", processors=240, length=1024, visible=1024
    )
    envs.reset(options={"start": starts})
    slowdowns = [each["bounded_slowdown_mean"] for each in first_ends(envs, rl.QueueOrder("wfp3", "unset"))]
    assert round(float(np.mean(slowdowns)), 2) == 426.99


def test_a_policy_sees_no_more_than_the_environment_shows() -> None:
    """The shortest job is fourth in the queue; of the first three the second is shortest."""
    jobs = [Job(0, 9, 9, 6), Job(1, 9, 9, 6), Job(2, 8, 8, 6), Job(3, 7, 7, 6), Job(4, 1, 1, 6)]
    for visible, expected in ((4, 3), (2, 1)):
        env = made(workload=workload_of([jobs[0], Job(0, 9, 9, 6), *jobs[1:]]), length=6, visible=visible)
        env.reset(options={"start": 0})
        env.step(0)
        env.step(0)
        assert rl.QueueOrder("shortest")(env) == expected


def test_whole_numbers_may_be_in_floating_point() -> None:
    assert made(length=12.0, visible=4.0).reset(seed=1)[0].shape == (4, len(FEATURES))
    assert made_vector(cast(Any, 3.0), "NextStep", length=12.0).reset(seed=1)[0].shape[0] == 3


def test_logs_are_read_as_published_and_workloads_taken_as_they_are(tmp_path: Path) -> None:
    """Jobs of no run time are left out of a log."""
    jobs = [job._replace(run=k % 2) for k, job in enumerate(drawn_jobs(1))]
    log = written(jobs, tmp_path / "own.swf")
    with pytest.raises(GridschedError, match="needs 21 jobs, the log has 20"):
        gymnasium.make(rl.ID, workload=log, length=21)
    assert gymnasium.make(rl.ID, workload=read_swf(log), length=40).reset(seed=1)[1]["start"] == 0


def test_numbers_that_the_engine_cannot_hold_are_refused(tmp_path: Path) -> None:
    log = written([Job(0, 5, 2**31, 1), *drawn_jobs(1)], tmp_path / "own.swf")
    for workload in (log, read_swf(log)):
        with refused("job 1 is estimated at 2147483648 s; at most 2147483647 s", error=GridschedError):
            made(workload=workload)
