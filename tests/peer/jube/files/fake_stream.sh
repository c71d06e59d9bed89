#!/bin/sh
# Prints what STREAM prints; the rates depend on the number of threads alone.
t=${OMP_NUM_THREADS:-1}
echo "-------------------------------------------------------------"
echo "STREAM version \$Revision: 5.10 \$"
echo "Array size = $1 (elements), Offset = 0 (elements)"
echo "Number of Threads counted = $t"
echo "Function    Best Rate MB/s  Avg time     Min time     Max time"
echo "Copy:           $((t * 10000)).5     0.001600     0.001500     0.001700"
echo "Scale:          $((t * 9000)).1     0.001700     0.001650     0.001800"
echo "Add:            $((t * 8000)).0     0.002600     0.002500     0.002700"
echo "Triad:          $((t * 7777)).25     0.002600     0.002550     0.002700"
echo "Solution Validates: avg error less than 1.000000e-13 on all three arrays"
