"""Readers of slurm.conf and of what `scontrol show config` prints.

What is modelled becomes parameters of the scheduler, nodes and partitions. What could change a schedule and
is not modelled is listed by name. What concerns daemons, files and security is left aside without a word. A
key that Slurm does not know, and keys that contradict each other, are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from gridsched.errors import ConfigurationError, meant
from gridsched.io import read_text, shown
from gridsched.systems.slurm.accounts import MEBIBYTES, RESOURCES, minutes, resources, seconds, words
from gridsched.systems.slurm.changes import ALIASES, names_in, with_changes
from gridsched.systems.slurm.hostlist import expand_hosts, split_hosts
from gridsched.systems.slurm.parameters import PreemptMode, PreemptType, ResetPeriod, Version, is_since

_NOTHING = frozenset({"", "(null)", "n/a", "none", "(null type)"})

_MODELLED = words(
    "KillWait MessageTimeout AuthInfo PreemptExemptTime PreemptMode PreemptParameters PreemptType "
    "PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge "
    "PriorityType PriorityUsageResetPeriod PriorityWeightAge PriorityWeightFairshare "
    "PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES "
    "FairShareDampeningFactor SchedulerParameters SchedulerType SelectType SelectTypeParameters "
    "AccountingStorageEnforce EnforcePartLimits Licenses NodeName DownNodes PartitionName"
)

CHANGES_SCHEDULES = words(
    "BurstBufferType CompleteWait DefMemPerNode DefMemPerCPU DefCpuPerGPU DefMemPerGPU "
    "DependencyParameters Epilog EpilogSlurmctld FederationParameters "
    "GresTypes InactiveLimit JobDefaults JobRequeue JobSubmitPlugins MaxJobCount MaxMemPerNode "
    "MaxMemPerCPU MCSPlugin NodeFeaturesPlugins OverTimeLimit PriorityParameters "
    "PrioritySiteFactorParameters "
    "PrioritySiteFactorPlugin PriorityWeightAssoc Prolog PrologSlurmctld RebootProgram RequeueExit "
    "RequeueExitHold ResumeProgram ResvOverRun RoutePlugin SchedulerTimeSlice SuspendProgram "
    "SuspendTime TopologyParam TopologyPlugin VSizeFactor CoreSpecPlugin MaxArraySize LicenseParameters "
    "SchedulerRootFilter"
)

ADMINISTRATION = words(
    "AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost "
    "AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES "
    "AccountingStorageType AccountingStorageUser AccountingStoreFlags AccountingStorageLoc "
    "AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType "
    "AcctGatherNodeFreq AcctGatherProfileType AllowSpecResourcesUsage AuthAltParameters AuthAltTypes "
    "AuthType BatchStartTimeout BcastExclude BcastParameters BOOT_TIME CertgenParameters CertgenType "
    "CertmgrParameters CertmgrType CliFilterParameters CliFilterPlugins "
    "ClusterName CommunicationParameters ControlMachine ControlAddr BackupController "
    "CryptoType CacheGroups AccountingStoreJobComment CheckpointType JobCheckpointDir SchedulerPort "
    "SchedulerAuth DefaultStorageHost DefaultStorageUser DefaultStorageLoc DefaultStoragePass "
    "DefaultStoragePort ChosLoc DynamicAllocationPort NamespaceType HttpParserType "
    "BackupAddr CpuFreqDef CpuFreqGovernors CredType CgroupPlugin DebugFlags DataParserParameters "
    "DefaultStorageType DisableRootJobs EioTimeout EpilogMsgTime EpilogTimeout ExtSensorsFreq "
    "ExtSensorsType FastSchedule FirstJobId GetEnvTimeout GpuFreqDef GroupUpdateForce GroupUpdateTime "
    "HASH_VAL HashPlugin HealthCheckInterval HealthCheckNodeState HealthCheckProgram "
    "InteractiveStepOptions JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost "
    "JobCompLoc JobCompParams JobCompPass JobCompPassScript JobCompPort JobCompType JobCompUser "
    "JobContainerType JobCredentialPrivateKey JobCredentialPublicCertificate JobFileAppend "
    "KeepAliveTime KillOnBadExit LaunchParameters LaunchType LogTimeFormat MailDomain MailProg "
    "MaxBatchRequeue MaxDBDMsgs MaxJobId MaxNodeCount MaxStepCount MaxTasksPerNode MCSParameters "
    "MemLimitEnforce MetricsType MinJobAge MpiDefault MpiParams MULTIPLE_SLURMD "
    "NEXT_JOB_ID PluginDir PlugStackConfig PowerParameters PowerPlugin PrEpParameters PrEpPlugins "
    "PrivateData ProctrackType PrologEpilogTimeout PrologFlags PrologTimeout PropagatePrioProcess "
    "PropagateResourceLimits PropagateResourceLimitsExcept ReconfigFlags ResumeFailProgram ResumeRate "
    "ResumeTimeout ResvEpilog ResvProlog ReturnToService SallocDefaultCommand ScronParameters "
    "SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldLogFile SlurmctldParameters SlurmctldPidFile "
    "SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg "
    "SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile "
    "SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile "
    "SlurmSchedLogLevel SlurmUser SLURM_CONF SLURM_VERSION SrunEpilog SrunPortRange SrunProlog "
    "StateSaveLocation SuspendExcNodes SuspendExcParts SuspendExcStates SuspendRate SuspendTimeout "
    "SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout TLSParameters "
    "TLSType TmpFS TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UsePAM WaitTime "
    "UrlParserType X11Parameters"
)

_KEYS = {key.lower(): key for key in (*_MODELLED, *CHANGES_SCHEDULES, *ADMINISTRATION)}

_WHOLE = words(
    "sched_interval sched_min_interval batch_sched_delay default_queue_depth partition_job_depth "
    "sched_max_job_start "
    "bf_interval bf_window bf_resolution bf_max_job_test bf_max_job_user bf_max_job_part "
    "bf_max_job_array_resv bf_node_space_size bf_max_job_start bf_min_prio_reserve bf_min_age_reserve"
)
"""SchedulerParameters that are parameters of the scheduler, all of them whole numbers."""

_SWITCHES = words("bf_one_resv_per_job bf_continue")
"""SchedulerParameters that are parameters of the scheduler, and hold where they are named."""

OF_TIME = words("bf_max_time bf_yield_interval bf_yield_sleep bf_continue")
"""SchedulerParameters that matter where it is known how long a backfill pass takes."""

NO_EFFECT = OF_TIME | words(
    "bf_yield_rpc_cnt bf_job_part_count_reserve_off max_sched_time max_rpc_cnt "
    "nohold_on_prolog_fail build_queue_timeout enable_job_state_cache spec_cores_first max_script_size "
    "max_submit_line_size requeue_delay no_env_cache batch_hold_step_timeout disable_user_top "
    "enable_user_top ignore_constraint_validation"
)
"""SchedulerParameters about the time that passes themselves take, and others without effect on a schedule
here: a pass happens at one instant, or a backfill pass at several."""

_PREEMPTION = words("preempt_strict_order preempt_reorder_count preempt_youngest_first")
"""SchedulerParameters about preemption, which PreemptParameters has too."""

OTHERS = words(
    "allow_zero_lic assoc_limit_stop bf_allow_magnetic_slot bf_busy_nodes bf_hetjob_immediate "
    "bf_hetjob_prio bf_ignore_newly_avail_nodes bf_job_part_count_reserve bf_licenses "
    "bf_max_job_assoc bf_max_job_user_part bf_node_space "
    "bf_running_job_reserve bf_topopt_enable bf_topopt_iterations bf_window_linear cr_sched_cores "
    "default_gbytes defer defer_batch delay_boot enable_hetero_jobs enable_hetero_steps "
    "extra_constraints Ignore_NUMA ignore_prefer_validation max_array_tasks max_depend_depth "
    "max_switch_wait min_job_age_reserve no_backup_scheduling pack_serial_at_end permit_job_expansion "
    "preempt_send_user_signal preempt_youngest_order reduce_completing_frag salloc_wait_nodes "
    "sbatch_wait_nodes "
    "sched_max_job_resv step_retry_count step_retry_time time_min_as_soft_limit whole_hetjob whole_pack "
    "bf_qos_reserve"
)

_OPTIONS = {name.lower(): name for name in (*_WHOLE, *_SWITCHES, *NO_EFFECT, *OTHERS, *_PREEMPTION, *ALIASES)}
"""All options of SchedulerParameters, by their names in small letters."""

_WEIGHTS = {
    "priorityweightage": "priority_weight_age",
    "priorityweightfairshare": "priority_weight_fairshare",
    "priorityweightjobsize": "priority_weight_job_size",
    "priorityweightpartition": "priority_weight_partition",
    "priorityweightqos": "priority_weight_qos",
}

_FLAGS = {
    "NO_FAIR_TREE": ("fair_tree", False),
    "SMALL_RELATIVE_TO_TIME": ("small_relative_to_time", True),
    "MAX_TRES": ("max_tres", True),
}
"""PriorityFlags that are modelled."""


@dataclass(frozen=True, kw_only=True)
class SlurmNode:
    """A node of a configuration; memory in MiB, `line` numbers the lines of nodes.

    It is `out` if its State says that it is down or drained, until somebody resumes it.
    """

    name: str
    cores: int = 1
    memory: int = 1
    gpus: int = 0
    weight: int = 1
    features: tuple[str, ...] = ()
    line: int = 0
    out: bool = False


@dataclass(frozen=True, kw_only=True)
class SlurmPartition:
    """A partition of a configuration.

    Parameters
    ----------
    name : str
        Its name.
    nodes : tuple of str
        Names of its nodes.
    tier, job_factor : int
        PriorityTier and PriorityJobFactor.
    time_limit : int, optional
        MaxTime [s].
    most_nodes : int, optional
        MaxNodes of a job.
    default : bool
        Whether jobs that name no partition use it.
    exclusive : bool
        Whether its jobs get whole nodes.
    preempt_mode : {"off", "requeue", "cancel", "suspend"}, optional
        Treatment of its preempted jobs; by default what the cluster says.
    quality : str
        Quality of service whose limits its jobs are held to, empty for none (QOS).
    least_nodes : int
        MinNodes of a job.
    admission : mapping of str to tuple of str
        AllowQos, DenyQos, AllowAccounts, DenyAccounts and AllowGroups by their names in small letters.
    billing : mapping of str to float
        TRESBillingWeights by the names of `accounts.RESOURCES`, that of memory of a MiB.
    """

    name: str
    nodes: tuple[str, ...]
    tier: int = 1
    job_factor: int = 1
    time_limit: int | None = None
    most_nodes: int | None = None
    default: bool = False
    exclusive: bool = False
    preempt_mode: PreemptMode | None = None
    quality: str = ""
    least_nodes: int = 0
    admission: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    billing: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SlurmConfiguration:
    """What a configuration says.

    Parameters
    ----------
    parameters : mapping of str to value
        Parameters of the scheduler `slurm`, by their names there.
    nodes : tuple of SlurmNode
        In order of the file; none in what `scontrol show config` prints.
    partitions : tuple of SlurmPartition
        In order of the file.
    licences : mapping of str to int
        How many of each licence there are.
    not_modelled : tuple of str
        What could change a schedule and is not modelled, by name.
    enforces_partitions : bool
        Whether jobs that no partition admits are refused (EnforcePartLimits), or wait for ever.
    defaults : mapping of str to str
        Keys that it does not have, with the values that slurmctld takes.
    """

    parameters: Mapping[str, Any]
    nodes: tuple[SlurmNode, ...] = ()
    partitions: tuple[SlurmPartition, ...] = ()
    licences: Mapping[str, int] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()
    enforces_partitions: bool = False
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Found:
    """A file as it is read."""

    path: str
    version: Version
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def text(self, key: str, default: str = "") -> str:
        """Value of a key; the default where it says none."""
        value = self.values.get(key.lower(), ("", ""))[0]
        return default if value.lower() in _NOTHING else value

    def where(self, key: str) -> str:
        """File, line and key."""
        return f"{self.values[key.lower()][1]}: {_KEYS[key.lower()]}"

    def number(self, key: str, default: int) -> int:
        """Whole number of a key; units such as `sec` behind it are left aside."""
        text = self.text(key)
        return _whole(text, self.where(key), text.split()[0]) if text else default

    def seconds(self, key: str, default: int) -> int:
        """Seconds of a time such as 7-0, 00:05:00 or minutes."""
        text = self.text(key)
        return 60 * minutes(text, self.where(key)) if text else default

    def is_on(self, key: str) -> bool:
        """Whether a key says that something is on; it is off without it."""
        text = self.text(key)
        return bool(text) and _is_on(text, self.where(key))

    def span(self, key: str, default: int) -> int:
        """Seconds of a time that may be without end."""
        return _ENDLESS if self.text(key).upper() in _WITHOUT_END else self.seconds(key, default)


def read_configuration(
    path: str | Path, changes: Sequence[str] = (), version: Version = "22.05"
) -> SlurmConfiguration:
    r"""Read a slurm.conf, or what `scontrol show config` printed.

    Parameters
    ----------
    path : path
        The file.
    changes : sequence of str
        What it says otherwise, see `gridsched.systems.slurm.changes`.
    version : str
        Release whose defaults hold, such as 24.05.

    Raises
    ------
    ConfigurationError
        If a key is unknown, a value cannot be read, or two contradict each other: one line that names file,
        line and key.

    Examples
    --------
    >>> from pathlib import Path
    >>> import gridsched as gs
    >>> lines = [
    ...     "ClusterName=lab",
    ...     "SchedulerType=sched/backfill",
    ...     "NodeName=n[1-4] CPUs=16 RealMemory=64000",
    ...     "PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0",
    ... ]
    >>> _ = Path("slurm.conf").write_text("\n".join(lines))
    >>> from gridsched.systems.slurm.conf import read_configuration
    >>> configuration = read_configuration("slurm.conf")
    >>> [(node.name, node.cores) for node in configuration.nodes][:2]
    [('n1', 16), ('n2', 16)]
    """
    for change in changes:
        for kind, name in names_in(change):
            if kind == "option" and name not in _OPTIONS:
                raise ConfigurationError(
                    f"change {change!r}: unknown option {name}{meant(name, _OPTIONS)}; correct or remove it"
                )
    found = _Found(path=str(path), version=version)
    nodes: dict[str, SlurmNode] = {}
    node_sets: dict[str, tuple[str, dict[str, str]]] = {}
    lines = 0
    future: set[str] = set()
    of_partitions: list[tuple[str, dict[str, str]]] = []
    down: list[tuple[str, dict[str, str]]] = []
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for where, text in with_changes(lines_of(path), changes):
        key, _, value = text.partition("=")
        name = re.sub(r"\[\d+\]$", "", key.strip()).lower()
        value = value.strip()
        if name in defaults:
            line = pairs_of(text, where)
            if line[name].upper() == "DEFAULT":
                defaults[name] |= line
            elif name == "nodename":
                lines += 1
                made = _nodes_of(defaults[name] | line, where, found.left)
                if (defaults[name] | line).get("state", "").upper() == "FUTURE":
                    future |= {node.name for node in made}
                    continue
                for node in made:
                    if node.name in nodes:
                        raise ConfigurationError(
                            f"{where}: node {node.name} is given twice; keep one of them"
                        )
                    nodes[node.name] = replace(node, line=lines)
            else:
                of_partitions.append((where, defaults[name] | line))
        elif name == "nodeset":
            line = pairs_of(text, where)
            node_sets[line[name]] = where, line
        elif name == "downnodes":
            down.append((where, pairs_of(text, where)))
        elif name in _OPTIONS:
            raise ConfigurationError(
                f"{where}: {key.strip()} is an option of SchedulerParameters; "
                f"write SchedulerParameters={text.strip()}"
            )
        elif name not in _KEYS:
            raise ConfigurationError(
                f"{where}: unknown key {key.strip()}{_meant_key(key.strip())}; correct or remove it"
            )
        elif name in found.values and found.values[name][0] != value and name not in _REPEATED:
            raise ConfigurationError(
                f"{where}: {_KEYS[name]} is {value!r}, and {found.values[name][0]!r} at "
                f"{found.values[name][1]}; keep one of them"
            )
        else:
            found.values[name] = (value, where)
    for where, line in down:
        _take_out(line, where, nodes, future)
    sets = {name: _nodes_in_set(line, where, nodes) for name, (where, line) in node_sets.items()}
    sets |= {name: [] for name in future}  # nodes that do not exist yet
    partitions = [_partition_of(line, where, nodes, sets, found.left) for where, line in of_partitions]
    if not (found.values or nodes or partitions):
        raise ConfigurationError(
            f"{path}: no Key=value; give slurm.conf, or what scontrol show config prints"
        )
    parameters = _parameters(found)
    _check_partitions(partitions, str(path))
    for key in sorted(CHANGES_SCHEDULES):
        if found.text(key) and _is_set(key, found.text(key)):
            found.left.append(key)
    return SlurmConfiguration(
        parameters=parameters,
        nodes=tuple(nodes.values()),
        partitions=tuple(partitions),
        licences=_licences(found),
        not_modelled=tuple(dict.fromkeys(found.left)),
        enforces_partitions=found.text("EnforcePartLimits", "no").lower() not in _NO,
        defaults={key: value for key, value in _by_default(found).items() if not found.text(key)},
    )


def _meant_key(wrong: str) -> str:
    """What was probably meant by an unknown key: a key, or an option of SchedulerParameters."""
    options = {name: f"SchedulerParameters={name}" for name in _OPTIONS.values()}
    proposal = meant(wrong, (*_KEYS.values(), *options))
    for name, written in options.items():
        proposal = proposal.replace(f" {name}?", f" {written}?")
    return proposal


_OFF = {
    "completewait": ("0",),
    "overtimelimit": ("0",),
    "inactivelimit": ("0",),
    "topologyplugin": ("topology/none", "topology/default", "topology/flat"),
    "mcsplugin": ("mcs/none",),
    "priorityweightassoc": ("0",),
    "suspendtime": ("infinite", "-1"),
    "defmempernode": ("unlimited",),
    "maxmempernode": ("unlimited",),
    "vsizefactor": ("0",),
    "resvoverrun": ("0",),
    "routeplugin": ("route/default",),
    "corespecplugin": ("core_spec/none",),
    "jobrequeue": ("1",),
    "grestypes": ("gpu",),
    "schedulertimeslice": ("30",),
    "maxarraysize": ("1001",),
    "maxjobcount": ("10000",),
}


def _is_set(key: str, text: str) -> bool:
    """Whether a value is one that changes schedules."""
    return text.lower().split()[0] not in _OFF.get(key.lower(), ())


def lines_of(path: str | Path) -> Iterable[tuple[str, str]]:
    """Lines with their place, with those of included files in place."""
    return _with_included(path, Path(path).parent, (), {})


def _with_included(
    path: str | Path, folder: Path, within: tuple[Path, ...], modifiers: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Lines of a file that is included by others; `%c` in a name is the cluster, as far as it is known."""
    for where, text in _own_lines(path):
        word, *rest = text.split(None, 1)
        if text.lower().startswith("clustername"):
            modifiers["%c"] = text.partition("=")[2].strip()
        if word.lower() != "include":
            yield where, text
            continue
        name = rest[0].strip('"')
        for modifier, value in modifiers.items():
            name = name.replace(modifier, value)
        included = (folder / name).resolve()
        if included in within or len(within) > _MOST_INCLUDED:
            raise ConfigurationError(f"{where}: {included.name} includes itself; remove one of the lines")
        if not included.is_file():
            raise ConfigurationError(
                f"{where}: there is no file {included}; put it there, or remove the line"
            )
        yield from _with_included(included, folder, (*within, included), modifiers)


def _own_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Lines with their place, without comments, joined where they go on; one for each key of the site."""
    held, first, other = "", 0, False
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        text = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        first = first or number
        if text.endswith("\\"):
            held += text[:-1]
            continue
        text, held = (held + text).strip(), ""
        place, first = first, 0
        if text.endswith(" Configuration:"):
            other = True  # keys of other files, which scontrol prints behind those of slurm.conf
        elif _PROSE.match(text):
            other = False
        if other:
            continue
        if _OF_MANY.match(text):
            yield f"{path}:{place}", text
        elif "=" in text and _PAIR.sub("", text).strip():
            # a word before a key is part of an unknown key, and not dropped
            yield f"{path}:{place}", text
        elif text and "=" not in text and not _PROSE.match(text):
            raise ConfigurationError(
                f"{path}:{place}: {text!r:.60} is no Key=value; correct or remove it, or give slurm.conf or "
                "what scontrol show config prints"
            )
        else:
            for key, quoted, bare in _PAIR.findall(text):
                yield f"{path}:{place}", f"{key}={quoted or bare}"


def pairs_of(text: str, where: str) -> dict[str, str]:
    """Keys and values of a line of a node or a partition, keys in small letters."""
    pairs = {}
    for piece in re.findall(r'(?:[^\s"]|"[^"]*")+', text):
        key, sign, value = piece.partition("=")
        if not sign:
            raise ConfigurationError(f"{where}: {piece!r} is no key=value")
        pairs[key.lower()] = value.strip('"')
    return pairs


def _not_modelled(
    line: dict[str, str], kind: str, known: frozenset[str], others: frozenset[str], where: str
) -> list[str]:
    """Keys of a line of a node or a partition that are not modelled; others must be known."""
    for key in line:
        if key not in known | others:
            proposal = meant(key, known | others)
            raise ConfigurationError(
                f"{where}: unknown key {key} of a {kind}{proposal}; correct or remove it"
            )
    return [
        f"{kind.capitalize()}Name {key}"
        for key in line
        if key in others and line[key].lower() not in WITHOUT_MEANING
    ]


_MOST_INCLUDED = 50
"""Files that may include each other, one in the other."""


_YES, _NO = ("yes", "up", "true", "1"), ("no", "down", "false", "0")
"""Words of what is on or off (s_p_handle_boolean); the former mean ANY of EnforcePartLimits."""

_WITHOUT_END = ("UNLIMITED", "INFINITE", "-1")
"""No limit of times and numbers of nodes."""

_ENDLESS = 2**32 - 60
"""Seconds of a time without end, as slurmctld counts them (`_validate_and_set_defaults`)."""

WITHOUT_MEANING = ("all", "none", *_NO, *(word.lower() for word in _WITHOUT_END))
"""Values of keys of nodes and partitions that change nothing."""

_ENFORCED = ("associations", "limits", "qos", "safe", "wckeys", "nojobs", "nosteps", "all", "1", "2")
"""Words of AccountingStorageEnforce; qos is that jobs need one, not that its limits hold."""


def _is_on(text: str, where: str) -> bool:
    """Whether a text says that something is on."""
    if text.lower() not in (*_YES, *_NO):
        raise ConfigurationError(f"{where} is {text!r}; use yes or no")
    return text.lower() in _YES


_NODE_KEYS = words(
    "nodename nodehostname nodeaddr port cpus procs sockets boards socketsperboard corespersocket "
    "threadspercore realmemory gres state tmpdisk bcastaddr feature features reason cpubind weight parameters"
)
_NODE_OTHERS = words("corespeccount cpuspeclist memspeclimit topology restrictedcorespergpu suspendtime")


def _nodes_of(line: dict[str, str], where: str, left: list[str]) -> list[SlurmNode]:
    left += _not_modelled(line, "node", _NODE_KEYS, _NODE_OTHERS, where)
    number = {key: _whole(line[key], f"{where}: {key}") for key in line if key in _COUNTS}
    sockets = number.get("sockets", number.get("boards", 1) * number.get("socketsperboard", 1))
    cores = sockets * number.get("corespersocket", 1) * number.get("threadspercore", 1)
    gpus = 0
    for gres in split_hosts(line.get("gres", "").replace("(", "[").replace(")", "]")):
        kind, *rest = gres.split("[")[0].split(":")
        if kind == "gpu":
            gpus += _whole(rest[-1], f"{where}: Gres") if rest and rest[-1].isdigit() else 1
        else:
            left.append(f"Gres {kind}")
    made = SlurmNode(
        name="",
        cores=number.get("cpus", number.get("procs", cores)),
        memory=number.get("realmemory", 1),
        gpus=gpus,
        weight=number.get("weight", 1),
        features=tuple(split_hosts(line.get("feature", line.get("features", "")))),
        out=line.get("state", "").upper() in _OUT,
    )
    names = expand_hosts(line["nodename"], f"{where}: NodeName")
    return [replace(made, name=name) for name in names]


def _take_out(line: dict[str, str], where: str, nodes: dict[str, SlurmNode], future: set[str]) -> None:
    """Let the nodes of a line DownNodes take no jobs."""
    for name in expand_hosts(line["downnodes"], f"{where}: DownNodes"):
        if name not in nodes and name not in future:
            raise ConfigurationError(f"{where}: DownNodes names node {name}, which no NodeName line has")
        if name in nodes and line.get("state", "DOWN").upper() in _OUT:
            nodes[name] = replace(nodes[name], out=True)


_OUT = words("DOWN DRAIN DRAINED DRAINING FAIL FAILING")
"""States of nodes that take no jobs."""

_COUNTS = words("cpus procs sockets boards socketsperboard corespersocket threadspercore realmemory weight")

_PARTITION_KEYS = words(
    "partitionname nodes default maxtime defaulttime state oversubscribe shared prioritytier "
    "priorityjobfactor priority defmempercpu defmempernode alloc allocnodes "
    "hidden rootonly reqresv disablerootjobs preemptmode gracetime qos maxnodes minnodes "
    "allowaccounts allowgroups allowqos denyqos denyaccounts tresbillingweights exclusive"
)
_ADMISSION = ("allowaccounts", "denyaccounts", "allowgroups", "allowqos", "denyqos")

PARTITION_OTHERS = words(
    "maxmempercpu maxmempernode maxcpuspernode "
    "maxcpuspersocket lln exclusiveuser exclusivetopo selecttypeparameters "
    "overtimelimit jobdefaults alternate cpubind powerdownonidle resumetimeout suspendtime "
    "suspendtimeout defcpupergpu defmempergpu topology"
)


def _nodes_in_set(line: dict[str, str], where: str, nodes: Mapping[str, SlurmNode]) -> list[str]:
    """Names of the nodes of a NodeSet: those with its feature, then those that it names."""
    _not_modelled(line, "node set", words("nodeset feature nodes"), frozenset(), where)
    wanted = line.get("nodes", "")
    named = list(nodes) if wanted.upper() == "ALL" else expand_hosts(wanted, f"{where}: Nodes")
    return [name for name, node in nodes.items() if line.get("feature") in node.features] + named


def _partition_of(
    line: dict[str, str],
    where: str,
    nodes: Mapping[str, SlurmNode],
    sets: Mapping[str, list[str]],
    left: list[str],
) -> SlurmPartition:
    left += _not_modelled(line, "partition", _PARTITION_KEYS, PARTITION_OTHERS, where)
    name = line["partitionname"]
    wanted = line.get("nodes", "")
    listed = list(nodes) if wanted.upper() == "ALL" else expand_hosts(wanted, f"{where}: Nodes")
    names = list(dict.fromkeys(node for each in listed for node in sets.get(each, [each])))
    if listed and not names:
        raise ConfigurationError(
            f"{where}: partition {name}: no node is in the NodeSet {listed[0]}; correct its line, or "
            "leave the partition out"
        )
    unknown = [each for each in names if each not in nodes]
    if unknown:
        raise ConfigurationError(
            f"{where}: partition {name} names node {unknown[0]}, which no NodeName or NodeSet line has"
        )
    share = line.get("oversubscribe", line.get("shared", "NO")).upper()
    # of 26.05; EXCLUSIVE is its former name
    alone = line.get("exclusive", "NO").upper()
    if alone in ("NODE", "TOPO"):
        share = "EXCLUSIVE"
    if alone not in ("NO", "NODE"):
        left.append(f"Exclusive={alone}")
    if line.get("gracetime", "0") not in ("", "0") and _whole(line["gracetime"], f"{where}: GraceTime"):
        left.append("PartitionName gracetime")
    if share not in ("NO", "EXCLUSIVE", "FORCE:1", "YES:1"):
        left.append(f"OverSubscribe={share}")
    state = line.get("state", "UP").upper()
    if state != "UP":
        left.append(f"PartitionName State={state}")
    most = line.get("maxtime", "UNLIMITED")
    both = _whole(line["priority"], f"{where}: Priority") if "priority" in line else 1
    return SlurmPartition(
        name=name,
        nodes=tuple(names),
        tier=_whole(line["prioritytier"], f"{where}: PriorityTier") if "prioritytier" in line else both,
        job_factor=_whole(line["priorityjobfactor"], f"{where}: PriorityJobFactor")
        if "priorityjobfactor" in line
        else both,
        time_limit=None if most.upper() in _WITHOUT_END else 60 * minutes(most, f"{where}: MaxTime"),
        most_nodes=None
        if line.get("maxnodes", "UNLIMITED").upper() in _WITHOUT_END
        else _whole(line["maxnodes"], f"{where}: MaxNodes"),
        default=_is_on(line.get("default", "NO"), f"{where}: Default"),
        exclusive=share == "EXCLUSIVE",
        preempt_mode=preempt_mode(line["preemptmode"], f"{where}: PreemptMode", left)[0]
        if "preemptmode" in line
        else None,
        quality="" if line.get("qos", "").lower() in _NOTHING else line["qos"].lower(),
        least_nodes=_whole(line.get("minnodes", "0"), f"{where}: MinNodes"),
        admission={
            # slurmctld compares names of qualities of service without case
            key: tuple(
                name.strip().lower() if key.endswith("qos") else name.strip() for name in line[key].split(",")
            )
            for key in _ADMISSION
            if line.get(key, "ALL").upper() not in ("ALL", "NONE", "")
        },
        billing=_billing(line.get("tresbillingweights", ""), f"{where}: TRESBillingWeights", left),
    )


_OF_MANY = re.compile(r"include\s|(nodename|partitionname|nodeset|downnodes|frontendname)\s*=", re.IGNORECASE)
"""Lines whose keys are not those of the site."""

_REPEATED = ("slurmctldhost", "prolog", "epilog")
"""Keys that have several values."""

_PROSE = re.compile(r"Configuration data as of |Slurmctld\(|.*:$", re.IGNORECASE)
"""Lines without a key in what `scontrol show config` prints."""

_PAIR = re.compile(r'([^\s=]+)\s*=\s*(?:"([^"]*)"|(.*?))(?=(?<![,\s])\s+[\w\[\]]+\s*=|\s*$)')
"""A key of the site and its value, up to the next key of the line; a list may have blanks after commas."""

_WEIGHT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([KMGTP]?)", re.IGNORECASE)


def _billing(text: str, where: str, left: list[str]) -> dict[str, float]:
    """Weights of a text such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0; a weight of memory is one of its unit."""
    found = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, amount = piece.partition("=")
        match = _WEIGHT.fullmatch(amount.strip())
        if not match:
            raise ConfigurationError(f"{where}: {piece!r:.60} is no weight; give it as CPU=1.0,Mem=0.25G")
        resource = name.strip().lower()
        if resource in RESOURCES:
            unit = MEBIBYTES[match[2].upper() or "M"] if resource == "mem" else 1.0
            found[resource] = float(match[1]) / unit
        else:
            left.append(f"TRESBillingWeights {name.strip()}")
    return found


def _check_partitions(partitions: list[SlurmPartition], path: str) -> None:
    """Refuse two partitions of one name, or two default ones."""
    names = [partition.name for partition in partitions]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}: partition {name} is given twice; keep one of them")
    chosen = [partition.name for partition in partitions if partition.default]
    if len(chosen) > 1:
        raise ConfigurationError(
            f"{path}: partitions {' and '.join(chosen)} are Default=YES; keep one of them"
        )


def _whole(text: str, where: str, number: str | None = None) -> int:
    """Whole number of a text, or of that part of it."""
    try:
        return int(text if number is None else number)
    except ValueError:
        raise ConfigurationError(f"{where} is {text!r}; give a whole number") from None


DEFAULTS = (
    {"SelectType": "select/linear", "PriorityType": "priority/basic"},
    {"SelectType": "select/cons_tres", "PriorityType": "priority/multifactor"},
)
"""Defaults that changed: before 23.11, and since then."""


def _by_default(found: _Found) -> dict[str, str]:
    """Defaults that depend on the release, or on what else it says."""
    by_default = {**DEFAULTS[is_since(found.version, "23.11")]}
    if found.text("SelectType", by_default["SelectType"]) != "select/linear":
        by_default["SelectTypeParameters"] = "CR_Core_Memory"  # select_p_node_init
    return by_default


def _parameters(found: _Found) -> dict[str, Any]:
    """Parameters of the scheduler."""
    scheduler = found.text("SchedulerType", "sched/backfill")
    by_default = _by_default(found)
    select = found.text("SelectType", by_default["SelectType"])
    priority = found.text("PriorityType", by_default["PriorityType"])
    enforced_limits = found.text("EnforcePartLimits", "no").lower()
    for key, value, known in (
        ("SchedulerType", scheduler, ("sched/backfill", "sched/builtin")),
        ("SelectType", select, ("select/linear", "select/cons_tres", "select/cons_res")),
        ("PriorityType", priority, ("priority/basic", "priority/multifactor")),
        ("EnforcePartLimits", enforced_limits, ("all", "any", *_YES, *_NO)),
    ):
        if value not in known:
            raise ConfigurationError(f"{found.where(key)} is {shown(value)}; use one of {', '.join(known)}")
    shared = found.text("SelectTypeParameters", by_default.get("SelectTypeParameters", ""))
    kinds = [kind.upper() for kind in split_hosts(shared)]
    if select == "select/linear" and any(
        kind.startswith(("CR_CORE", "CR_CPU", "CR_SOCKET")) for kind in kinds
    ):
        raise ConfigurationError(
            f"{found.where('SelectTypeParameters')} shares out {kinds[0]}, but SelectType is select/linear, "
            "which gives whole nodes; correct one of them"
        )
    consumed = {
        "CR_CPU",
        "CR_CORE",
        "CR_SOCKET",
        "CR_CPU_MEMORY",
        "CR_CORE_MEMORY",
        "CR_SOCKET_MEMORY",
        "CR_MEMORY",
    }
    found.left += [f"SelectTypeParameters={kind}" for kind in kinds if kind not in consumed]
    if any(kind.startswith("CR_SOCKET") for kind in kinds):
        found.left.append("SelectTypeParameters=CR_Socket")
    enforced = set(split_hosts(found.text("AccountingStorageEnforce").lower()))
    if unknown := sorted(enforced - {*_ENFORCED}):
        raise ConfigurationError(
            f"{found.where('AccountingStorageEnforce')} has {unknown[0]}; use some of {', '.join(_ENFORCED)}"
        )
    parameters: dict[str, Any] = {
        "scheduler_type": scheduler.removeprefix("sched/"),
        "select_type": "linear" if select == "select/linear" else "cons_tres",
        "memory_is_consumed": any(kind.endswith("MEMORY") for kind in kinds),
        "priority_type": priority.removeprefix("priority/"),
        "kill_wait": found.number("KillWait", 30),
        "priority_max_age": found.span("PriorityMaxAge", 7 * 86400),
        "priority_decay_half_life": found.span("PriorityDecayHalfLife", 7 * 86400),
        "priority_calc_period": found.seconds("PriorityCalcPeriod", 300),
        "priority_favor_small": found.is_on("PriorityFavorSmall"),
        "fair_share_dampening_factor": found.number("FairShareDampeningFactor", 1),
        "enforce_limits": bool({"limits", "2", "safe", "all"} & enforced),
        "safe_limits": bool({"safe", "all"} & enforced),
        "every_partition_admits": enforced_limits == "all",
        **{name: found.number(key, 0) for key, name in _WEIGHTS.items()},
    }
    for flag in split_hosts(found.text("PriorityFlags")):
        if flag.upper() in _FLAGS:
            name, on = _FLAGS[flag.upper()]
            parameters[name] = on
        elif flag.upper() != "FAIR_TREE":  # which slurmctld does not read, as it is the default
            found.left.append(f"PriorityFlags={flag}")
            if flag.upper() == "DEPTH_OBLIVIOUS":  # instead of the fair tree
                parameters["fair_tree"] = False
    period = found.text("PriorityUsageResetPeriod", "NONE").lower()
    if period not in get_args(ResetPeriod):
        raise ConfigurationError(
            f"{found.where('PriorityUsageResetPeriod')} is {period!r}; use one of "
            f"{', '.join(get_args(ResetPeriod)).upper()}"
        )
    parameters["priority_usage_reset_period"] = period
    if found.text("PriorityWeightTRES"):
        parameters["priority_weight_tres"] = _weights_of_resources(found)
    return parameters | _scheduler_parameters(found) | _preemption(found)


def _preemption(found: _Found) -> dict[str, Any]:
    """What is said of preemption.

    Raises
    ------
    ConfigurationError
        If PreemptType and PreemptMode contradict each other.
    """
    kind = found.text("PreemptType", "preempt/none").removeprefix("preempt/")
    if kind not in get_args(PreemptType):
        raise ConfigurationError(
            f"{found.where('PreemptType')} is {found.text('PreemptType')!r}; use one of "
            + ", ".join(f"preempt/{name}" for name in get_args(PreemptType))
        )
    text = found.text("PreemptMode", "OFF")
    where = found.where("PreemptMode") if found.text("PreemptMode") else found.path
    mode, gang = preempt_mode(text, where, found.left)
    if (kind == "none") != (mode == "off"):
        raise ConfigurationError(
            f"{where}: PreemptMode is {text} and PreemptType is preempt/{kind}, which contradict each other; "
            "set both, or neither"
        )
    if mode == "suspend" and not gang:
        raise ConfigurationError(f"{where} is {text}, which needs GANG too; write PreemptMode=SUSPEND,GANG")
    if gang and mode != "suspend":
        found.left.append("PreemptMode=GANG")
    exempt = found.text("PreemptExemptTime", "-1")
    options = [*split_hosts(found.text("PreemptParameters"))]
    options += [
        option.removeprefix("preempt_")
        for option in split_hosts(found.text("SchedulerParameters").lower())
        if option.partition("=")[0] in _PREEMPTION
    ]
    parameters: dict[str, Any] = {}
    for option in options:
        key, _, value = option.lower().partition("=")
        if key == "reorder_count":
            parameters["preempt_reorder_count"] = _whole(value, f"{found.path}: reorder_count")
        elif key in ("youngest_first", "strict_order"):
            parameters[f"preempt_{key}"] = True
        else:
            found.left.append(f"PreemptParameters={key}")
    expire = re.search(r"cred_expire=(\d+)", found.text("AuthInfo"))
    if is_since(found.version, "25.11"):
        expire = re.search(r"requeue_delay=(\d+)", found.text("SchedulerParameters")) or expire
    return parameters | {
        "preempt_type": kind,
        "preempt_mode": mode,
        "preempt_exempt_time": 0
        if exempt.upper() in _WITHOUT_END
        else seconds(exempt, f"{found.path}: PreemptExemptTime"),
        "message_timeout": found.number("MessageTimeout", 10),
        "requeue_delay": int(expire[1]) if expire else 120,
    }


def preempt_mode(text: str, where: str, left: list[str]) -> tuple[PreemptMode, bool]:
    """The mode of a PreemptMode, and whether it says GANG; what is not modelled goes to `left`."""
    names = [name.strip().lower() for name in text.split(",")]
    known: dict[str, PreemptMode] = {mode: mode for mode in get_args(PreemptMode)}
    modes = [known[name] for name in names if name in known]
    others = set(names) - set(known) - {"gang", "within", "priority", ""}
    if others or len(modes) > 1:
        raise ConfigurationError(
            f"{where} is {text!r}; use one of {', '.join(known).upper()}, and GANG beside SUSPEND"
        )
    left += [f"PreemptMode={name.upper()}" for name in ("within", "priority") if name in names]
    return (modes or ["off"])[0], "gang" in names


def licences_of(text: str, where: str) -> dict[str, int]:
    """Numbers of licences by name of a text such as `matlab:2,fluent`; one where there is no number."""
    pieces = [re.split("[:=*]", each.strip(), maxsplit=1) for each in text.split(",") if each.strip()]
    return {name: _whole(rest[0], f"{where}: {name}") if rest else 1 for name, *rest in pieces}


def _licences(found: _Found) -> dict[str, int]:
    """How many of each licence there are."""
    return licences_of(found.text("Licenses"), found.where("Licenses")) if found.text("Licenses") else {}


def _weights_of_resources(found: _Found) -> dict[str, float]:
    """Weights of resources, by the names of `RESOURCES` in Slurm's letters."""
    text, where = found.text("PriorityWeightTRES"), found.where("PriorityWeightTRES")
    left: list[str] = []
    by_name = {ours: theirs for theirs, ours in RESOURCES.items()}
    weights = {by_name[name]: weight for name, weight in resources(text, where, left).items()}
    found.left += [f"PriorityWeightTRES {each.partition('=')[2]}" for each in left]
    return weights


def _scheduler_parameters(found: _Found) -> dict[str, Any]:
    """What SchedulerParameters says."""
    parameters: dict[str, Any] = {}
    for piece in split_hosts(found.text("SchedulerParameters")):
        key, _, value = piece.partition("=")
        key = ALIASES.get(key.lower(), key.lower())
        where = f"{found.where('SchedulerParameters')}: {key}"
        if key in _SWITCHES:
            parameters[key] = value.lower() not in ("0", "no", "false")
        elif key in _WHOLE or key in OF_TIME:
            number = _whole(value, where)
            if number == -1 and key in ("bf_interval", "sched_interval"):
                raise ConfigurationError(f"{where} is -1, which turns the passes off: this is not modelled")
            if number == 0 and key == "bf_max_job_test":
                # slurmctld takes its default
                found.left.append(f"SchedulerParameters={key}=0")
                continue
            if number < 0 or (number == 0 and key in ("bf_interval", "bf_resolution", "bf_window")):
                raise ConfigurationError(f"{where} is {value}; give a number that is not too small")
            parameters[key] = number
        elif key not in _OPTIONS:
            # slurmctld leaves aside options that its release does not have
            found.left.append(f"SchedulerParameters={key} (unknown{meant(key, _OPTIONS)})")
        elif key not in _PREEMPTION and key not in {name.lower() for name in NO_EFFECT}:
            found.left.append(f"SchedulerParameters={key}")
    return parameters
