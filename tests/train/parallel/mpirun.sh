#!/bin/sh
# mpirun.sh MPIEXEC RANKS COMMAND...: several ranks on this host, on fewer processors if need be, as root or not.
mpiexec=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
exec "$mpiexec" -n "$ranks" "$@"
