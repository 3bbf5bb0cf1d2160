"""Random tables, random predicates, and which rows satisfy them: an account of its own, in exact arithmetic."""
