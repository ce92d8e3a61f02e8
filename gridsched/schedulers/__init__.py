"""The systems that decide where and when jobs run."""
