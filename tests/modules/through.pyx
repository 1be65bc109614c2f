# cython: language_level=3
from torch import nn


def call(model, x):
    return Caller(model).now(x)


cdef class Caller:
    cdef object model

    def __init__(self, model):
        self.model = model

    cdef object now(self, x):
        return self.model(x)


class Compiled(nn.Module):
    def __init__(self, inner, launch):
        super().__init__()
        self.inner, self.launch = inner, launch

    def forward(self, x):
        self.launch()
        return sum(self.inner(x + i) for i in range(2))
