"""matchloom over HTTP: an API for programs and a page for people."""

from matchloom.service.app import create_app
from matchloom.service.limits import Limits

__all__ = ["Limits", "create_app"]
