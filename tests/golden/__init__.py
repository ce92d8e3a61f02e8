"""The golden record: hashes of what the demo and the reduced studies of the reproduction come to."""
