"""Studies of readings: what becomes of the claims of a paper under every value of the choices it leaves open."""
