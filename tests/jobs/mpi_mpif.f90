! Messages and collectives of mpif.h: mpi_f08.f90 with handles that are numbers.
program exchange
  implicit none
  include 'mpif.h'
  integer :: rank, size, step, index, next, before, value
  integer, target :: inbox(1000), outbox(1000)
  real(8) :: sums(8)
  integer :: half, requests(2), later, status(MPI_STATUS_SIZE), window, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  outbox = rank
  sums = 1
  do step = 1, 5
    call MPI_Irecv(inbox, 1000, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(outbox, 10 * step, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    call MPI_Sendrecv(outbox, step, MPI_INTEGER, next, 4, inbox, 1000, MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    if (rank == 0) call MPI_Recv(inbox, 1000, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, error)
    if (rank == 0 .and. status(MPI_SOURCE) /= 1) stop 3
    if (rank == 1) call MPI_Send(outbox, 7, MPI_INTEGER, 0, step, MPI_COMM_WORLD, error)
    if (rank == 1) call MPI_Irecv(inbox, 1000, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, requests(1), error)
    if (rank == 0) call MPI_Send(outbox, 3, MPI_INTEGER, 1, 9, MPI_COMM_WORLD, error)
    if (rank == 1) then
      requests(2) = MPI_REQUEST_NULL
      call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, error)
    end if
    call MPI_Allreduce(MPI_IN_PLACE, sums, 8, MPI_DOUBLE_PRECISION, MPI_SUM, half, error)
    call MPI_Iallreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, later, error)
    call MPI_Wait(later, MPI_STATUS_IGNORE, error)
    call MPI_Gather(outbox, 2, MPI_INTEGER, inbox, 2, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end do
  call MPI_Win_create(inbox, 4000_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
  call MPI_Win_fence(0, window, error)
  call MPI_Put(outbox, 25, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 25, MPI_INTEGER, window, error)
  call MPI_Win_fence(0, window, error)
  value = inbox(1)
  call MPI_Win_free(window, error)
  if (value /= before) stop 1
  call MPI_Finalize(error)
  print '(a)', 'done'
end program
