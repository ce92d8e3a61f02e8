"""Studies of dynamic grids: keys, runs, figures drawn by hand, and what they show."""
