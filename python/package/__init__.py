"""thinwire for Python: train a PyTorch model (thinwire.torch) or NumPy arrays with thinwire's servers (docs/python.md)."""

from thinwire._client import DivergedError, Error, RefusedError, RolledBack, ServerLostError
from thinwire.arrays import ArrayOptimizer
from thinwire.job import init, rank, world_size

__all__ = ["ArrayOptimizer", "DivergedError", "Error", "RefusedError", "RolledBack", "ServerLostError", "init", "rank",
           "world_size"]
