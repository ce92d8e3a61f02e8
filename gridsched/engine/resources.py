"""What clusters have, for those who schedule: numbers of processors, or nodes with several resources.

`resources.NAME(a, ...)` is the function of that name of `counted` or of `nodes.scheduling`, by what `a` is.
Both say: what is free now (`could_fit`, `is_refused`), who is held up (`is_held`, `hold`, `within_limits`),
how a job starts beside what is planned (`start_if_it_fits`) or gets the earliest place (`reserve`,
`move_forward`, `start_as_planned`), and how plans are forgotten.
"""

from __future__ import annotations

from gridsched.engine import counted
from gridsched.engine.nodes import scheduling
from gridsched.engine.nodes.arrays import NodeArrays
from gridsched.engine.type_dispatch import ModuleDispatch

resources = ModuleDispatch(counted, scheduling, NodeArrays)
