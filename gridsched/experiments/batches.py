"""How the tasks of studies are divided among workflow jobs.

Tasks of one stage of a study that are expected to take little time together are one batch. More are divided
level by level, since a task may use another one of its stage, into batches that take about the same time. A
finished batch has a stamp, a file whose name is a hash of the keys of its tasks; the results themselves are
stored by key, and a batch makes only those that are not there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from gridsched.experiments import files
from gridsched.experiments.config import Config, Study
from gridsched.experiments.tasks import ArchiveFile, Experiment, OwnFile, Stage, Task
from gridsched.results import sidecar
from gridsched.traces.archive import find_log, is_good_copy

_FEW_NAMES = 3
"""Tasks that a message names one by one."""

_MARGIN = 10
"""Times that a batch may take longer than expected ..."""

_SHORTEST = 30
"""... and minutes that it may take at least."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Tasks that one workflow job carries out.

    Parameters
    ----------
    stage, study : str
        Of all its tasks.
    tasks : list of Task
        Each after those of the batch that it uses.
    """

    stage: Stage
    study: str
    tasks: list[Task]

    @property
    def key(self) -> str:
        """Hash of what it has to make."""
        return hashlib.sha256("\n".join(task.key for task in self.tasks).encode()).hexdigest()[:12]

    @property
    def title(self) -> str:
        """What it does, for people."""
        names = [task.name for task in self.tasks]
        if len(names) <= _FEW_NAMES:
            return ", ".join(names)
        return f"{names[0]} and {len(names) - 1} more"

    @property
    def memory(self) -> int:
        """Expected memory [MB]."""
        return max(task.memory for task in self.tasks)

    @property
    def minutes(self) -> int:
        """Time after which something must be wrong."""
        return max(_SHORTEST, math.ceil(_MARGIN * sum(task.cost for task in self.tasks) / 60))

    def stamp(self, results: str) -> str:
        """File that says that all results are there."""
        return f"{results}/batches/{self.study}/{self.stage}/{self.key}.json"


class Work:
    """Everything that a configuration asks for: what the rules of the workflow know.

    Parameters
    ----------
    config : Config
        The configuration.
    studies : mapping of str to Study
        Its studies by name.
    """

    def __init__(self, config: Config, studies: Mapping[str, Study]) -> None:
        self.results = config.results
        self.studies = dict(studies)
        for each in studies.values():
            each.check_files()
        self.experiments: dict[str, Experiment] = {
            name: study.experiment(config.seed) for name, study in studies.items()
        }
        tasks = {task.path(""): task for each in self.experiments.values() for task in each.tasks}
        groups: dict[tuple[Stage, str], list[Task]] = {}
        for task in tasks.values():
            groups.setdefault((task.stage, task.study), []).append(task)
        self.batches: dict[tuple[str, str, str], Batch] = {}
        self._holder: dict[str, Batch] = {}
        for (stage, study), members in groups.items():
            for part in divided(members, config.batch_seconds, config.chunk_size):
                batch = Batch(stage, study, part)
                self.batches[stage, study, batch.key] = batch
                self._holder |= {task.path(""): batch for task in part}

    @property
    def folders(self) -> list[str]:
        """Names of folders with batches: the studies, and what they share."""
        return sorted({batch.study for batch in self.batches.values()} | set(self.studies))

    def batch(self, stage: str, wildcards: Any) -> Batch:
        """The batch that wildcards `study` and `batch` name."""
        return self.batches[stage, wildcards.study, wildcards.batch]

    def dataset(self, wildcards: Any) -> Task:
        """The collected dataset that wildcards `study` and `dataset` name."""
        return next(
            task for task in self.experiments[wildcards.study].datasets if task.name == wildcards.dataset
        )

    def needed(self, *tasks: Task) -> list[str]:
        """Files that must be there before tasks are carried out, if they are not in the same batch."""
        own = {self._holder[task.path("")].key for task in tasks if task.stage != "collect"}
        return self._made_first((used for task in tasks for used in task.inputs), own)

    def _made_first(
        self, several: Iterable[Task | ArchiveFile | OwnFile], own: Collection[str] = ()
    ) -> list[str]:
        """Files that say that tasks are done and logs fetched; none of what one's own batches have."""
        found: dict[str, None] = {}
        for used in several:
            if isinstance(used, Task) and used.stage != "collect":
                batch = self._holder[used.path("")]
                found |= {} if batch.key in own else {batch.stamp(self.results): None}
            elif not isinstance(used, OwnFile):
                found[used.path(self.results)] = None
        return list(found)

    def shown(self, study: str) -> list[str]:
        """Files that must be there before the figures and tables of a study are made."""
        experiment = self.experiments[study]
        return self._made_first([*experiment.datasets, *(figure.dataset for figure in experiment.figures)])

    @cached_property
    def records(self) -> dict[str, Callable[[], bool]]:
        """Files that say that other outputs are there, and whether these are what was written.

        Together they stand for every output of the workflow.
        """
        made = list(self.experiments.values())
        logs = {
            used.path(self.results): used.name
            for task in chain.from_iterable((*each.tasks, *each.datasets) for each in made)
            for used in task.inputs
            if isinstance(used, ArchiveFile)
        }
        datasets = [task.path(self.results) for each in made for task in each.datasets]
        names = (*(f"{study}/shown" for study in self.studies), "claims", "report")
        sealed = [f"{self.results}/{name}.sha256" for name in names]
        return {
            **{path: partial(_is_log, path, name) for path, name in logs.items()},
            **{str(sidecar(path)): partial(files.is_whole, path) for path in datasets},
            **{
                batch.stamp(self.results): partial(_are_whole, batch.tasks, self.results)
                for batch in self.batches.values()
            },
            **{record: partial(files.is_sealed, record) for record in sealed},
        }

    def forget_lost(self) -> None:
        """Delete the records of outputs that are missing or damaged, so that these are made again."""
        for record, is_whole in self.records.items():
            if Path(record).exists() and not is_whole():
                Path(record).unlink(missing_ok=True)


def _are_whole(tasks: Iterable[Task], results: str) -> bool:
    """Whether all files of tasks are what was written."""
    return all(files.is_whole(path) for task in tasks for path in task.call(results)["outputs"])


def _is_log(path: str, name: str) -> bool:
    """Whether a file is the log of the archive that it should be, as far as its checksum is known."""
    return is_good_copy(Path(path), find_log(name)) is not False


def divided(tasks: list[Task], seconds: float, most: int | None) -> list[list[Task]]:
    """Tasks of one stage of a study in batches.

    Parameters
    ----------
    tasks : list of Task
        The tasks, each after those that it uses.
    seconds : float
        Expected time [CPU s] up to which they are one batch, and of a batch if they are not.
    most : int, optional
        Largest number of tasks of a batch.

    Returns
    -------
    list of list of Task
        The batches, the one with the costliest task of a level first.
    """
    if sum(task.cost for task in tasks) <= seconds and (most is None or len(tasks) <= most):
        return [tasks]
    levels: dict[int, list[Task]] = {}
    for task, level in zip(tasks, _levels(tasks), strict=True):
        levels.setdefault(level, []).append(task)
    return [batch for level in sorted(levels) for batch in _balanced(levels[level], seconds, most)]


def _levels(tasks: list[Task]) -> list[int]:
    """How many tasks of a stage stand one behind the other before each."""
    levels: dict[str, int] = {}
    for task in tasks:
        paths = [used.path("") for used in task.inputs if isinstance(used, Task)]
        levels[task.path("")] = max((levels[path] + 1 for path in paths if path in levels), default=0)
    return list(levels.values())


def _balanced(tasks: list[Task], seconds: float, most: int | None) -> list[list[Task]]:
    """Tasks in batches of about the same cost: largest first, each to the batch that has least."""
    enough = math.ceil(len(tasks) / most) if most is not None else 1
    number = min(max(math.ceil(sum(task.cost for task in tasks) / seconds), enough), len(tasks))
    batches: list[list[Task]] = [[] for _ in range(number)]
    costs = [0.0] * number
    for task in sorted(tasks, key=lambda task: -task.cost):
        open_ones = [i for i in range(number) if most is None or len(batches[i]) < most]
        least = min(open_ones, key=lambda i: costs[i])
        batches[least].append(task)
        costs[least] += task.cost
    return batches
