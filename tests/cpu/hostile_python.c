/* Looks like a Python to who samples it; the test links its structures into whatever it wants. */
char _PyRuntime[4096];
char PyCode_Type[256];
void _PyEval_EvalFrameDefault(void);
void _PyEval_EvalFrameDefault(void) {}
