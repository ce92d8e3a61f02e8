"""Protocols between a simulator and a scheduler in another process or library: that of Batsim."""
