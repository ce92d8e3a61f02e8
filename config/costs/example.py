"""Costs of machines: a job goes to the machine with the smallest cost.

Name one in a study of the arena as `metric: config/costs/example.py:reluctant`. A cost takes any of `now`,
`wait`, `estimate` (seconds, predicted on the machine), `processors`, `waiting` (jobs), `work_left`
(processor-seconds), `idle`, `size` (processors of the machine), `at_home` (1 or 0), `user`, `group` and
`queue`, by these names, and returns a number. It is compiled, so it may use arithmetic, conditions and the
functions of `math`.
"""


def reluctant(wait: int, estimate: int, at_home: int) -> float:
    """Shortest predicted response, but a job stays at home unless it gains more than ten minutes."""
    return float(wait + estimate - 600 * at_home)


def tightest(wait: int, processors: int, idle: int) -> float:
    """Where it starts at once, the machine that it fills best; else the shortest wait."""
    return float(idle - processors - 1_000_000) if wait == 0 else float(wait)
