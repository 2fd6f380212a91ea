"""The store for millions of entries: one LanceDB table in a folder, with its lock and checksums."""

from matchloom.basics.extras import has, missing

if not has("lancedb"):  # told here, or what is met first would be pyarrow, of a smaller extra
    raise missing("lancedb", "an archive (LanceDB)")
