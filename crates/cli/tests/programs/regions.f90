! OpenMP in Fortran: loops, sections, tasks, threadprivate data, workshare and ordered regions, with integers of any kind.
program regions
  use omp_lib
  implicit none
  integer, parameter :: n = 2000
  integer :: i, sections, total, seen(4), chunk
  integer, allocatable :: kept(:)
  double precision :: a(n), s
  common /shared/ chunk
  integer, save :: mine
  !$omp threadprivate(mine)
  call omp_set_num_threads(4)
  allocate(kept(n))
  s = 0; total = 0; sections = 0; seen = 0; chunk = 5
  !$omp parallel do schedule(dynamic, 16) reduction(+:s) shared(a, kept)
  do i = 1, n
    a(i) = dble(mod(i * 7919, 1009)); kept(i) = i; s = s + a(i)
  end do
  !$omp parallel sections num_threads(4)
  !$omp section
  !$omp atomic
  sections = sections + 1
  !$omp section
  !$omp atomic
  sections = sections + 10
  !$omp end parallel sections
  mine = 3
  !$omp parallel copyin(mine) private(i)
  mine = mine + omp_get_thread_num()
  seen(omp_get_thread_num() + 1) = mine
  !$omp barrier
  !$omp critical (adding)
  total = total + mine
  !$omp end critical (adding)
  !$omp single
  do i = 1, 8
    !$omp task firstprivate(i)
    !$omp critical (adding)
    total = total + i
    !$omp end critical (adding)
    !$omp end task
  end do
  !$omp taskwait
  !$omp end single
  !$omp workshare
  where (a > 500) a = a - 500
  !$omp end workshare
  !$omp do ordered schedule(static, 1)
  do i = 1, 6
    !$omp ordered
    print '(a,i0)', 'line ', i
    !$omp end ordered
  end do
  !$omp end do
  !$omp end parallel
  print *, s, sections, total, seen, sum(kept), sum(a), kind(total), chunk
end program regions
