"""Figures: what they share, and those of no system.

Each gives the figure and a table of the numbers that it shows.
"""
