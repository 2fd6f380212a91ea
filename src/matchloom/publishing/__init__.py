"""A collection as an immutable snapshot at a URI, and the local copies from which replicas serve."""
