"""Write the schedules of all conformance cases anew: `python -m tests.conformance.regenerate`."""

from __future__ import annotations

from gridsched.conformance.cases import read_cases, workload_path
from tests.oracles.conformance import lines_of, simulate_plainly, write_lines

if __name__ == "__main__":
    for case in read_cases():
        schedules = {column: simulate_plainly(case, column) for column in case.columns}
        folder = workload_path(case.name).parent.parent / "schedules"
        write_lines(folder / f"{case.name}.csv", lines_of(case, schedules))
