/* A pool of OpenMP that two threads use in turns: the main thread starts it with a little work
 * (range `little`), then another one has most of it (`much`), while the main thread computes alone
 * (`alone`). In each parallel loop one worker has four times as much to do as the others.
 *
 *   pool <milliseconds> */
#include <nvtx3/nvToolsExt.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static double milliseconds;
static volatile double sums[64];

static void spend(int where, double ms) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  const double until = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 + ms;
  do {
    for (int i = 1; i < 20000; ++i)
      sums[where] += 1.0 / i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 < until);
}

static void parallel(const char* name, double ms) {
  nvtxRangePushA(name);
#pragma omp parallel num_threads(3)
  spend(omp_get_thread_num(), omp_get_thread_num() == 2 ? ms : ms / 4);
  nvtxRangePop();
}

static void* other(void* nothing) {
  parallel("much", milliseconds);
  return nothing;
}

int main(int argc, char** argv) {
  pthread_t thread;
  milliseconds = argc > 1 ? atof(argv[1]) : 1000;
  parallel("little", milliseconds / 10);
  pthread_create(&thread, NULL, other, NULL);
  nvtxRangePushA("alone");
  spend(40, milliseconds / 4);
  nvtxRangePop();
  pthread_join(thread, NULL);
  return 0;
}
