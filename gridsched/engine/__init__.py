"""Jitted kernels on plain record arrays: events, running and waiting jobs, availability, local schedulers."""
