"""From study files to datasets: configuration, runs, stages, claims."""
