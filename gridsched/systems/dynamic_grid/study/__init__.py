"""Studies of the system: configuration, stages, aggregation."""
