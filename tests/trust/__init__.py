"""How often answers of a calibrated site hold known truth: `python -m tests.trust`."""
