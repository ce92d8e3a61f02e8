"""Slurm as it schedules: main loop, backfilling on named nodes, priorities, limits."""
