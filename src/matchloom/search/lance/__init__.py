"""The store for millions of entries: one LanceDB table in a folder, with its lock and checksums."""
