/* Two threads that each have the mutex that the other one waits for, and a third that waits for one
 * of them. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, audit = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static int transfer(void) {
  pthread_mutex_lock(&accounts);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&audit); /* never returns */
  return printf("transferred\n");
}

__attribute__((noinline)) static int report(void) {
  pthread_mutex_lock(&audit);
  pthread_barrier_wait(&both);
  pthread_mutex_lock(&accounts); /* nor does this */
  return printf("reported\n");
}

__attribute__((noinline)) static int look(void) {
  pthread_mutex_lock(&accounts); /* waits, and holds nothing */
  return printf("looked\n");
}

static void* transfers(void* nothing) {
  return transfer() > 0 ? nothing : NULL;
}
static void* reports(void* nothing) {
  return report() > 0 ? nothing : NULL;
}
static void* looks(void* nothing) {
  return look() > 0 ? nothing : NULL;
}

int main(void) {
  pthread_barrier_init(&both, NULL, 2);
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, transfers, NULL);
  pthread_create(&threads[1], NULL, reports, NULL);
  pthread_create(&threads[2], NULL, looks, NULL);
  for (int i = 0; i < 3; ++i)
    pthread_join(threads[i], NULL);
  return 0;
}
