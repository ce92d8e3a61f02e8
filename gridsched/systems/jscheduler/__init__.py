"""JScheduler (Guim et al. 2008): each job chooses among K resources by what it predicts there."""
