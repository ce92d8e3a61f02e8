"""What a results folder holds, and how two such records differ.

Variables of datasets and columns of tables are recorded as hashes, findings and claims as text.

A record depends on values alone: not on the order in memory or in the file, on compression, attributes,
versions, paths or times. It is made without gridsched, so that a change of gridsched cannot change how it is
looked at.
"""

from __future__ import annotations

import csv
import hashlib
import json
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

DATASETS = ("study.nc", "prediction.nc")
"""Datasets of a study that are recorded, where it has them."""

SHOWN = ("figures", "tables")
"""Folders of a study whose tables (numbers of the figures among them) and findings are recorded."""

Lines = dict[str, str]
"""What is recorded of the variables of a dataset, the columns of a table, findings or claims, by name."""

_HASH_LENGTH = 16
_NOT_RUN = "not run"
_NUMBERS = ("our_value", "low", "high")
"""Columns of a table of claims that are recorded beside the verdict."""


@dataclass
class Record:
    """What is recorded of a folder of results.

    Parameters
    ----------
    datasets : dict
        Lines of each dataset and table by its path in the folder of results, such as `small/study.nc` or
        `small/tables/means.csv`.
    findings : dict
        Text of each finding by its path.
    claims : dict
        Verdict, our value and its interval by paper and claim.
    processor : str
        Processor that it was made on. Another one may give other last bits, since NumPy and its linear
        algebra have code of their own for each.
    """

    datasets: dict[str, Lines] = field(default_factory=dict)
    findings: Lines = field(default_factory=dict)
    claims: Lines = field(default_factory=dict)
    processor: str = ""


# --- hashing --------------------------------------------------------------------------------------


def value_hash(values: NDArray[Any]) -> str:
    """Hash of the values of an array in canonical form.

    Numbers and truth values count in C order and little endian, every NaN as the same one, and -0.0 as other
    than 0.0; texts as UTF-8, each behind its length.

    Raises
    ------
    TypeError
        If the array holds anything else.
    """
    if values.dtype.kind in "OUT":
        content = b"".join(_framed(text) for text in values.ravel(order="C").tolist())
    elif values.dtype.kind in "iufb":
        canonical = np.array(values, values.dtype.newbyteorder("<"), order="C")
        if canonical.dtype.kind == "f":
            canonical[np.isnan(canonical)] = np.nan
        content = canonical.tobytes()
    else:
        raise TypeError(f"no canonical form of {values.dtype}")
    return hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]


def variable_line(variable: xr.Variable) -> str:
    """Dimensions, type and hash of a variable, in one line."""
    kind = "text" if (variable.dtype.kind in "OUT") else variable.dtype.newbyteorder("=").name
    sizes = ", ".join(f"{name} {size}" for name, size in variable.sizes.items())
    line = f"({sizes}) {kind} {value_hash(variable.values)}"
    if variable.dtype.kind != "f":
        return line
    return f"{line} rounded {value_hash(rounded(variable.values))}"


def rounded(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Numbers to eight digits, where nothing of the last bits is left."""
    return np.array([float(f"{value:.7e}") for value in values.ravel()], values.dtype).reshape(values.shape)


def processor() -> str:
    """Model of this processor, and its extensions that NumPy has found."""
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    return " ".join([platform.machine(), llvmlite.binding.get_host_cpu_name(), *extensions["found"]])


def dataset_lines(dataset: xr.Dataset) -> Lines:
    """Line of every variable of a dataset, coordinates among them."""
    return {str(name): variable_line(variable) for name, variable in dataset.variables.items()}


def table_lines(path: Path) -> Lines:
    """Line of every column of a table (CSV); one that is not all numbers or truth values is text."""
    table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    columns = {
        str(name): column.to_numpy()
        if column.dtype.kind in "iufb"
        else column.astype(object).where(column.notna(), "").map(str).to_numpy(object)
        for name, column in table.items()
    }
    return {name: variable_line(xr.Variable("row", values)) for name, values in columns.items()}


def claim_lines(path: Path) -> Lines:
    """Verdict of every claim that was judged, with our value and its interval as in the table of claims."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            f"{row['paper']}/{row['id']}": " ".join(
                [row["verdict"], *(f"{key} {row[key]}" for key in _NUMBERS if row[key])]
            )
            for row in csv.DictReader(file)
            if row["verdict"] != _NOT_RUN
        }


def record_of(results: Path, studies: Iterable[str], *, claims: bool = True) -> Record:
    """Record of some studies of a results folder; what is not there is left out.

    Parameters
    ----------
    results : path
        Folder of results.
    studies : iterable of str
        Names of the studies.
    claims : bool
        Whether the verdicts of the claims are recorded too.
    """
    record = Record(processor=processor())
    for study in studies:
        for name in DATASETS:
            path = results / study / name
            if path.exists():
                record.datasets[f"{study}/{name}"] = dataset_lines(xr.load_dataset(path, engine="netcdf4"))
        for path in sorted(file for folder in SHOWN for file in (results / study / folder).glob("*")):
            name = path.relative_to(results).as_posix()
            if path.suffix == ".csv":
                record.datasets[name] = table_lines(path)
            elif path.suffix == ".txt":
                record.findings[name] = path.read_text(encoding="utf-8").strip()
    table = results / "claims.csv"
    if claims and table.exists():
        record.claims = claim_lines(table)
    return record


def _framed(text: Any) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"no canonical form of {type(text).__name__} among texts")
    content = text.encode("utf-8")
    return len(content).to_bytes(8, "little") + content


# --- comparison -----------------------------------------------------------------------------------


def differences(expected: Record, found: Record) -> list[str]:
    """What differs, is missing or is new, one line each; nothing if the records are the same.

    Records of different processors are compared to eight digits.
    """
    if expected.processor != found.processor:
        expected, found = _portable(expected), _portable(found)
    return [
        *_differences("file", dict.fromkeys(expected.datasets, ""), dict.fromkeys(found.datasets, "")),
        *(
            line
            for name in sorted(expected.datasets.keys() & found.datasets.keys())
            for line in _differences(f"{name}:", expected.datasets[name], found.datasets[name])
        ),
        *_differences("finding", expected.findings, found.findings),
        *_differences("claim", expected.claims, found.claims),
    ]


def _portable(record: Record) -> Record:
    """A record without last bits, and without checksums of drawn workloads, which depend on them."""
    return replace(
        record,
        datasets={
            name: {
                variable: re.sub(r"\w+ rounded ", "", line)
                for variable, line in lines.items()
                if variable != "workload_checksum"
            }
            for name, lines in record.datasets.items()
        },
        claims={
            name: re.sub(r"-?\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.7e}", line)
            for name, line in record.claims.items()
        },
    )


def _differences(what: str, expected: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            yield f"missing: {what} {name}"
        elif name not in expected:
            yield f"new: {what} {name}"
        elif expected[name] != found[name]:
            yield f"differs: {what} {name}: was {expected[name]}, is {found[name]}"


# --- files ----------------------------------------------------------------------------------------


def read_record(path: Path) -> Record:
    """Record of a file and that of its findings; an empty one if there is no file."""
    if not path.exists():
        return Record()
    values = json.loads(path.read_text(encoding="utf-8"))
    return Record(**values, findings=json.loads(_findings_file(path).read_text(encoding="utf-8")))


def write_record(record: Record, path: Path) -> None:
    """Write a record, one line a variable, in alphabetical order; findings into a file of their own."""
    values = asdict(record)
    for file, content in ((_findings_file(path), values.pop("findings")), (path, values)):
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")


def _findings_file(path: Path) -> Path:
    return path.with_stem(f"{path.stem}-findings")
