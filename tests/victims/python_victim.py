"""NVTX from Python through a shared object, in the process and in children of multiprocessing. Usage: python_victim.py CLIENT METHOD"""
import ctypes
import multiprocessing
import sys


def work(path, name):
    client = ctypes.CDLL(path)
    client.client_push(name.encode())
    client.client_pop()


def main():
    path, method = sys.argv[1], sys.argv[2]
    work(path, "main")
    context = multiprocessing.get_context(method)
    children = [context.Process(target=work, args=(path, "child")) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
    work(path, "main")


if __name__ == "__main__":
    main()
