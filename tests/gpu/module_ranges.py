"""NVTX ranges that a program opens by itself around its modules, which rangescope's own modules are held against."""
import torch


def nodes_of(module, arguments, output, claimed):
    """Autograd's functions between a module's arguments and its output that no module in it has."""
    def tensors(value):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, dict):
            yield from tensors(list(value.values()))
        elif isinstance(value, (list, tuple)):
            for one in value:
                yield from tensors(one)

    before = {one.grad_fn for one in tensors(arguments)}
    found, pending = [], [one.grad_fn for one in tensors(output)]
    while pending:
        node = pending.pop()
        if node is None or node in before or node in claimed or node.name().endswith("AccumulateGrad"):
            continue
        claimed.add(node)
        found.append(node)
        pending += [following for following, _ in node.next_functions]
    return found


def check(model, passes="forward"):
    """A range around each call of each module, named like the module, by hooks of the forward pass (`forward`), or around each function
    of the backward pass that a module's operators made (`backward`).

    Hooks of a module's backward pass are no truth: they see positional arguments only, and refuse what is changed in place.
    """
    claimed = set()

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

        def claim(module, positional, named, output, name=name):
            for node in nodes_of(module, [positional, named], output, claimed):
                node.register_prehook(push(name))
                node.register_hook(pop)
            if module is model:
                claimed.clear()
        module.register_forward_hook(claim, with_kwargs=True)
