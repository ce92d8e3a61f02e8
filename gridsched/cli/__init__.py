"""The command line: describe logs, simulate and compare policies, explain waits, look after the cache.

One module a command, and what they share beside them. Every command imports what it needs when it runs, so
that help and wrong options are answered at once. An error of the user ends in one line on standard error and
exit code 2.
"""

from gridsched.cli.program import main

__all__ = ["main"]
