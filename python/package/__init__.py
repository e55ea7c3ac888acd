"""thinwire for Python: train a PyTorch model with thinwire's servers (thinwire.torch, docs/python.md)."""

from thinwire._client import DivergedError, Error, RefusedError, RolledBack, ServerLostError

__all__ = ["DivergedError", "Error", "RefusedError", "RolledBack", "ServerLostError"]
