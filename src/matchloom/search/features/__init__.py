"""Ways to compare a question with the answers of a collection, one a file."""
