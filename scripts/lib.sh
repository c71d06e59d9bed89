#!/usr/bin/env bash
# What the scripts share: messages, paths, checks. Sourced, not run.
set -euo pipefail
TALLY_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TALLY_DEPS=${TALLY_DEPS:-$TALLY_ROOT/.deps}
TALLY_BUILD=$(realpath -m "${TALLY_BUILD:-$TALLY_ROOT/build}")
# A compiler that has a unit of twenty files takes about a GiB.
TALLY_JOBS=${TALLY_JOBS:-$(awk -v cores="$(nproc)" '/^MemAvailable:/ { gib = int($2 / 1048576) }
  END { print (gib > 0 && gib < cores) ? gib : cores }' /proc/meminfo)}

if [ -t 2 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold='' plain=''; fi
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# installed_cuda_compiler: prints the path of the machine's own nvcc, or fails.
installed_cuda_compiler() {
  local nvcc
  for nvcc in "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    [ -x "$nvcc" ] && echo "$nvcc" && return 0
  done
  return 1
}
# cuda_compiler: the machine's own nvcc, else the one that setup fetched; fails when there is none.
cuda_compiler() {
  installed_cuda_compiler && return 0
  local nvcc
  nvcc=$(site_packages)/nvidia/cu13/bin/nvcc
  [ -x "$nvcc" ] && echo "$nvcc"
}
# has_gpu: an NVIDIA driver answers and lists a device.
has_gpu() { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

# site_packages: where the virtual environment keeps torch/ and nvidia/.
site_packages() { echo "$TALLY_DEPS"/venv/lib/python3*/site-packages; }

# check_not_moved: CMake's cache holds absolute paths, so a build directory does not survive a move.
check_not_moved() {
  local cache=$TALLY_BUILD/CMakeCache.txt source build
  [ -e "$cache" ] || return 0
  source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
  build=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$cache")
  [ "$source" -ef "$TALLY_ROOT" ] && [ "$build" -ef "$TALLY_BUILD" ] && return 0
  fail "$TALLY_BUILD was configured as $build for the sources in $source, and was moved or copied since: remove it (rm -r ${TALLY_BUILD@Q}), then run this again"
}

# cached NAME: the value of a CMake variable in the build directory; empty when it is not configured.
cached() {
  [ -e "$TALLY_BUILD/CMakeCache.txt" ] || return 0
  sed -n "s/^$1:[A-Z]*=//p" "$TALLY_BUILD/CMakeCache.txt"
}

# A cold build compiles up to twenty files at a time: they share headers and what the compiler makes of these. Who changes
# one file wants that one compiled again, so a build directory of CMake's presets does not.
TALLY_COLD_BUILD=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON)

# Where scripts/setup could install nothing, the libraries that it fetched.
own_libraries() { [ ! -e "$TALLY_DEPS/.done-libraries" ] || echo "-DTALLY_LIBRARIES=$TALLY_DEPS/libraries"; }

# begin_engine CUDA: builds the engine into a log. What fails here fails again, aloud, in configure_and_build.
begin_engine() {
  trap 'exit 0' TERM # after CMake's end, because nobody else may configure this directory meanwhile
  local libraries
  mapfile -t libraries < <(own_libraries)
  cmake -S "$TALLY_ROOT" -B "$TALLY_BUILD" -G Ninja "${TALLY_COLD_BUILD[@]}" -DTALLY_CUDA="$1" "${libraries[@]}" \
    -DTALLY_TESTS=OFF -DTALLY_TRAIN=OFF >/dev/null 2>&1 && exec ninja -C "$TALLY_BUILD" -j "$TALLY_JOBS" tally 2>&1
}

# set_up CUDA OPTION...: scripts/setup with these options. For a new build directory the engine, which needs nothing of
# PyPI's, is built while those packages come.
set_up() {
  local cuda=$1
  shift
  if [ -e "$TALLY_BUILD/CMakeCache.txt" ]; then
    "$TALLY_ROOT/scripts/setup" "$@"
    return
  fi
  "$TALLY_ROOT/scripts/setup" --engine-only
  mkdir -p "$TALLY_BUILD" || fail "the build directory $TALLY_BUILD cannot be made"
  begin_engine "$cuda" >"$TALLY_BUILD.engine.log" &
  engine=$!
  trap end_engine EXIT # when the set-up fails or is interrupted
  "$TALLY_ROOT/scripts/setup" "$@"
  # A unit that is compiled half would be compiled again.
  say "Building tally"
  tail -n 1 -f --pid=$engine "$TALLY_BUILD.engine.log"
  trap - EXIT
  wait "$engine" || true
}
end_engine() {
  kill "$engine" 2>/dev/null || true
  wait "$engine" || true
}

# configure_and_build TESTS CUDA TARGET...: CMake with what setup installed; builds the targets (all when none is
# named). TESTS: ON or OFF; CUDA: ON, OFF or AUTO.
configure_and_build() {
  local tests=$1 cuda=$2
  shift 2
  local options=(-S "$TALLY_ROOT" -B "$TALLY_BUILD" -G Ninja -DTALLY_TESTS="$tests" -DTALLY_CUDA="$cuda" -DTALLY_TRAIN=ON
    -DTALLY_SITE_PACKAGES="$(site_packages)")
  local libraries
  mapfile -t libraries < <(own_libraries)
  options+=("${libraries[@]}")
  [ -e "$TALLY_BUILD/CMakeCache.txt" ] || options+=("${TALLY_COLD_BUILD[@]}")
  local nvcc
  if [ "$cuda" != OFF ] && nvcc=$(cuda_compiler); then
    options+=(-DCMAKE_CUDA_COMPILER="$nvcc")
  fi
  check_not_moved
  say "Configuring in $TALLY_BUILD"
  mkdir -p "$TALLY_BUILD" || fail "the build directory $TALLY_BUILD cannot be made"
  cmake "${options[@]}" >"$TALLY_BUILD.configure.log" 2>&1 || {
    tail -n 30 "$TALLY_BUILD.configure.log" >&2
    fail "CMake could not configure; the whole log is $TALLY_BUILD.configure.log"
  }
  say "Building with $TALLY_JOBS jobs"
  local targets=()
  local target
  for target in "$@"; do targets+=(--target "$target"); done
  cmake --build "$TALLY_BUILD" -j "$TALLY_JOBS" "${targets[@]}"
}
