"""Jitted kernels of the system."""
