"""`python -m gridsched` is the command `gridsched`."""

import sys

from gridsched.cli import main

if __name__ == "__main__":
    sys.exit(main())
