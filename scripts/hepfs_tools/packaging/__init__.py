"""Packages of hepfs: what `scripts/package` makes them with. Nothing but Python's own modules."""
