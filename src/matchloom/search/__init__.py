"""From a question to the answers of a collection: an FAQ, a support archive, a community's questions."""
