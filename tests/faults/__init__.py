"""What may go wrong while the workflow runs: see README.md."""
