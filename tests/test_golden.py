"""The golden record notices every change of what is recorded, and nothing else; it has every study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml

from tests.conftest import REPOSITORY
from tests.golden import __main__ as golden
from tests.golden.record import (
    Record,
    dataset_lines,
    differences,
    read_record,
    record_of,
    table_lines,
    value_hash,
    variable_line,
    write_record,
)
from tests.support.fields import assert_fields

VALUES = np.arange(6, dtype=np.float64).reshape(2, 3)
CLAIMS = (
    "paper,id,our_value,low,high,verdict\nours,faster,2.5,2.4,2.6,reproduced\nours,untold,,,,not testable\n"
)
MEANS = "scheme,jobs,wait_time,significant,note\nfcfs,3,0.1,True,\neasy,4,,False,1 of 2\n"
FINDING = "easy has the lowest mean wait: 2.5 min.\nfcfs has the highest.\n"


def small() -> xr.Dataset:
    return xr.Dataset(
        {"wait": (("case", "scheme"), VALUES), "jobs": ("case", np.array([3, 4]))},
        coords={"case": ["a", "b"]},
        attrs={"source": "gridsched 1"},
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "tiny").mkdir()
    small().to_netcdf(tmp_path / "tiny" / "study.nc", engine="netcdf4")
    (tmp_path / "claims.csv").write_text(CLAIMS, encoding="utf-8")
    for folder in ("figures", "tables"):
        (tmp_path / "tiny" / folder).mkdir()
        (tmp_path / "tiny" / folder / "means.csv").write_text(MEANS, encoding="utf-8")
    (tmp_path / "tiny" / "figures" / "means.txt").write_text(FINDING, encoding="utf-8")
    (tmp_path / "tiny" / "figures" / "means.svg").write_text("<svg/>", encoding="utf-8")
    return tmp_path


def test_hash_is_of_values_and_not_of_memory() -> None:
    expected = value_hash(VALUES)
    assert value_hash(np.asfortranarray(VALUES)) == expected
    assert value_hash(VALUES.astype(">f8")) == expected
    assert value_hash(np.repeat(VALUES, 2, axis=1)[:, ::2]) == expected
    assert value_hash(VALUES.T) != expected


def test_nan_is_nan_and_zeros_have_signs() -> None:
    other = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    assert value_hash(other) == value_hash(np.array([np.nan]))
    assert value_hash(np.array([-0.0])) != value_hash(np.array([0.0]))


def test_texts_are_told_apart_where_they_end() -> None:
    assert value_hash(np.array(["ab", "c"])) != value_hash(np.array(["a", "bc"]))
    assert value_hash(np.array(["ab", "c"])) == value_hash(np.array(["ab", "c"], dtype=object))
    with pytest.raises(TypeError, match="NoneType"):
        value_hash(np.array(["ab", None], dtype=object))


@pytest.mark.parametrize(
    "changed",
    [
        xr.Variable(("scheme", "case"), VALUES.T),
        xr.Variable(("case", "policy"), VALUES),
        xr.Variable(("case", "scheme"), VALUES.astype(np.float32)),
        xr.Variable(("case", "scheme"), VALUES.astype(np.int64)),
        xr.Variable(("case", "scheme"), VALUES[:, :2]),
    ],
)
def test_dimensions_and_types_count(changed: xr.Variable) -> None:
    assert variable_line(changed) != variable_line(small()["wait"].variable)


def test_attributes_do_not_count() -> None:
    assert dataset_lines(small().assign_attrs(source="gridsched 2")) == dataset_lines(small())


def test_nothing_differs_from_itself(results: Path, tmp_path: Path) -> None:
    record = record_of(results, ["tiny", "absent"])
    assert sorted(record.datasets) == ["tiny/figures/means.csv", "tiny/study.nc", "tiny/tables/means.csv"]
    assert sorted(record.datasets["tiny/study.nc"]) == ["case", "jobs", "wait"]
    assert record.findings == {"tiny/figures/means.txt": FINDING.strip()}
    assert record.claims["ours/faster"] == "reproduced our_value 2.5 low 2.4 high 2.6"
    write_record(record, tmp_path / "record.json")
    assert differences(read_record(tmp_path / "record.json"), record) == []


def test_columns_have_the_type_of_their_values(results: Path) -> None:
    lines = table_lines(results / "tiny" / "tables" / "means.csv")
    assert {name: line.split()[2] for name, line in lines.items()} == {
        "scheme": "text",
        "jobs": "int64",
        "wait_time": "float64",
        "significant": "bool",
        "note": "text",
    }
    assert_fields(
        lines,
        wait_time=variable_line(xr.Variable("row", [0.1, np.nan])),
        note=variable_line(xr.Variable("row", ["", "1 of 2"])),
    )


def test_tables_without_rows_and_gaps_among_truth_values_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("scheme,mean\n", encoding="utf-8")
    assert table_lines(tmp_path / "empty.csv")["mean"].startswith("(row 0) text")
    (tmp_path / "gaps.csv").write_text("a,late\n1,True\n2,\n", encoding="utf-8")
    assert table_lines(tmp_path / "gaps.csv")["late"] == variable_line(xr.Variable("row", ["True", ""]))


@pytest.mark.parametrize(
    ("file", "content", "line"),
    [
        (
            "tiny/tables/means.csv",
            MEANS.replace("0.1", "0.10000000000000002"),
            "differs: tiny/tables/means.csv: wait_time: was (row 2) float64",
        ),
        (
            "tiny/tables/means.csv",
            MEANS.replace("easy,4", "easy,5"),
            "differs: tiny/tables/means.csv: jobs: was (row 2) int64",
        ),
        (
            "tiny/tables/means.csv",
            MEANS.replace("scheme,", "scheduler,"),
            "missing: tiny/tables/means.csv: scheme",
        ),
        (
            "tiny/figures/means.txt",
            "Nothing differs.",
            f"differs: finding tiny/figures/means.txt: was {FINDING.strip()}, is Nothing differs.",
        ),
        (
            "tiny/study.nc",
            {"wait": (("case", "scheme"), VALUES + 1e-15)},
            "differs: tiny/study.nc: wait",
        ),
        ("tiny/study.nc", {"mean": ("case", [1.0, 2.0])}, "new: tiny/study.nc: mean"),
        (
            "claims.csv",
            CLAIMS.replace("reproduced", "partly"),
            "differs: claim ours/faster: was reproduced",
        ),
    ],
)
def test_differences_are_named(results: Path, file: str, content: str | dict[str, Any], line: str) -> None:
    """Changed texts, or variables of the dataset."""
    expected = record_of(results, ["tiny"])
    if isinstance(content, str):
        (results / file).write_text(content, encoding="utf-8")
    else:
        small().assign(content).to_netcdf(results / file, engine="netcdf4")
    found = differences(expected, record_of(results, ["tiny"]))
    assert len(found) == (2 if "scheduler" in content else 1)
    assert any(each.startswith(line) for each in found)


def test_missing_files_are_named(results: Path) -> None:
    expected = record_of(results, ["tiny"])
    assert differences(expected, Record(claims=expected.claims)) == [
        "missing: file tiny/figures/means.csv",
        "missing: file tiny/study.nc",
        "missing: file tiny/tables/means.csv",
        "missing: finding tiny/figures/means.txt",
    ]


def test_check_fails_where_something_differs(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / golden.GOLDEN).mkdir(parents=True)
    (results / "tiny-config.yaml").write_text("{studies: [tiny.yaml], results: .}", encoding="utf-8")
    (results / "tiny.yaml").write_text("name: tiny", encoding="utf-8")
    monkeypatch.setattr(golden, "REPOSITORY", results)
    monkeypatch.setattr(golden, "PARTS", (golden.Part("own", Path("tiny-config.yaml"), needs_logs=False),))
    assert golden.main(["check"]) == 1
    assert "golden own: new: file tiny/study.nc" in capsys.readouterr().out
    assert golden.main(["write"]) == 0
    assert golden.main(["check"]) == 0
    (results / "tiny" / "figures" / "means.csv").rename(results / "tiny" / "figures" / "medians.csv")
    assert golden.main(["write", "--only", "tiny"]) == 0
    assert golden.main(["check"]) == 0
    small().assign(jobs=("case", [3, 5])).to_netcdf(results / "tiny" / "study.nc", engine="netcdf4")
    assert golden.main(["check"]) == 1
    assert "golden own: differs: tiny/study.nc: jobs: was (case 2) int64" in capsys.readouterr().out


def test_logs_that_are_absent_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GRIDSCHED_MIRRORS", raising=False)
    assert golden.main(["check", "--only", "muscle-levels"]) == 0
    assert capsys.readouterr().out.startswith("golden reproduction: SKIPPED, GRIDSCHED_MIRRORS does not")


def test_every_study_is_recorded() -> None:
    full = yaml.safe_load((REPOSITORY / "config/reproduction.yaml").read_text(encoding="utf-8"))["studies"]
    _, reproduction = golden.PARTS
    assert list(reproduction.studies) == [Path(path).stem for path in full]
    for part in golden.PARTS:
        recorded = {name.split("/")[0] for name in read_record(part.file).datasets}
        assert recorded == set(part.studies)
        findings = {name.split("/")[0] for name in read_record(part.file).findings}
        assert findings <= set(part.studies)


def test_last_bits_count_only_on_the_same_processor(results: Path) -> None:
    expected = record_of(results, ["tiny"])
    small().assign(wait=(("case", "scheme"), VALUES * (1 + 1e-15))).to_netcdf(
        results / "tiny" / "study.nc", engine="netcdf4"
    )
    found = record_of(results, ["tiny"])
    assert len(differences(expected, found)) == 1
    assert differences(replace(expected, processor="another"), found) == []
    small().assign(wait=(("case", "scheme"), VALUES * (1 + 1e-6))).to_netcdf(
        results / "tiny" / "study.nc", engine="netcdf4"
    )
    assert len(differences(replace(expected, processor="another"), record_of(results, ["tiny"]))) == 1
