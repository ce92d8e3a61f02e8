"""Local policies of clusters: queue orders, backfilling, scores of one's own."""
