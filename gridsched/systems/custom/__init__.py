"""Schedulers of users, which see the queue, and the simulator that they go through step by step."""
