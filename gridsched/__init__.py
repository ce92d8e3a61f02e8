"""gridsched: simulate, compare and reproduce schedulers of parallel jobs on clusters and grids."""
