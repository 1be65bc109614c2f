"""As vLLM's V1 engine runs a batch: classes, functions and attributes have its names; `launch` stands for their own launches."""
import dataclasses


@dataclasses.dataclass
class SchedulerOutput:
    scheduled_new_reqs: list
    scheduled_cached_reqs: object
    num_scheduled_tokens: dict
    total_num_scheduled_tokens: int


class GPUModelRunner:
    def __init__(self, model, launch):
        self.model, self.launch = model, launch

    def _prepare_inputs(self, scheduler_output):
        self.launch("inputs")

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        self._prepare_inputs(scheduler_output)
        return self.model(1)

    def sample_tokens(self, grammar_output):
        self.launch("sample")
