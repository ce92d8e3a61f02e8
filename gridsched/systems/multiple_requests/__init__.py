"""Multiple simultaneous requests (Subramani et al. 2002): a job is queued at K clusters at once."""
