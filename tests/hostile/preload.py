"""What the server of children has imported, so that a kill falls into work and not into imports.

LanceDB is only imported: it starts its threads anew in a child.
"""

from __future__ import annotations

import warnings
from importlib import import_module

import lancedb.index
import lancedb.query
import torch

import tests.killed  # noqa: F401
from matchloom.cli.commands import COMMANDS

for _command in COMMANDS.values():
    import_module(_command.home.partition(":")[0])
for _name in ("gensim.models", "pyarrow.acero", "pyarrow.dataset", "torch._dynamo", "bm25s", "sklearn.linear_model"):
    import_module(_name)
torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
assert lancedb.index
warnings.filterwarnings("ignore", "lancedb fork support")
