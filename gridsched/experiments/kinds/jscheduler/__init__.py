"""Studies of the JScheduler: configuration, stages, measures."""
