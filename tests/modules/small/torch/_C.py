"""What torch.cuda.memory asks of the part that is C++."""


def _cuda_attach_out_of_memory_observer(observer):
    from torch.cuda import memory
    memory._observers.append(observer)


def _cuda_isHistoryEnabled():
    from torch.cuda import memory
    return memory._enabled is not None
