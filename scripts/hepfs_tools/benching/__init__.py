"""Files, programs, times and sections of the suite, which `scripts/bench/main` and `scripts/bench/views` share."""
