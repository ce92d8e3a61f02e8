"""Dynamic grids (Goldman and Queiroz): clusters as a graph, preemption, migration, joining and leaving."""
