"""NVTX ranges that a program opens by itself around its modules, which rangescope's own modules are held against."""
import torch


def made_by(value):
    """Autograd's functions that made the tensors of a value."""
    if isinstance(value, torch.Tensor):
        return [value.grad_fn]
    if isinstance(value, dict):
        value = list(value.values())
    return [node for one in value for node in made_by(one)] if isinstance(value, (list, tuple)) else []


def nodes_of(before, output, claimed):
    """Autograd's functions between those that a module's call found and its output, which no module in it has."""
    passed, pending = set(before), made_by(output)
    while pending:
        node = pending.pop()
        if node is None or node in passed or node.name().endswith("AccumulateGrad"):
            continue
        passed.add(node)
        pending += [following for following, _ in node.next_functions]
    found = passed - before - claimed
    claimed |= found
    return found


def check(model, passes="forward"):
    """A range around each call of each module, named like the module, by hooks of the forward pass (`forward`), or around each function
    of the backward pass that a module's operators made (`backward`).

    Hooks of a module's backward pass are no truth: they see positional arguments only, and refuse what is changed in place.
    """
    claimed, before = set(), []  # `before`: of the calls that are open; tensors can be others after a call in place

    def push(name):
        def hook(*_):
            torch.cuda.nvtx.range_push(name)  # whose result would be the hook's
        return hook

    def pop(*_):
        torch.cuda.nvtx.range_pop()

    for name, module in model.named_modules():
        name = name or type(module).__name__
        if passes == "forward":
            module.register_forward_pre_hook(push(name))
            module.register_forward_hook(pop)
            continue

        def claim(module, _positional, _named, output, name=name):
            for node in nodes_of(before.pop(), output, claimed):
                node.register_prehook(push(name))
                node.register_hook(pop)
            if module is model:
                claimed.clear()
        module.register_forward_pre_hook(lambda _, positional, named: before.append(set(made_by([positional, named]))), with_kwargs=True)
        module.register_forward_hook(claim, with_kwargs=True)
