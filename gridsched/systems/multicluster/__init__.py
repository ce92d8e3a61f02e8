"""MUSCLE and TITAN (He et al. 2004): parallel jobs with deadlines, packed; genetic local schedulers."""
