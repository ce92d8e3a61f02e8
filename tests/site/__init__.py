"""The site that `make docs` has built."""
