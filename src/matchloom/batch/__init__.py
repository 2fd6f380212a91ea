"""Work on more pairs than one process should do: a function over Arrow tables, and engines that call it by shard."""
