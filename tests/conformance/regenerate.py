"""Write the schedules of all conformance cases anew: `python -m tests.conformance.regenerate`."""

from __future__ import annotations

from tests.conformance.cases import names, read_case, simulate_case, write_schedules
from tests.naive import simulate_policy

if __name__ == "__main__":
    for name in names():
        write_schedules(name, simulate_case(read_case(name), simulate_policy))
