"""Local policies: every cluster schedules the jobs that are submitted to it."""
