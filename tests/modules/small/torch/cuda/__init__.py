"""Whether CUDA was initialised, and its memory."""
from torch.cuda import memory  # noqa: F401

_initialized = False


def init():
    global _initialized
    _initialized = True


def is_initialized():
    return _initialized
