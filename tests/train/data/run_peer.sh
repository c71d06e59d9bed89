# run_peer.sh PYTHON SCRIPT ARGUMENT...: runs a test against a peer; 77 (skipped, and it says why) without Python.
# The environment's TALLY_TEST_PYTHON goes first.
python=${TALLY_TEST_PYTHON:-$1}
shift
if [ ! -x "$python" ]; then
  echo "SKIPPED: no Python for tests at '$python': scripts/setup --tests makes it, or set TALLY_TEST_PYTHON"
  exit 77
fi
exec "$python" "$@"
