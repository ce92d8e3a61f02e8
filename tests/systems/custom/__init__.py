"""Schedulers of users."""
