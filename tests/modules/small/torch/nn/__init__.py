from torch.nn.modules.module import Module, ModuleList  # noqa: F401
