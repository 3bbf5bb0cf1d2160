"""Spoils HDF5 files, and watches what a mount of one costs (`scripts/hostile`)."""
