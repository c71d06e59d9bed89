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
# and may set before the first line: job_pack_end (of a member of a pack: what it says of itself when the time of the pack
# is over, which is no time limit of its own), job_id, job_name, job_restarts (by the scheduler's variables), job_early (the
# longest time in seconds before the limit at which a signal comes), job_tmp (where TMPDIR is made), TALLY_CACHE_DIR; job_limit (time limit in seconds) where the scheduler cannot be
# asked; nodes.
# Without arguments the functions are defined and nothing is done: the script of a pack uses them.
# STATUS_FILE has the exit status, whole or not at all, and further lines: "restart N" of a job that was started again,
# "preempted" of a job that was being preempted when its program ended, "unasked" if Slurm did not say whether it was.
# STATUS_FILE.job names the job that the folder belongs to; tally writes it. STATUS_FILE.begun says which start of which
# job works in the folder, and how long its output files were before. STATUS_FILE.claim-NAME has the id of the job of that
# name that works in the folder. STATUS_FILE.begun.lock is held by the job that takes the folder. STATUS_FILE.env sets the variables of the workflow; tally writes it.

job_status_file=$1 job_done_file=$2 job_error_file=$3 job_reason_file=$4
job_owner_file=${1:-.job}.job job_begun_file=${1:-.job}.begun
# Set by scripts for schedulers that a table describes.
job_id=${job_id:-${SLURM_JOB_ID-}}
job_name=${job_name:-${SLURM_JOB_NAME-}}
# The id of one task of an array may be the id of the whole array, too.
job_slurm_id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID-}}
job_slurm_id=${job_slurm_id:-${SLURM_JOB_ID-}}
job_restarts=${job_restarts:-${SLURM_RESTART_COUNT:-0}}
job_begun="${job_slurm_id:-${job_id:-none}} $job_restarts"
job_task_failed='^srun: error: .*: tasks? [0-9,-]+: '
job_program='' job_watcher='' job_signalled=0 job_said=0 job_over=0
job_cause='' job_words='' job_told_by='' job_preempted=0 job_unasked=0 job_patience=10
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
    [ "$job_preempted" -eq 0 ] || echo preempted
    [ "$job_unasked" -eq 0 ] || echo unasked
  } > "$job_status_file.new" && mv -f "$job_status_file.new" "$job_status_file"
}

# Ends the job with $status. A job that was taken for lost and has been started elsewhere leaves nothing.
job_end() {
  [ "$(head -n 1 "$job_begun_file" 2> /dev/null)" = "$job_begun" ] || exit 1
  [ -e "$job_owner_file" ] || rm -f "$job_begun_file.lock"
  job_write_status "$status"
  if [ "$status" -eq 0 ]; then
    job_touch "$job_done_file"
  else
    [ -z "$job_done_file" ] || rm -f "$job_done_file"
    job_touch "$job_error_file"
  fi
  # Grid Engine starts a job anew that ends with 99, and holds one for ever that ends with 100.
  case $status in 99 | 100) [ -n "${SLURM_JOB_ID-}" ] || exit 1 ;; esac
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
  [ -n "$job_name" ] && [ -e "$job_owner_file" ] || return 0
  [ "$(cat "$job_owner_file")" != "$job_name" ] || return 0
  if [ "$job_restarts" -eq 0 ]; then
    echo "$job_owner_file: this folder belongs to another job of its run, or its result has been taken" >&2
  fi
  exit 1
}

# One submission may become two jobs of one name: the scheduler's answer was lost, or the engine was killed meanwhile. The
# first to start claims the folder, by a name that can be made once only; the other one touches nothing.
job_claim() {
  local claim id=${job_slurm_id:-$job_id}
  [ -n "$job_name" ] && [ -n "$job_status_file" ] && [ -e "$job_owner_file" ] || return 0
  claim=$job_status_file.claim-$job_name
  rm -f "$claim.$id"
  echo "$id" > "$claim.$id" || job_stop "'$claim.$id' cannot be written"
  # Some file systems have no hard links.
  ln "$claim.$id" "$claim" 2> /dev/null || (set -C && echo "$id" > "$claim") 2> /dev/null
  rm -f "$claim.$id"
  [ "$(cat "$claim")" = "$id" ] && return
  echo "job $(cat "$claim") of the same name works in this folder, so job $id ends" >&2
  exit 1
}

# Whether a job of this id runs, as far as Slurm can be asked.
job_runs() {
  [ -n "${SLURM_JOB_ID-}" ] || return 1
  [ -n "$(timeout "$job_patience" squeue --noheader --states=RUNNING,SUSPENDED,STOPPED --jobs="$1" --format=%i 2> /dev/null)" ]
}

# Nothing of what an earlier start left counts: its status goes, its output is cut off.
job_begin() {
  local file size again=0 id=none own=${job_begun% *}
  # Of two that somebody has submitted at the same time, one looks and writes before the other looks.
  [ -e "$job_owner_file" ] || { exec 9>> "$job_begun_file.lock" && flock -w "$job_patience" 9; } 2> /dev/null
  read -r id _ 2> /dev/null < "$job_begun_file"
  if [ "$job_restarts" -gt 0 ] && [ "$id" = "$own" ]; then again=1; fi
  # Somebody has submitted the script once more by hand. The jobs of a run have an owner.
  if [ "$id" != none ] && [ ! -e "$job_owner_file" ]; then
    if [ "$id" != "$own" ] && job_runs "$id"; then
      echo "job $id works in this folder, so job $own ends" >&2
      exit 1
    fi
    again=1
  fi
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
  exec 9>&-
}

# What the workflow sets outside of this script, which --export of sbatch may have left out.
job_environment() {
  local file=$job_status_file.env
  [ -n "$job_status_file" ] && [ -e "$file" ] || return 0
  case $file in */*) ;; *) file=./$file ;; esac
  # shellcheck source=/dev/null
  . "$file"
}

# Temporary files of this job alone: on its node, or, of several nodes, where all of them see them.
job_make_folders() {
  if [ -z "${job_tmp-}" ]; then
    job_tmp=$PWD
    [ "${nodes:-${SLURM_JOB_NUM_NODES:-1}}" -ne 1 ] || [ -n "${SLURM_HET_SIZE-}" ] || job_tmp=${TMPDIR:-/tmp}
  fi
  TMPDIR=$(mktemp -d "$job_tmp/tally-${job_id%%.*}-XXXXXX") || job_stop "no temporary folder can be made in '$job_tmp'"
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
  [ -z "${TALLY_CACHE_DIR-}" ] || mkdir -p "$TALLY_CACHE_DIR"
}

# --- signals ---------------------------------------------------------------------------------------------------------

# The longest time before the limit, in seconds, at which the signal of the limit comes. A scheduler may send it up to a
# minute earlier than it was asked to. Without a warning it comes at the limit itself.
job_longest_warning() {
  if [ -n "${job_early-}" ]; then
    echo "$job_early"
  elif [ "${job_lead:-0}" -gt 0 ]; then
    echo $((job_lead + 60))
  elif [ -n "${SLURM_JOB_ID-}" ]; then
    echo 0
  else
    # What the scheduler counts began before this script.
    echo $((job_limit < 900 ? job_limit / 10 : 90))
  fi
}

# Asks Slurm, for $job_patience seconds at most, about the job: its state, the time of its end by its limit, since when it is being preempted, the reason of
# its state. Of several components the first one has the script.
job_squeue() {
  SLURM_TIME_FORMAT=%s timeout "$job_patience" squeue --noheader --states=all --sort=i --jobs="$job_slurm_id" \
    --Format=State:32,EndTime:32,PreemptTime:32,Reason:64 2> /dev/null | head -n 1
}

# Finds out why the job is told to end. The scheduler's word decides, and else what is left of the time limit. Sets
# job_cause, and job_words to words for people:
#   limit      the time limit
#   preempted  other jobs need the nodes
#   ended      the scheduler has ended the job, and says why: it was cancelled, for example
#   other      somebody else's signal
#   unknown    the scheduler does not answer
job_ask() {
  local state='' end='' preempted='' reason='' left=''
  job_cause=other
  if [ -n "${SLURM_JOB_ID-}" ]; then
    read -r state end preempted reason < <(job_squeue)
    job_unasked=0
    case $state in
      '') job_cause=unknown job_unasked=1 end=${SLURM_JOB_END_TIME-} ;;
      # SIGNALING: of a job that runs, while the signal is on its way.
      RUNNING | SIGNALING | SUSPENDED | STOPPED | RESIZING | STAGE_OUT)
        case $preempted in [0-9]*) job_cause=preempted ;; esac ;;
      *) if [ "$reason" = TimeLimit ]; then job_cause=limit; else job_cause=ended; fi ;;
    esac
    case $end in [0-9]*) left=$((end - $(date +%s))) ;; esac
  else
    [ -z "${job_limit-}" ] || left=$((job_limit - SECONDS))
  fi
  case $job_cause in
    other | unknown)
      if [ -n "$left" ] && [ "$left" -le "$(job_longest_warning)" ]; then
        job_cause=limit
      elif [ -z "${SLURM_JOB_ID-}" ]; then
        job_cause=ended
      fi
      ;;
  esac
  case $job_cause in
    other) job_words="${left:+ $left s before its time limit}, and not from Slurm" ;;
    unknown) job_words=', and Slurm does not say why' ;;
  esac
}

# Tells the program: what it has done until then may be a result, or it saves what it has.
job_tell_program() {
  if [ -n "${SLURM_JOB_ID-}" ] &&
    squeue --noheader --steps --jobs="$job_slurm_id" --format=%i 2> /dev/null | grep -q '\.[0-9]*$'; then
    scancel --signal=TERM "$job_slurm_id"
  else
    kill -s TERM -- "-$job_program"
  fi
}

# The time limit is near. A script may define another one after it has sourced this file.
job_time_ends() { job_tell_program; }

# A signal has come. The scheduler sends one before the time limit, and so may anybody.
job_told() {
  [ "$job_over" -eq 0 ] || return 0
  job_ask
  # The signal may have ended squeue, too.
  [ "$job_cause" != unknown ] || job_ask
  # Slurm ends all processes of a job. Others may end the script alone: it waits for its program.
  if [ "$job_cause" = ended ] && { [ -n "${SLURM_JOB_ID-}" ] || [ -z "$job_program" ]; }; then exit 143; fi
  job_told_by=$job_cause
  job_signalled=1
  time_is_up=0
  case $job_cause in
    limit)
      time_is_up=1
      job_reason "${job_pack_end:-time limit}"
      ;;
    preempted) job_preempted=1 ;;
    ended) ;;
    *) job_reason "the job got signal $1$job_words" ;;
  esac
  if [ -z "$job_program" ]; then
    status=1
    job_take_signal
    job_end
  elif [ $time_is_up -eq 1 ]; then
    job_time_ends
  else
    job_tell_program
  fi
}

# The $status of a program that was told to end. One that ended well at its time limit, or when somebody told it, has
# done what it was to do. One that is preempted has not.
job_take_signal() {
  case $job_told_by in
    limit) [ "$status" -eq 0 ] || status=$([ -n "${job_pack_end-}" ] && echo 143 || echo 4) ;;
    preempted) status=143 ;;
    *) [ "$status" -eq 0 ] || status=143 ;;
  esac
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

# The shell that starts the program waits for its end when both are told to end. Of Slurm's jobs srun is told.
job_start() {
  [ -n "${SLURM_JOB_ID-}" ] || trap : TERM
  "$@"
}

# Runs a command, most often a function of the script, as the job's program; leaves its exit status in $status; 4: ended
# by the time limit. In the background, for a shell takes no signal while it waits in the foreground; in a process group
# of its own.
job_run() {
  local code
  job_said=$(stat -L -c %s "$stderr" 2> /dev/null)
  set -m
  job_start "$@" &
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
  job_over=1
  if job_lost_node; then
    :
  elif [ "$job_told_by" = ended ]; then
    exit 143
  elif [ -n "$job_told_by" ]; then
    job_take_signal
  elif [ -n "${SLURM_JOB_ID-}" ]; then
    # The tasks of a job that is cancelled or preempted may end before a signal comes that ends this script, or without
    # one. A preemption that begins later, while the rest of this script works, does not count. The status is not to wait
    # long for a scheduler that is away.
    job_patience=5
    job_ask
    if [ "$job_cause" = preempted ]; then
      job_preempted=1 status=143
    elif [ "$status" -ne 0 ]; then
      if [ "$job_cause" = ended ]; then exit 143; fi
      job_first_failure
    fi
  fi
}

# The time before the limit, in seconds, at which Slurm is to send a signal: the options of this script have it. Slurm
# takes a minute for a signal without a time.
job_lead=$(sed -n -e '/^#SBATCH *--signal[= ]/!d' -e 's/.*@\([0-9][0-9]*\).*/\1/' -e 's/.*[^0-9].*/60/' -e p \
  "$0" 2> /dev/null | sort -n | tail -n 1)
# The signals of the scheduler: its own, and the one that the options name.
job_signals="TERM USR1 USR2 $(sed -n -e '/^#SBATCH *--signal[= ]/!d' -e 's/^#SBATCH *--signal[= ]*"*//' -e 's/^[BRbr]*://' \
  -e 's/[^A-Za-z0-9].*//' -e p "$0" 2> /dev/null | tail -n 1)"
# --export of sbatch is about the environment of this script. srun would apply it again, to the environment that this
# script makes for its program. With NIL, bash has a PATH that it does not export.
unset SLURM_EXPORT_ENV
# Of several components, Slurm says the memory of one by the CPU and that of another by the node, and srun refuses the two.
# Without a word each part of its line has the memory of its component.
[ -z "${SLURM_HET_SIZE-}" ] || unset "${!SLURM_MEM_PER_@}"
export PATH
[ $# -gt 0 ] || return 0

job_environment
job_check_owner
job_claim
job_begin
for job_signal in $job_signals; do
  # shellcheck disable=SC2064 # the signal of now
  trap "job_told $job_signal" $job_signal
done
job_make_folders
