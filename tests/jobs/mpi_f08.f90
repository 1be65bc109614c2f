! Messages and collectives of module mpi_f08; mpi_mpif.f90 is the same of mpif.h.
program exchange
  use mpi_f08
  implicit none
  integer :: rank, size, step, index, next, before, value
  integer, target :: inbox(1000), outbox(1000)
  real(8) :: sums(8)
  type(MPI_Comm) :: half
  type(MPI_Request) :: requests(2), later
  type(MPI_Status) :: status
  type(MPI_Win) :: window
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  outbox = rank
  sums = 1
  do step = 1, 5
    call MPI_Irecv(inbox, 1000, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(outbox, 10 * step, MPI_INTEGER, next, 3, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_Sendrecv(outbox, step, MPI_INTEGER, next, 4, inbox, 1000, MPI_INTEGER, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (rank == 0) call MPI_Recv(inbox, 1000, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
    if (rank == 0 .and. status%MPI_SOURCE /= 1) stop 3
    if (rank == 1) call MPI_Send(outbox, 7, MPI_INTEGER, 0, step, MPI_COMM_WORLD)
    if (rank == 1) call MPI_Irecv(inbox, 1000, MPI_INTEGER, 0, 9, MPI_COMM_WORLD, requests(1))
    if (rank == 0) call MPI_Send(outbox, 3, MPI_INTEGER, 1, 9, MPI_COMM_WORLD)
    if (rank == 1) then
      requests(2) = MPI_REQUEST_NULL
      call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE)
    end if
    call MPI_Allreduce(MPI_IN_PLACE, sums, 8, MPI_DOUBLE_PRECISION, MPI_SUM, half)
    call MPI_Iallreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, later)
    call MPI_Wait(later, MPI_STATUS_IGNORE)
    call MPI_Gather(outbox, 2, MPI_INTEGER, inbox, 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  call MPI_Win_create(inbox, 4000_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  call MPI_Win_fence(0, window)
  call MPI_Put(outbox, 25, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 25, MPI_INTEGER, window)
  call MPI_Win_fence(0, window)
  value = inbox(1)
  call MPI_Win_free(window)
  if (value /= before) stop 1
  call MPI_Finalize()
  print '(a)', 'done'
end program
