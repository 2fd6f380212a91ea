"""What is wrong with a file of pairs before anything learns from it: finds, with their lines."""

from matchloom.data.checkup.finds import Find, Placed
from matchloom.data.checkup.report import Checkup, check, check_file

__all__ = ["Checkup", "Find", "Placed", "check", "check_file"]
