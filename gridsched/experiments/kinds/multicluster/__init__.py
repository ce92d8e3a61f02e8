"""Studies of multiclusters: MUSCLE, its rivals and TITAN at workload levels, deadlines and weights."""
