"""What it costs to change gridsched: patches that add something, and what is seen after each."""
