"""What is measured of a run: waits, slowdowns, utilisation, deadlines, trade, by system."""
