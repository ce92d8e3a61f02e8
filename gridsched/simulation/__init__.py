"""One function for each system: jobs and clusters in, a dataset with the start of every job out."""
