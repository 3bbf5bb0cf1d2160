"""Real readers held against hepfs: what is written for them, what they must read, and how it is compared."""
