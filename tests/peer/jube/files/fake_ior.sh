#!/bin/sh
# Prints what IOR prints: a line for each operation and repetition, then a summary.
xfer=$1
reps=$2
echo "IOR-3.3.0: MPI Coordinated Test of Parallel I/O"
echo "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"
echo "------    ---------  ---------- ---------  --------   --------   --------   --------   ----"
i=0
while [ $i -lt "$reps" ]; do
  echo "write     $((xfer + i)).50     1024.00    $xfer.00    0.000100   0.010000   0.000010   0.010110   $i"
  echo "read      $((2 * xfer + i)).25     1024.00    $xfer.00    0.000100   0.010000   0.000010   0.010110   $i"
  i=$((i + 1))
done
echo "Max Write: $((xfer + reps - 1)).50 MiB/sec (0.00 MB/sec)"
echo "Max Read:  $((2 * xfer + reps - 1)).25 MiB/sec (0.00 MB/sec)"
