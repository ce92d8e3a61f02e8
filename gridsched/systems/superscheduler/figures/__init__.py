"""Figures of the system."""
