"""What needs real data or minutes, and no wheel has: the papers' tables, public corpora, benchmarks, their results."""
