"""Whether a run is a schedule at all, checked without the simulators that made it."""
