"""Studies of forecasts: when waiting jobs will start, and how often that is right."""
