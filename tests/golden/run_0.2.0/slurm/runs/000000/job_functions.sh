# shellcheck shell=bash
# Sourced by the job scripts of a run, which tally writes beside it: what a job does besides loading modules and starting
# its program. A script reads
#
#   . ../../job_functions.sh STATUS_FILE DONE_FILE ERROR_FILE REASON_FILE || exit
#   module load ...; export ...
#   launch() { srun program; }
#   job_run launch   # sets $status
#   job_end
#
# and may set before the first line: job_tmp (where TMPDIR is made), TALLY_CACHE_DIR; job_limit (time limit in seconds) and
# job_warning (minutes before it at which a signal comes) where the scheduler cannot be asked; nodes.
# STATUS_FILE has the exit status, whole or not at all, and of a job that was started again "restart N" in a second line.
# STATUS_FILE.job names the job that the folder belongs to; tally writes it. STATUS_FILE.begun says which start of which
# job works in the folder, and how long its output files were before. STATUS_FILE.claim-NAME has the id of the job of that
# name that works in the folder.

job_status_file=$1 job_done_file=$2 job_error_file=$3 job_reason_file=$4
job_owner_file=${1:-.job}.job job_begun_file=${1:-.job}.begun
job_id=${SLURM_JOB_ID-}${PBS_JOBID-}${LSB_JOBID-}
job_restarts=${SLURM_RESTART_COUNT:-0}
job_begun="${job_id:-none} $job_restarts"
job_task_failed='^srun: error: .*: tasks? [0-9,-]+: '
job_program='' job_watcher='' job_signalled=0 job_said=0
time_is_up=0
# The files of the job's output, by the names that the scheduler gave them: those of the options may be patterns.
stdout=$(readlink "/proc/$$/fd/1")
stderr=$(readlink "/proc/$$/fd/2")

job_touch() { if [ -n "$1" ]; then touch "$1"; fi; }
job_reason() { if [ -n "$job_reason_file" ]; then echo "$1" > "$job_reason_file"; fi; }

# Beside and renamed: whole or not at all.
job_write_status() {
  [ -n "$job_status_file" ] || return 0
  rm -f "$job_status_file.new"
  {
    echo "$1"
    [ "$job_restarts" -eq 0 ] || echo "restart $job_restarts"
  } > "$job_status_file.new" && mv -f "$job_status_file.new" "$job_status_file"
}

# Ends the job with $status. A job that was taken for lost and has been started elsewhere leaves nothing.
job_end() {
  [ "$(head -n 1 "$job_begun_file" 2> /dev/null)" = "$job_begun" ] || exit 1
  job_write_status "$status"
  if [ "$status" -eq 0 ]; then
    job_touch "$job_done_file"
  else
    [ -z "$job_done_file" ] || rm -f "$job_done_file"
    job_touch "$job_error_file"
  fi
  exit "$status"
}

# Without what it needs the job ends before its program, and says why: the program would measure something else.
job_stop() {
  echo "$1" >&2
  job_reason "$1"
  status=1
  job_end
}
job_module_failed() { job_stop "a module cannot be loaded: $(sed -n "${BASH_LINENO[0]}p" "$0")"; }

# --- the start -------------------------------------------------------------------------------------------------------

# The folder is another job's by now, or the end of this one has been taken note of: nothing is touched.
job_check_owner() {
  [ -n "${SLURM_JOB_NAME-}" ] && [ -e "$job_owner_file" ] || return 0
  [ "$(cat "$job_owner_file")" != "$SLURM_JOB_NAME" ] || return 0
  if [ "$job_restarts" -eq 0 ]; then
    echo "$job_owner_file: this folder belongs to another job of its run, or its result has been taken" >&2
  fi
  exit 1
}

# One submission may become two jobs of one name: the scheduler's answer was lost, or the engine was killed meanwhile. The
# first to start claims the folder, by a name that can be made once only; the other one touches nothing.
job_claim() {
  local claim id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID-}}
  [ -n "${SLURM_JOB_NAME-}" ] && [ -n "$job_status_file" ] && [ -e "$job_owner_file" ] || return 0
  id=${id:-$job_id}
  claim=$job_status_file.claim-$SLURM_JOB_NAME
  rm -f "$claim.$id"
  echo "$id" > "$claim.$id" || job_stop "'$claim.$id' cannot be written"
  # Some file systems have no hard links.
  ln "$claim.$id" "$claim" 2> /dev/null || (set -C && echo "$id" > "$claim") 2> /dev/null
  rm -f "$claim.$id"
  [ "$(cat "$claim")" = "$id" ] && return
  echo "job $(cat "$claim") of the same name works in this folder, so job $id ends" >&2
  exit 1
}

# Nothing of what an earlier start left counts: its status goes, its output is cut off.
job_begin() {
  local file size again=0 id=none
  read -r id _ 2> /dev/null < "$job_begun_file"
  if [ "$job_restarts" -gt 0 ] && [ "$id" = "$job_id" ]; then again=1; fi
  for file in "$job_status_file" "$job_done_file" "$job_error_file" "$job_reason_file"; do
    [ -z "$file" ] || rm -f "$file"
  done
  if [ $again -eq 1 ]; then
    sed 1d "$job_begun_file" | while read -r size file; do truncate -s "$size" "$file"; done
  fi
  rm -f "$job_begun_file.new"
  {
    echo "$job_begun"
    if [ $again -eq 1 ]; then
      sed 1d "$job_begun_file"
    else
      stat -c '%s %n' "$stdout" "$stderr" 2> /dev/null
    fi
  } > "$job_begun_file.new"
  mv -f "$job_begun_file.new" "$job_begun_file"
}

# Temporary files of this job alone: on its node, or, of several nodes, where all of them see them.
job_make_folders() {
  if [ -z "${job_tmp-}" ]; then
    job_tmp=$PWD
    [ "${nodes:-${SLURM_JOB_NUM_NODES:-1}}" -ne 1 ] || job_tmp=${TMPDIR:-/tmp}
  fi
  TMPDIR=$(mktemp -d "$job_tmp/tally-${job_id%%.*}-XXXXXX") || job_stop "no temporary folder can be made in '$job_tmp'"
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
  [ -z "${TALLY_CACHE_DIR-}" ] || mkdir -p "$TALLY_CACHE_DIR"
}

# --- the time limit --------------------------------------------------------------------------------------------------

# A job that is cancelled gets the same signal as one whose time runs out; asked, the scheduler says which it is. Where
# it is not asked, a signal long before the limit is no time limit.
job_is_cancelled() {
  if [ -n "${SLURM_JOB_ID-}" ]; then
    # SIGNALING: of a job that runs, while the signal is on its way.
    case $(squeue --noheader --jobs="$SLURM_JOB_ID" --format='%T %r' 2> /dev/null) in
      RUNNING* | SIGNALING* | SUSPENDED* | STOPPED* | RESIZING* | STAGE_OUT* | *' TimeLimit' | '') return 1 ;;
    esac
    return 0
  fi
  local margin=90
  [ -z "${LSB_JOBID-}" ] || margin=$((60 * (${job_warning:-0} + 2)))
  [ -n "${job_limit-}" ] && [ "$SECONDS" -lt $((job_limit - margin)) ]
}

# The scheduler tells the script that its time runs out, and the script the program: what that has done until then may be
# a result. A script may define another one after it has sourced this file.
job_time_ends() {
  if job_is_cancelled; then exit 143; fi
  time_is_up=1
  job_signalled=1
  job_reason 'time limit'
  if [ -z "$job_program" ]; then
    status=4
    job_end
  fi
  if [ -n "${SLURM_JOB_ID-}" ] &&
    squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i 2> /dev/null | grep -q '\.[0-9]*$'; then
    scancel --signal=TERM "$SLURM_JOB_ID"
  else
    kill -s TERM -- "-$job_program"
  fi
}

# --- the program -----------------------------------------------------------------------------------------------------

# What came on standard error since the program began.
job_errors() { if [ -f "$stderr" ]; then tail -c "+$((${job_said:-0} + 1))" "$@" "$stderr" 2> /dev/null; fi; }

# A task of srun that fails ends the others, which may be waiting for it: a moment later, when its last words have
# come. (srun's own --kill-on-bad-exit often loses them.) SLURM_KILL_BAD_EXIT=0 leaves the others alone.
job_end_tasks_of_failed() {
  local failed
  grep -a -q -E "$job_task_failed" < <(job_errors -f --pid="$job_program") || return
  failed=$(pgrep -x -P "$job_program" srun) || return
  sleep 1
  # shellcheck disable=SC2086 # several numbers
  [ -n "$job_reason_file" ] && [ -e "$job_reason_file" ] || kill -s TERM $failed
}

# srun's code is the highest of all tasks', those that it ended among them: what counts is how the first one ended.
job_first_failure() {
  local first words
  first=$(job_errors | grep -a -m 1 -E "$job_task_failed")
  case $first in
    *': Exited with exit code '*[0-9]) status=${first##* } ;;
    *': Illegal instruction'*) status=132 ;;
    *': Aborted'*) status=134 ;;
    *': Bus error'*) status=135 ;;
    *': Floating point exception'*) status=136 ;;
    *': Killed'* | *': Out Of Memory'*) status=137 ;;
    *': Segmentation fault'*) status=139 ;;
  esac
  words=$(job_errors | grep -a -v -E '^(srun|slurmstepd[^:]*): ' | grep -a -m 1 -i error)
  # A program that never began has said nothing: srun and slurmstepd have, or a shell or a container's runtime.
  if [ -z "$words" ]; then
    words=$(job_errors | grep -a -m 1 -E 'error: (execve\(\)|Detected .*oom)')
    case $words$status in
      126 | 127 | 255) words=$(job_errors | grep -a -v -E '^(srun|slurmstepd[^:]*): ' | tail -n 1) ;;
    esac
    [ -n "$words$first" ] || words=$(job_errors | grep -a -m 1 -E '^(srun|slurmstepd[^:]*): (fatal|error): ')
    words=${words#slurmstepd*: error: }
    words=${words#srun: error: }
  fi
  first=${first#srun: error: }
  [ -z "$words$first" ] || job_reason "${words:-$first}${words:+${first:+ ($first)}}"
}

# When a node of the job is lost, srun ends with 0 at once; the program has not ended.
job_lost_node() {
  local words
  [ "$status" -eq 0 ] || return
  words=$(job_errors | grep -a -m 1 '^srun: error: Node failure on ') || return
  status=1
  job_reason "${words#srun: error: }"
}

# Runs a command, most often a function of the script, as the job's program; leaves its exit status in $status; 4: ended
# by the time limit. In the background, for a shell takes no signal while it waits in the foreground; in a process group
# of its own.
job_run() {
  local code
  job_said=$(stat -L -c %s "$stderr" 2> /dev/null)
  set -m
  "$@" &
  job_program=$!
  if [ -n "${SLURM_JOB_ID-}" ] && [ "${SLURM_KILL_BAD_EXIT-1}" != 0 ]; then
    job_end_tasks_of_failed &
    job_watcher=$!
  fi
  set +m
  wait "$job_program"
  status=$?
  # A signal ends the wait, not the program.
  while [ $job_signalled -eq 1 ]; do
    job_signalled=0
    wait "$job_program"
    code=$?
    [ $code -eq 127 ] || status=$code
  done
  if [ -n "$job_watcher" ]; then
    disown "$job_watcher" 2> /dev/null
    kill -s KILL -- "-$job_watcher" 2> /dev/null
  fi
  job_lost_node
  if [ "$status" -ne 0 ]; then
    if [ $time_is_up -eq 1 ]; then
      status=4
    elif [ -n "${SLURM_JOB_ID-}" ] && [ ! -s "${job_reason_file:-/dev/null}" ]; then
      # The tasks of a cancelled job may have ended before the signal comes that ends this script.
      if job_is_cancelled; then exit 143; fi
      job_first_failure
    fi
  fi
}

job_check_owner
job_claim
job_begin
trap job_time_ends TERM USR1 USR2
job_make_folders
