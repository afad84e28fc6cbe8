! Threads of OpenMP fill an array and add it up.
program sums
  implicit none
  integer, parameter :: n = 100000
  real(8), allocatable :: a(:)
  real(8) :: total
  integer :: i
  allocate(a(n))
  !$omp parallel do
  do i = 1, n
    a(i) = i
  end do
  total = 0
  !$omp parallel do reduction(+:total)
  do i = 1, n
    total = total + a(i)
  end do
  print '(i0)', int(total, 8)
end program
