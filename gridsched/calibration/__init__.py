"""Calibration of a present policy on a log: layers that explain recorded waits, how they are fitted, judged.

`site` has the jobs of a log and what its first half shows, `kernel` replays them under the layers of
`layers`, `fitting` chooses their parameters on the first half by successive halving, `measures` judges them
on the second, and `null` draws waits from the history of like jobs.
"""
