"""As SGLang runs a batch: a batch that only decodes is a graph's, and calls no forward_decode."""
import dataclasses
from enum import IntEnum, auto


class ForwardMode(IntEnum):
    EXTEND = auto()
    DECODE = auto()
    MIXED = auto()
    IDLE = auto()


@dataclasses.dataclass
class ForwardBatch:
    forward_mode: ForwardMode
    batch_size: int


class ModelRunner:
    def __init__(self, model, launch):
        self.model, self.launch = model, launch

    def forward_extend(self, forward_batch):
        return self.model(1)

    def forward(self, forward_batch, skip_attn_backend_init=False):
        if forward_batch.forward_mode == ForwardMode.DECODE:
            return self.launch("replay")
        return self.forward_extend(forward_batch)
