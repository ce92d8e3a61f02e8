"""Schedulers in other languages and other processes."""
