"""What `scripts/bench` and `scripts/bench-views` measure with: files, programs, times, and the sections of the suite."""
