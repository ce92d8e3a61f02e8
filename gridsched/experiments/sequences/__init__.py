"""Studies of sequences: consecutive jobs of a log on an empty cluster, as learned policies are judged."""
