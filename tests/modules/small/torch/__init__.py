"""What of PyTorch the injected library looks at, for Pythons that have none: Module, whose calls go through _call_impl."""
from torch import _C, cuda  # noqa: F401
