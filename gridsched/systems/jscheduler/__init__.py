"""JScheduler (Guim et al. 2008): each job chooses among K clusters by what it predicts there."""
