"""How often intervals of `gridsched.inference` hold a truth that is known: `python -m tests.coverage`."""
