"""Files written by h5py, and truth read by h5py: for `scripts/fixtures/` and `scripts/corpus`."""
