"""Files, programs, times and sections of the suite, which `scripts/bench` and `scripts/bench-views` share."""
