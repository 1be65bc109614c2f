"""As transformers 4.39 (`_sample`) and 5.17 (`_beam_search`) call the model; `launch` stands for what they launch themselves."""


class GenerationMixin:
    def generate(self, model, launch, tokens, old):
        launch("prepare")
        return (self._sample if old else self._beam_search)(model, launch, tokens)

    def _sample(self, model, launch, tokens):
        launch("unfinished")
        while tokens > 0:
            launch("inputs")
            model(1)
            launch("argmax")
            tokens -= 1

    def _prefill(self, model, chunks):
        for _ in range(chunks):
            model(1)

    def _beam_search(self, model, launch, tokens):
        prefilled = False
        self._prefill(model, 2)
        while tokens > 0:
            if prefilled:
                launch("inputs")
                model(1)
            prefilled = True
            launch("argmax")
            tokens -= 1
