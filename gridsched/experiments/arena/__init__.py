"""The arena: grid schedulers of all systems on the same clusters and jobs."""
