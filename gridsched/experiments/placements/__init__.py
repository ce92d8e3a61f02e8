"""Studies of placements: how many GPUs of a cluster they leave in pieces that nobody can use."""
