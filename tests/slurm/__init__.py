"""The workflow on a real Slurm of one machine that is there only for these tests: see README.md."""
