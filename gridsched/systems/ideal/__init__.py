"""Ideal machines, which bound what sharing can bring."""
