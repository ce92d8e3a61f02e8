"""Studies of readings: claims of a paper under many values of what it leaves open."""
