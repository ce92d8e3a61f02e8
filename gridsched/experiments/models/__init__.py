"""Studies of workload models: how well they describe a log."""
