"""As PyTorch 2.11 does it: `self` is a plain variable of _wrapped_call_impl and a cell of _call_impl."""


class Module:
    def __init__(self):
        object.__setattr__(self, "training", True)
        for name in ("_parameters", "_buffers", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks", "_modules"):
            object.__setattr__(self, name, {})

    def __setattr__(self, name, value):
        modules = self.__dict__.get("_modules")
        if isinstance(value, Module):
            modules[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        modules = self.__dict__.get("_modules", {})
        if name in modules:
            return modules[name]
        raise AttributeError(name)

    def add_module(self, name, module):
        if hasattr(self, name):  # looks into __dict__, which the interpreter makes then
            raise KeyError(name)
        self._modules[name] = module

    def register_forward_pre_hook(self, hook):
        self._forward_pre_hooks[len(self._forward_pre_hooks)] = hook

    def register_forward_hook(self, hook):
        self._forward_hooks[len(self._forward_hooks)] = hook

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(prefix + ("." if prefix else "") + name)

    def _wrapped_call_impl(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        if not (self._forward_hooks or self._forward_pre_hooks):
            return self.forward(*args, **kwargs)
        result = None

        def inner():
            nonlocal result, args, kwargs
            for hook in self._forward_pre_hooks.values():
                hook(self, args)
            result = self.forward(*args, **kwargs)
            for hook in self._forward_hooks.values():
                hook(self, args, result)
            return result

        return inner()

    __call__ = _wrapped_call_impl


class ModuleList(Module):
    def __init__(self, modules):
        super().__init__()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def __iter__(self):
        return iter(self._modules.values())
