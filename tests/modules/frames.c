/* What Python cannot do itself. As an extension module `frames`: evaluates frames like a debugger
 * or a compiler of bytecode does, launches from C without the lock of the interpreter, and calls
 * Python from threads of C. As a program
 * (-DPROGRAM): python3 as a library, started and ended several times. Kernels are named as they are
 * launched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*Launch)(const void*,
                      unsigned,
                      unsigned,
                      unsigned,
                      unsigned,
                      unsigned,
                      unsigned,
                      unsigned,
                      void*,
                      void**,
                      void**);
static void* cuda;

static void launch(const char* name) {
  uint64_t ns = 1000;
  void* parameters[] = {&ns};
  if (cuda == NULL) {
    void* context;
    cuda = dlopen(getenv("STANDIN_CUDA"), RTLD_NOW | RTLD_GLOBAL);
    ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    ((int (*)(void**, unsigned, int))dlsym(cuda, "cuCtxCreate_v2"))(&context, 0, 0);
  }
  ((Launch)dlsym(cuda, "cuLaunchKernel"))(name, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

#ifndef PROGRAM
#include <Python.h>

#if PY_VERSION_HEX >= 0x030B0000
typedef struct _PyInterpreterFrame Frame;
#else
typedef PyFrameObject Frame;
#endif
static long evaluated;

static PyObject* evaluate(PyThreadState* thread, Frame* frame, int thrown) {
  ++evaluated;
  return _PyEval_EvalFrameDefault(thread, frame, thrown);
}

static PyObject* replace(PyObject* self, PyObject* unused) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
  Py_RETURN_NONE;
}

static PyObject* count(PyObject* self, PyObject* unused) {
  return PyLong_FromLong(evaluated);
}

/* burst(name, launches): 0 of them: until the process ends. */
static volatile int running;
static PyObject* burst(PyObject* self, PyObject* args) {
  const char* name;
  long launches;
  if (!PyArg_ParseTuple(args, "sl", &name, &launches))
    return NULL;
  name = strdup(name);
  Py_BEGIN_ALLOW_THREADS;
  for (long i = 0; launches == 0 || i < launches; ++i) {
    launch(name);
    if (i == 2)
      __atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
    if (launches == 0)
      usleep(5000);
  }
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyObject* bursts(PyObject* self, PyObject* unused) {
  return PyLong_FromLong(running);
}

/* Blocks of the sizes of a thread state are pages of their own from now on: who reads one that was
 * freed is ended. */
enum { kPages = 4096 };
static PyMemAllocatorEx raw;
static void* pages[kPages];
static int used;

static void* guarded(size_t bytes) {
  const int at =
      bytes >= 200 && bytes <= 4096 ? __atomic_fetch_add(&used, 1, __ATOMIC_SEQ_CST) : kPages;
  if (at >= kPages)
    return NULL;
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page != MAP_FAILED ? pages[at] = page : NULL;
}

static int is_guarded(void* block) {
  for (int i = 0; block != NULL && ((uintptr_t)block & 4095) == 0 && i < used && i < kPages; ++i)
    if (pages[i] == block)
      return 1;
  return 0;
}

static void* guarded_malloc(void* context, size_t bytes) {
  void* block = guarded(bytes);
  return block != NULL ? block : raw.malloc(context, bytes);
}

static void* guarded_calloc(void* context, size_t count, size_t bytes) {
  void* block = guarded(count * bytes);
  return block != NULL ? block : raw.calloc(context, count, bytes);
}

static void* guarded_realloc(void* context, void* block, size_t bytes) {
  if (!is_guarded(block))
    return raw.realloc(context, block, bytes);
  void* other = raw.malloc(context, bytes);
  if (other != NULL)
    memcpy(other, block, bytes < 4096 ? bytes : 4096);
  return other;
}

static void guarded_free(void* context, void* block) {
  if (is_guarded(block))
    mprotect(block, 4096, PROT_NONE); /* not unmapped: nothing else may come there */
  else
    raw.free(context, block);
}

static PyObject* guard(PyObject* self, PyObject* unused) {
  PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &raw);
  PyMemAllocatorEx ours = {raw.ctx, guarded_malloc, guarded_calloc, guarded_realloc, guarded_free};
  PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &ours);
  Py_RETURN_NONE;
}

/* A thread of C that calls `work` as often, each time with a thread state of its own, and launches
 * between, and once more as its last act. */
static PyObject* work;
static long calls;
static pthread_key_t last;

static void end(void* unused) {
  launch("outside");
}

static void* foreign_thread(void* unused) {
  pthread_setspecific(last, &last);
  for (long i = 0; i < calls; ++i) {
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject* result = PyObject_CallObject(work, NULL);
    if (result == NULL)
      PyErr_Print();
    Py_XDECREF(result);
    PyGILState_Release(state);
    launch("outside");
  }
  return NULL;
}

static PyObject* foreign(PyObject* self, PyObject* args) {
  pthread_t thread;
  if (!PyArg_ParseTuple(args, "Ol", &work, &calls))
    return NULL;
  if (last == 0)
    pthread_key_create(&last, end);
  Py_BEGIN_ALLOW_THREADS;
  pthread_create(&thread, NULL, foreign_thread, NULL);
  pthread_join(thread, NULL);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"replace", replace, METH_NOARGS, NULL},
    {"count", count, METH_NOARGS, NULL},
    {"burst", burst, METH_VARARGS, NULL},
    {"bursts", bursts, METH_NOARGS, NULL},
    {"foreign", foreign, METH_VARARGS, NULL},
    {"guard", guard, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "frames", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_frames(void) {
  return PyModule_Create(&module);
}

#else
/* program LIBPYTHON global|local LIVES FILE: runs FILE with a function launch(name) in each of as
 * many lives. It links nothing of Python, so that this is the library alone; at the end it lets go
 * of it, and launches once more. */
typedef void Object;
static void* python;
#define OF(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(python, name))

static Object* launch_of_python(Object* self, Object* name) {
  launch(strdup(OF(const char*, "PyUnicode_AsUTF8", Object*)(name)));
  Object* none = dlsym(python, "_Py_NoneStruct");
  OF(void, "Py_IncRef", Object*)(none);
  return none;
}

static struct {
  const char* name;
  Object* (*function)(Object*, Object*);
  int flags;
  const char* text;
} method = {"launch", launch_of_python, 8 /* METH_O */, NULL};

int main(int argc, char** argv) {
  python = dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
  if (python == NULL || argc != 5)
    return 64;
  int code = 0;
  for (int life = atoi(argv[3]); life > 0; --life) {
    OF(void, "Py_InitializeEx", int)(0);
    Object* main_module = OF(Object*, "PyImport_AddModule", const char*)("__main__");
    OF(int, "PyModule_AddObject", Object*, const char*, Object*)
    (main_module,
     "launch",
     OF(Object*, "PyCMethod_New", void*, Object*, Object*, Object*)(&method, NULL, NULL, NULL));
    FILE* file = fopen(argv[4], "r");
    code |=
        OF(int, "PyRun_SimpleFileExFlags", FILE*, const char*, int, void*)(file, argv[4], 1, NULL);
    code |= OF(int, "Py_FinalizeEx", void)();
    launch("outside");
  }
  dlclose(python);
  launch("outside");
  ((int (*)(void))dlsym(cuda, "cuCtxSynchronize"))();
  return code != 0 ? 1 : 3;
}
#endif
