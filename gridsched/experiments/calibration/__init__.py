"""Studies of calibration: layers of a present policy, fitted on one half of a log and judged."""
