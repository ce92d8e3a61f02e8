"""The table of capabilities by system, made from the declarations of schedulers."""

from __future__ import annotations

from collections.abc import Iterator

from gridsched.systems.base import CAPABILITIES, Scheduler
from gridsched.systems.registry import SYSTEMS, system_of


def capabilities_page() -> str:
    """Markdown of docs/capabilities.md: capabilities by system, and the reasons for what is missing."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    systems = {name: system_of(name) for name in SYSTEMS}
    yield "# Capabilities of schedulers"
    yield ""
    yield (
        "Every scheduler runs through `gs.simulate` on the same kinds of platforms and jobs. A cell is "
        "yes, the parameter that uses the capability, or the number of the reason below. An "
        "unsupported capability is rejected with that reason, never ignored. Written by `make schemas` "
        "from `gridsched/systems`; do not edit."
    )
    yield ""
    yield "| capability | " + " | ".join(f"`{name}`" for name in systems) + " |"
    yield "|" + "---|" * (len(systems) + 1)
    reasons: list[str] = []
    for capability, meaning in CAPABILITIES.items():
        cells = [_cell(scheduler, capability, reasons) for scheduler in systems.values()]
        yield f"| {meaning} | " + " | ".join(cells) + " |"
    yield ""
    for number, reason in enumerate(reasons, start=1):
        yield f"{number}. {reason[0].upper()}{reason[1:]}."


def _cell(scheduler: type[Scheduler], capability: str, reasons: list[str]) -> str:
    """What the table says of a capability of a system; new reasons are added to the list."""
    if capability in scheduler.cannot:
        reason = scheduler.cannot[capability]
        if reason not in reasons:
            reasons.append(reason)
        return f"no ({reasons.index(reason) + 1})"
    parameters = scheduler.uses.get(capability, {})
    return ", ".join(f"`{name}`" for name in parameters) or "yes"
